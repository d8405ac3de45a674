package command

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/servertest"
)

func TestScrubText_SaysWhatIsLostAndWhatToDo(t *testing.T) {
	end := time.Date(2026, 11, 27, 9, 30, 0, 0, time.Local)
	v := scrubView{Nodes: []scrubNode{
		{Site: "oslo", Node: "12D3KooWabcdefgh", Scrub: &status.Scrub{EndedAtNS: end.UnixNano(), Running: true, Phase: "chunks", DoneShare: 0.25, LostChunks: 1,
			Total:     status.ScrubCounts{Damaged: 3, Missing: 2, Repaired: 4, ReadErrors: 1},
			Lost:      []status.LostChunk{{Chunk: "abcd", Slices: []ids.Slice{1, 7}, Objects: []ids.Object{ids.Object(1<<40 | 9)}, Unasked: true}},
			Different: []status.DifferentState{{Slice: 5, Serial: 77, With: "12D3KooWijklmnop"}}}},
		{Site: "rome", Node: "12D3KooWijklmnop", Scrub: &status.Scrub{Running: true, Phase: "records", Different: []status.DifferentState{{Slice: 6, Serial: 78, With: "12D3KooWabcdefgh", ActiveDiffers: true}}}},
		{Site: "lima", Node: "12D3KooWqrstuvwx", Error: "does not answer"},
	}}
	want := `SCRUB OF  NODE       LAST ENDED        NOW             DAMAGED  MISSING  REPAIRED  READ ERRORS  LOST  DIFFERENT
oslo      …abcdefgh  2026-11-27 09:30  25 % of chunks  3        2        4         1            1     1
rome      …ijklmnop  never             records         0        0        0         0            0     1
Lost at oslo: chunk abcd of slices [1 7], in objects ` + ids.Object(1<<40|9).String() + `; a member that may have it does not answer
Different at oslo: the state of slice 5 at serial 77, from that of …ijklmnop; it is made anew
Different at rome: the state of slice 6 at serial 78, from that of …abcdefgh, which is the active; two standbys are equal: cartwheel slice hand-over 6
lima …qrstuvwx: does not answer
`
	var out strings.Builder
	if v.text(&out); out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestScrubVerdict_FailsWhereSomethingIsLost(t *testing.T) {
	silent := fault.E(fault.Unreachable, "", "", "")
	for name, c := range map[string]struct {
		scrub  status.Scrub
		err    error
		strict bool
		want   int
	}{
		"all is well":             {status.Scrub{}, nil, true, fault.ExitOK},
		"repaired":                {status.Scrub{Total: status.ScrubCounts{Damaged: 1, Repaired: 1}}, nil, true, fault.ExitOK},
		"lost":                    {status.Scrub{LostChunks: 1}, nil, true, fault.ExitCorrupt},
		"lost, and only begun":    {status.Scrub{LostChunks: 1}, nil, false, fault.ExitOK},
		"different":               {status.Scrub{Different: make([]status.DifferentState, 1)}, nil, true, fault.ExitCorrupt},
		"a node that is silent":   {status.Scrub{}, silent, true, fault.ExitUnavailable},
		"not begun at a node yet": {status.Scrub{}, silent, false, fault.ExitUnavailable},
	} {
		v := scrubView{Nodes: []scrubNode{{Node: "a", Scrub: &c.scrub, err: c.err}}}
		if got := fault.ExitCode(v.verdict(c.strict)); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
}

// TestScrub_WaitsForAllNodes orders a scrub of a cluster as an administrator, and tries to as
// somebody else.
func TestScrub_WaitsForAllNodes(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	if code, _, said := askerOf(t, c, "ann").run("scrub"); code != fault.ExitPermission {
		t.Errorf("somebody else's order: exit code %d, %s; want %d", code, said, fault.ExitPermission)
	}
	var v scrubView
	a.json(&v, "scrub", "--wait", "--rate", "64")
	if len(v.Nodes) != 3 {
		t.Fatalf("got %+v, want three nodes", v)
	}
	for _, n := range v.Nodes {
		if n.Begun != 1 || n.Scrub == nil || n.Scrub.EndedRound != 1 || n.Scrub.Running {
			t.Errorf("%s: %+v %+v", n.Site, n, n.Scrub)
		}
	}
	code, out, said := a.run("scrub", "--wait", string(v.Nodes[1].Node[len(v.Nodes[1].Node)-8:]))
	if code != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(out, string(v.Nodes[1].Site)) {
		t.Errorf("one node: exit code %d, %s%s", code, out, said)
	}
	if code, out, said := askerOf(t, c, "ann").run("scrub", "--report"); code != 0 || !strings.Contains(out, "paris") {
		t.Errorf("somebody else's question: exit code %d, %s%s", code, out, said)
	}
	if code, out, _ := a.run("status"); code != 0 || !strings.Contains(out, "SCRUB OF") {
		t.Errorf("status: exit code %d, %s", code, out)
	}
	if code, _, said := a.run("scrub", "nowhere"); code != fault.ExitNotFound {
		t.Errorf("of no node: exit code %d, %s", code, said)
	}
}
