package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestATreeOfManyFilesIsWalked(t *testing.T) {
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
		for _, pid := range []int{d.Sites[i].NodePID, d.Sites[i].MountPID} {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(status)) {
				if strings.HasPrefix(line, "VmHWM") {
					t.Logf("process %d at %s: %s", pid, d.Sites[i].Name, strings.TrimSpace(line))
				}
			}
		}
	}
}
