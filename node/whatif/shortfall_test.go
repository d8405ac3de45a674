package whatif

import (
	"strings"
	"testing"

	"cartwheel.dev/geo-config/ids"
)

func TestPredict_SaysWhatStaysShort(t *testing.T) {
	crowded := five()
	crowded.Slices = append(crowded.Slices, slice(4, 5, 1, "tokyo", "boston", "paris", "oslo", "lima"))
	spread := five()
	for i := range spread.Nodes { // three of the nodes stand at paris
		if spread.Nodes[i].ID == "oslo" || spread.Nodes[i].ID == "lima" {
			spread.Nodes[i].Site = "paris"
		}
	}
	strict := spread
	strict.Slices = append([]Slice(nil), spread.Slices...)
	strict.Slices[0].Policy.Sites = 3
	for name, c := range map[string]struct {
		state   State
		changes []Change
		want    []string // parts of the notes, in their order
	}{
		"nothing changes":             {crowded, nil, nil},
		"a drain that ends":           {five(), []Change{{Kind: DrainSite, Site: "tokyo"}}, nil},
		"a drain that cannot end":     {crowded, []Change{{Kind: DrainNode, Node: "lima"}}, []string{"The drain at lima cannot end: no other node can take the copies of slice 4."}},
		"a loss without a substitute": {crowded, []Change{{Kind: LoseSite, Site: "oslo"}}, []string{"Copies of slice"}},
		"a level beyond the nodes":    {five(), []Change{{Kind: SetLevel, Slice: 3, Level: 6}}, []string{"Copies of slice"}},
		"fewer sites than before":     {spread, []Change{{Kind: DrainSite, Site: "boston"}}, []string{"Fewer sites than before hold copies of slice 1"}},
		"fewer sites than named":      {strict, []Change{{Kind: LoseSite, Site: "boston"}}, []string{"Fewer sites than before hold copies of slice 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			notes := predict(t, c.state, c.changes...).Notes
			found := 0
			for _, n := range notes {
				if strings.Contains(n, "size of some slices") {
					continue
				}
				if found >= len(c.want) || !strings.Contains(n, c.want[found]) {
					t.Errorf("note %d is %q, want %q", found, n, c.want)
				}
				found++
			}
			if found < len(c.want) {
				t.Errorf("got %d of the notes %q: %q", found, c.want, notes)
			}
		})
	}
}

func TestNamed_IsBounded(t *testing.T) {
	list := []ids.Slice{1, 2, 3, 4, 5, 6, 7}
	for n, want := range map[int]string{1: "slice 1", 5: "slices 1, 2, 3, 4, 5", 7: "slices 1, 2, 3, 4, 5 and 2 more"} {
		if got := named(list[:n]); got != want {
			t.Errorf("%d slices are named %q, want %q", n, got, want)
		}
	}
}
