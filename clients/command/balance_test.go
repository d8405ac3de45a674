package command

import (
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/whatif"
)

// balancing parses the words of a `balance set`.
func balancing(t *testing.T, words ...string) balanceSetCmd {
	t.Helper()
	p, g := program(Stdio{})
	if _, err := p.Parse(append([]string{"balance", "set"}, words...)); err != nil {
		t.Fatal(err)
	}
	return g.Balance.Set
}

func TestBalanceSet_ReadsWhatChanges(t *testing.T) {
	for words, want := range map[string]string{
		"oslo --high 90 --low 80":    "from above 90% down to 80%",
		"oslo --high 95":             "from above 95% down to 75%",
		"oslo --off":                 "off (from above 85% down to 75%)",
		"oslo --on":                  "from above 85% down to 75%",
		"oslo --dry-run":             "from above 85% down to 75%",
		"all --dry-run --rate 100.5": "from above 85% down to 75%",
	} {
		c := balancing(t, strings.Fields(words)...)
		change, err := c.change()
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		sites, err := c.chosen([]geoconfig.Site{{Name: "bonn"}, {Name: "oslo"}}, change)
		if err != nil || changes.BalanceText(sites[1].Marks()) != want || (sites[0].Balance != nil) != (c.Site == "all") {
			t.Errorf("%s: got %+v, %v; want %s", words, sites, err, want)
		}
	}
	for _, words := range []string{"oslo", "oslo --on --off", "oslo --off --rate 5", "oslo --dry-run --rate=-1"} {
		if _, err := balancing(t, strings.Fields(words)...).change(); !fault.Is(err, fault.Usage) {
			t.Errorf("%s: got %v, want Usage", words, err)
		}
	}
	for words, kind := range map[string]fault.Kind{"nowhere --off": fault.NotFound, "oslo --high 100": fault.Invalid, "oslo --low 84": fault.Invalid} {
		c := balancing(t, strings.Fields(words)...)
		change, err := c.change()
		if err == nil {
			_, err = c.chosen([]geoconfig.Site{{Name: "oslo"}}, change)
		}
		if !fault.Is(err, kind) {
			t.Errorf("%s: got %v, want %v", words, err, kind)
		}
	}
}

// TestForeseeMoves_CountsAndTellsWhatStays has one site of two nodes with 1,000 bytes.
func TestForeseeMoves_CountsAndTellsWhatStays(t *testing.T) {
	node := func(id ids.Node, used int64) whatif.Node {
		return whatif.Node{Node: geoconfig.Node{ID: id, Site: "oslo", Incarnation: 1, CapacityBytes: 1000, UsedBytes: used}}
	}
	row := func(id ids.Slice, bytes int64, at ids.Node) whatif.Slice {
		return whatif.Slice{Bytes: bytes, SliceRow: geoconfig.SliceRow{ID: id, Active: at, Policy: geoconfig.Policy{Home: "oslo", Level: 1, Sites: 1},
			Members: []geoconfig.Member{{Node: at, State: geoconfig.Normal}}}}
	}
	s := whatif.State{Nodes: []whatif.Node{node("a1", 950), node("a2", 100)}, Slices: []whatif.Slice{row(1, 125, "a1"), row(2, whatif.UnknownSize, "a1")}}
	v := foreseeMoves(&s, marksOf(nil), 0.001)
	var text strings.Builder
	v.text(&text)
	for _, want := range []string{"1 slices move, 125 B, which takes 1s or more.", "The size of 1 slices is not known"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got %s, want %q in it", &text, want)
		}
	}
	if len(v.Moves) != 1 || v.Moves[0].To != "a2" || v.Bytes != 125 || len(v.Stuck) != 0 {
		t.Errorf("got %+v", v)
	}
	s.Nodes[1].Away = true
	text.Reset()
	v = foreseeMoves(&s, marksOf(nil), 0)
	if v.text(&text); len(v.Stuck) != 1 || !strings.Contains(text.String(), "Nothing moves.") || !strings.Contains(text.String(), "add a node at oslo") {
		t.Errorf("got %s, want what would help", &text)
	}
}

func TestStatus_SaysWhatABalancingNodeDoes(t *testing.T) {
	n := nodeView{ID: "12D3KooWTMFqeQKx", Site: "oslo"}
	if got := n.balancing(false); got != "" {
		t.Errorf("got %q of a node that says nothing", got)
	}
	n.Balance = &status.Balance{HighPercent: 85, LowPercent: 75, Fill: "high", Giving: 7, To: "12D3KooWabcdefgh"}
	if got := n.balancing(false); !strings.Contains(got, "gives slice 7 to") {
		t.Errorf("got %q", got)
	}
	n.Balance.Giving, n.Balance.Remedy = 0, "no node could take a slice: add a node at oslo"
	if got := n.balancing(false); !strings.Contains(got, "add a node at oslo") || !strings.Contains(got, "above 85%") {
		t.Errorf("got %q", got)
	}
	if got := n.balancing(true); got != "" {
		t.Errorf("got %q in a demo, whose nodes share a disk", got)
	}
}
