package load

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// sets plants the files of three owners.
func sets(t *testing.T) SetOptions {
	t.Helper()
	o := SetOptions{Dir: t.TempDir(), Owners: 3, Files: 4, Bytes: 100, Reads: 8, Seed: 5}
	for o.Own = range o.Owners {
		if err := os.Mkdir(filepath.Join(o.Dir, SetFolder(o.Own)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := PlantSet(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func TestReadSet_ReadsEachFileOfTheOthers(t *testing.T) {
	o := sets(t)
	for o.Own = range o.Owners {
		own := filepath.Join(o.Dir, SetFolder(o.Own))
		if err := os.Rename(own, own+"-away"); err != nil { // a reader needs none of its own
			t.Fatal(err)
		}
		r, err := ReadSet(t.Context(), o)
		if err != nil || len(r.Read) != 8 || r.Bytes != 800 || r.Ended < r.Began {
			t.Errorf("owner %d: got %+v, %v; want all 8 files of the others", o.Own, r, err)
		}
		if err := os.Rename(own+"-away", own); err != nil {
			t.Fatal(err)
		}
	}
	o.Own, o.Reads = 0, 9
	if _, err := ReadSet(t.Context(), o); !fault.Is(err, fault.Usage) {
		t.Errorf("9 files of 8: got %v", err)
	}
}

func TestReadSet_FindsADifference(t *testing.T) {
	o := sets(t)
	if err := os.WriteFile(o.path(4), bytes.Repeat([]byte("x"), o.Bytes), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Own = 0
	if _, err := ReadSet(t.Context(), o); !fault.Is(err, fault.Corrupt) {
		t.Errorf("got %v, want that the file holds something else", err)
	}
}

func TestMain_PlantsAndReadsSets(t *testing.T) {
	dir := t.TempDir()
	for own, name := range []string{SetFolder(0), SetFolder(1)} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		words := []string{"set", "plant", dir, "--owners", "2", "--own", []string{"0", "1"}[own], "--files", "2", "--bytes", "10"}
		if err := Main(t.Context(), words, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	words := []string{"set", "read", dir, "--owners", "2", "--own", "1", "--files", "2", "--bytes", "10", "--reads", "2"}
	if err := Main(t.Context(), words, &out); err != nil || !strings.Contains(out.String(), `"bytes":20`) {
		t.Errorf("got %s, %v", out.String(), err)
	}
}
