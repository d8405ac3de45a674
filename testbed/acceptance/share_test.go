package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestShare_TwoMountsAppendToOneFile(t *testing.T) {
	d := startDemo(t)
	const each = 300
	if err := os.WriteFile(filepath.Join(d.Sites[0].Mount, "log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for _, s := range d.Sites[:2] {
		g.Go(func() error {
			f, err := os.OpenFile(filepath.Join(s.Mount, "log"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			for i := range each {
				if _, err := fmt.Fprintf(f, "%s %d\n", s.Name, i); err != nil {
					return err
				}
			}
			return f.Close()
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(d.Sites[2].Mount, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	next := map[string]int{}
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		var name string
		var i int
		if _, err := fmt.Sscanf(s.Text(), "%s %d", &name, &i); err != nil || i != next[name] {
			t.Fatalf("line %d is %q, want number %d of %s", lines, s.Text(), next[name], name)
		}
		next[name]++
	}
	if lines != 2*each {
		t.Errorf("got %d records, want %d", lines, 2*each)
	}
}

func TestShare_TwoMountsOverwriteAlternateBlocks(t *testing.T) {
	d := startDemo(t)
	const block, blocks = 4096, 256
	path := func(s site) string { return filepath.Join(s.Mount, "blocks") }
	if err := os.WriteFile(path(d.Sites[0]), make([]byte, block*blocks), 0o644); err != nil {
		t.Fatal(err)
	}
	fill := func(n, i int) []byte {
		b := make([]byte, block)
		for j := range b {
			b[j] = byte(1 + n + 2*i + j)
		}
		return b
	}
	var g errgroup.Group
	for n, s := range d.Sites[:2] {
		g.Go(func() error {
			f, err := os.OpenFile(path(s), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			for i := n; i < blocks; i += 2 {
				if _, err := f.WriteAt(fill(n, i), int64(i)*block); err != nil {
					return err
				}
			}
			if err := f.Sync(); err != nil {
				return err
			}
			return f.Close()
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path(d.Sites[2]))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != block*blocks {
		t.Fatalf("got %d bytes, want %d", len(got), block*blocks)
	}
	for i := range blocks {
		if want := fill(i%2, i); string(got[i*block:(i+1)*block]) != string(want) {
			t.Errorf("block %d is not what the writer of %s wrote", i, d.Sites[i%2].Name)
		}
	}
}

type whereabouts struct {
	Active   member         `json:"active"`
	Standbys []member       `json:"standbys"`
	Cues     map[string]any `json:"cues"`
	Read     struct {
		Node, Site, Why string
	} `json:"read"`
}

func TestCues_DecideWhereAFileGoes(t *testing.T) {
	d := startDemo(t)
	dir := filepath.Join(d.mount("tokyo"), ".Site=boston", ".RepLevel=2")
	file := filepath.Join(dir, "made-below-cues")
	if err := os.WriteFile(file, []byte("two copies"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(d.mount("paris"), "made-below-cues")} {
		var w whereabouts
		text := d.cartwheel("where", path, "--json")
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if w.Active.Site != "boston" || len(w.Standbys) != 1 || w.Standbys[0].Site == "boston" {
			t.Errorf("%s: got %+v, want the active at boston and one standby elsewhere", path, w)
		}
		if w.Read.Site == "" || w.Read.Why == "" {
			t.Errorf("%s: does not say which copy was read and why: %s", path, text)
		}
	}
	for _, bad := range []string{".RepLevel=0", ".RepLevel=many", ".Site=atlantis", ".SyncLevel=-1", ".Snapshot=-1x"} {
		err := os.WriteFile(filepath.Join(d.mount("tokyo"), bad, "x"), nil, 0o644)
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: got %v, want EINVAL", bad, err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.mount("tokyo"), ".Snapshot=nightly")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a snapshot that nobody made: got %v, want ENOENT", err)
	}
}

func TestCues_ASnapshotKeepsWhatIsRemoved(t *testing.T) {
	d := startDemo(t)
	file := filepath.Join(d.mount("tokyo"), "kept")
	if err := os.WriteFile(file, []byte("as it was"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.cartwheel("snapshot", "create", "nightly")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, site := range []string{"tokyo", "paris"} {
		got, err := os.ReadFile(filepath.Join(d.mount(site), ".Snapshot=nightly", "kept"))
		if err != nil || string(got) != "as it was" {
			t.Errorf("at %s: got %q, %v, want what was there before", site, got, err)
		}
	}
}
