package acceptance

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// waited is what the test reads of `cartwheel status --wait`.
type waited struct {
	Sentence string `json:"sentence"`
	Waited   struct {
		Foreseen      int   `json:"foreseen_copies"`
		ForeseenBytes int64 `json:"foreseen_bytes"`
		MovedBytes    int64 `json:"moved_bytes"`
	} `json:"waited"`
}

func (d *demo) awaitSettled() waited {
	d.t.Helper()
	var w waited
	if err := json.Unmarshal([]byte(d.cartwheelSays("status", "--wait", "--timeout", "3m", "--json")), &w); err != nil {
		d.t.Fatal(err)
	}
	d.t.Logf("%s %+v", w.Sentence, w.Waited)
	return w
}

// foreseen adds up what a --dry-run would have copied.
func (d *demo) foreseen(words ...string) (slices int, bytes int64) {
	d.t.Helper()
	var p struct {
		Copies []struct {
			Slices  int   `json:"slices"`
			Bytes   int64 `json:"bytes"`
			Unknown int   `json:"unknown"`
		} `json:"copies"`
	}
	text := d.cartwheelSays(append(words, "--dry-run", "--json", "--admin", filepath.Join(d.dir, "admin.json"))...)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		d.t.Fatalf("%v: %s", err, text)
	}
	for _, c := range p.Copies {
		if c.Unknown > 0 {
			d.t.Errorf("%v: %d slices of unknown size", words, c.Unknown)
		}
		slices, bytes = slices+c.Slices, bytes+c.Bytes
	}
	return slices, bytes
}

// near reports whether two amounts of content differ by less than a fifth.
func near(a, b int64) bool { return 5*max(a-b, b-a) < max(a, b) }

// TestMoving_MovesWhatIsForeseen raises a policy, drains a site and wipes a node,
// and waits each time until all is whole: what was moved is what the preview named.
func TestMoving_MovesWhatIsForeseen(t *testing.T) {
	d := startDemo(t, "--sites", "tokyo,boston,paris,sydney", "--no-console", "--lease", "1s")
	admin := []string{"--admin", filepath.Join(d.dir, "admin.json")}
	order := func(words ...string) { t.Helper(); d.cartwheel(append(words, admin...)...) }
	dir := filepath.Join(d.mount("tokyo"), ".RepLevel=2", "moved")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const files, size = 8, 1 << 20
	content := make([]byte, size)
	for i := range files {
		_, _ = rand.Read(content) // it cannot fail
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.awaitSettled()

	slices, bytes := d.foreseen("policy", "set", "all", "--level", "3")
	if slices == 0 || !near(bytes, files*size) {
		t.Errorf("one copy more: got %d slices with %d bytes, want %d", slices, bytes, files*size)
	}
	order("policy", "set", "all", "--level", "3")
	if w := d.awaitSettled(); !near(w.Waited.MovedBytes, bytes) {
		t.Errorf("one copy more: moved %d bytes, and %d were foreseen", w.Waited.MovedBytes, bytes)
	}

	drained := "tokyo" // it leads the files' slice
	if _, bytes = d.foreseen("site", "drain", drained); !near(bytes, files*size) {
		t.Errorf("drain of %s: got %d bytes, want %d", drained, bytes, files*size)
	}
	order("site", "drain", drained)
	if w := d.awaitSettled(); !near(w.Waited.MovedBytes, bytes) {
		t.Errorf("drain of %s: moved %d bytes, and %d were foreseen", drained, w.Waited.MovedBytes, bytes)
	}
	for _, s := range d.slices() {
		for _, m := range s.Members {
			if m.Site == drained {
				t.Errorf("slice %d is at %s still", s.ID, drained)
			}
		}
	}
	order("site", "undrain", drained)
	d.awaitSettled()

	wiped := "tokyo"
	d.fail(wiped)
	d.wipe(wiped)
	d.heal(wiped)
	if w := d.awaitSettled(); !near(w.Waited.MovedBytes, files*size) || !strings.HasPrefix(w.Sentence, "All well") {
		t.Errorf("the wiped node at %s: moved %d bytes, want %d: %s", wiped, w.Waited.MovedBytes, files*size, w.Sentence)
	}
}

// wipe removes all that a node stored, as a new disk does. Its key stays.
func (d *demo) wipe(name string) {
	d.t.Helper()
	dir := filepath.Dir(d.site(name).NodeLog)
	entries, err := os.ReadDir(dir)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "node.key" || strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			d.t.Fatal(err)
		}
	}
}
