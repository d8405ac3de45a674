package load

import (
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestNames_AddsToWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []NameOptions{{First: 0, Count: 7}, {First: 7, Count: 8}} {
		o.Dir, o.Each, o.Workers = dir, 5, 3
		if r, err := MakeNames(t.Context(), o); err != nil || r.Names != o.Count || !(r.Seconds > 0) {
			t.Fatalf("MakeNames(%+v) = %+v, %v", o, r, err)
		}
	}
	for d, last := range map[string]string{"d00000": "f00000004", "d00001": "f00000009", "d00002": "f00000014"} {
		if r, err := ListNames(t.Context(), filepath.Join(dir, d)); err != nil || r.Names != 5 {
			t.Errorf("%s lists %+v, %v; want 5 names", d, r, err)
		}
		if info, err := os.Stat(filepath.Join(dir, d, last)); err != nil || info.Size() != 0 {
			t.Errorf("%s in %s: %v; want an empty file", last, d, err)
		}
	}
	if _, err := MakeNames(t.Context(), NameOptions{Dir: dir, First: 3, Count: 1, Each: 5, Workers: 1}); !fault.Is(err, fault.Exists) {
		t.Errorf("a file that is there was made again: %v", err)
	}
}

func TestNames_RefusesNonsense(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []NameOptions{{First: -1, Count: 1, Each: 1, Workers: 1}, {Each: 1, Workers: 1}, {Count: 1, Workers: 1}, {Count: 1, Each: 1}} {
		o.Dir = dir
		if _, err := MakeNames(t.Context(), o); !fault.Is(err, fault.Usage) {
			t.Errorf("MakeNames(%+v) gave %v, want an error of usage", o, err)
		}
	}
	if _, err := ListNames(t.Context(), filepath.Join(dir, "none")); !fault.Is(err, fault.NotFound) {
		t.Errorf("a folder that is not there gave %v", err)
	}
}
