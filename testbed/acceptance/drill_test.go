package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/node/drill"
)

// TestDrill_LosesNothing has the active of the root's slice play dead, and then geo-config
// be away, while the probe writes and reads. Afterwards the tree is whole, by itself.
func TestDrill_LosesNothing(t *testing.T) {
	d := startDemo(t)
	file := filepath.Join(d.mount("tokyo"), "kept")
	if err := os.WriteFile(file, []byte("as it was"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.awaitWhole(time.Minute)
	if out := d.cartwheel("drill", "--kill-active", d.mount("tokyo"), "--dry-run"); !strings.Contains(out, "may begin") {
		t.Errorf("got %q, want that the drill may begin", out)
	}
	out := d.cartwheel("drill", "--kill-active", d.mount("tokyo"), "--for", "4s")
	if !strings.Contains(out, "Recovery point (RPO): 0 of ") {
		t.Errorf("got %s, want that nothing is lost", out)
	}
	d.cartwheel("drill", "--geo-config", "--for", "1s")
	d.awaitWhole(time.Minute)
	var list struct {
		Drills []drill.Record `json:"drills"`
	}
	if err := json.Unmarshal([]byte(d.cartwheel("drill", "--list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Drills) != 2 {
		t.Fatalf("got %+v, want two drills", list.Drills)
	}
	for i, kind := range []drill.Kind{drill.KillActive, drill.GeoConfig} {
		r := list.Drills[i]
		if r.Kind != kind || r.Stopped != drill.Time || r.Lost != 0 || r.Acknowledged == 0 || r.WritePauseMS <= 0 || r.WholeMS < 0 {
			t.Errorf("got %+v, want a whole drill of kind %s, with a pause and without loss", r, kind)
		}
	}
	left, err := filepath.Glob(filepath.Join(d.mount("paris"), "drill-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the probe left %v, %v", left, err)
	}
	if got, err := os.ReadFile(filepath.Join(d.mount("paris"), "kept")); err != nil || string(got) != "as it was" {
		t.Errorf("got %q, %v", got, err)
	}
}
