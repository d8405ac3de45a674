package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

func TestWhatIf_LossOfASiteComesTrue(t *testing.T) {
	d := startDemo(t)
	for _, s := range d.Sites { // a slice of each site's own
		if err := os.WriteFile(filepath.Join(s.Mount, "of-"+s.Name), []byte(s.Name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var said whatif.Outcome
	if err := json.Unmarshal([]byte(d.cartwheel("what-if", "--lose-site", d.rootActive(), "--json")), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Slices) < 3 {
		t.Fatalf("the loss of the root's site changes only %d slices", len(said.Slices))
	}
	d.fail(d.rootActive())
	d.await("every slice to stand as was predicted", 30*time.Second, func() error {
		now := d.slices()
		for _, want := range said.Slices {
			i := slices.IndexFunc(now, func(s slice) bool { return s.ID == uint32(want.ID) })
			if i < 0 {
				return fmt.Errorf("slice %d is not listed", want.ID)
			}
			var copies []ids.Site
			for _, m := range now[i].Members {
				if m.State == "N" {
					copies = append(copies, ids.Site(m.Site))
				}
			}
			if now[i].Active.Site != string(want.During.Site) || !slices.Equal(copies, want.During.Copies) {
				return fmt.Errorf("slice %d is active at %s with copies at %v; predicted: %s, %v", want.ID, now[i].Active.Site, copies, want.During.Site, want.During.Copies)
			}
		}
		return nil
	})
}
