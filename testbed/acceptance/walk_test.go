package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/testbed/trial"
	"golang.org/x/sync/errgroup"
)

// TestTree_OfManyFilesIsWalked makes and walks more files than a mount may know
// at a time. The mounts stay within their limit of memory.
func TestTree_OfManyFilesIsWalked(t *testing.T) {
	d := startPrograms(t)
	files := 500_000
	if s := os.Getenv("CARTWHEEL_WALK_FILES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		files = n
	}
	dir := d.mkdir("many")
	const perDirectory = 1000
	var g errgroup.Group
	g.SetLimit(8)
	for n := 0; n < files; n += perDirectory {
		g.Go(func() error {
			path := filepath.Join(dir[0], fmt.Sprintf("d%03d", n/perDirectory/100), fmt.Sprintf("d%03d", n/perDirectory))
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			for i := range min(perDirectory, files-n) {
				if err := os.WriteFile(filepath.Join(path, fmt.Sprintf("file-%06d", n+i)), nil, 0o644); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, path := range dir {
		got := strings.TrimSpace(d.run("sh", "-c", "find '"+path+"' -type f -printf '%s %p\\n' | wc -l"))
		if got != fmt.Sprint(files) {
			t.Errorf("find at %s saw %s files, want %d", d.Sites[i].Name, got, files)
		}
		node, err := trial.Look(d.Sites[i].NodePID)
		if err != nil {
			t.Fatal(err)
		}
		mount, err := trial.Look(d.Sites[i].MountPID)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: at most %d MB in the node, %d MB in the mount", d.Sites[i].Name, node.Peak>>20, mount.Peak>>20)
		if mount.Peak > cartwheel.DefaultMemory {
			t.Errorf("the mount at %s took %d bytes of memory, --memory is %d", d.Sites[i].Name, mount.Peak, int64(cartwheel.DefaultMemory))
		}
	}
}
