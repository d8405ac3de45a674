package command

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

func TestWhatIf_SaysTheOutcomeInWords(t *testing.T) {
	v := whatIfView{whatif.Outcome{
		Before: whatif.Summary{Slices: 3, Protected: 3},
		During: whatif.Summary{Slices: 3, Protected: 1, Under: 1, Waiting: 1},
		After:  whatif.Summary{Slices: 3, Protected: 2, Waiting: 1, Critical: []ids.Site{"boston", "paris"}},
		Sites: []whatif.Site{{Name: "boston",
			OwnBefore: whatif.Latencies{Slices: 1, Median: whatif.Latency{Read: 0, Write: 80 * time.Millisecond}},
			OwnAfter:  whatif.Latencies{Slices: 1, Median: whatif.Latency{Read: 0, Write: 95 * time.Millisecond}},
		}, {Name: "tokyo", Lost: true}},
		Slices: []whatif.SliceChange{{ID: 7, Home: "tokyo",
			Before: whatif.SliceState{Stands: "protected", Active: "t", Site: "tokyo", Copies: []ids.Site{"tokyo", "boston"}},
			During: whatif.SliceState{Stands: "waiting", Active: "t", Site: "tokyo", Copies: []ids.Site{"boston"}},
			After:  whatif.SliceState{Stands: "waiting", Active: "t", Site: "tokyo", Copies: []ids.Site{"boston"}}}},
		Copies: []whatif.Copies{{From: "boston", To: "oslo", Slices: 2, Bytes: 3 << 20, Unknown: 1}},
		CopyNS: 90 * time.Second,
		Notes:  []string{"Something is not known."},
	}, 30 * time.Minute}
	var b bytes.Buffer
	v.text(&b)
	for _, want := range []string{
		"Now:            all 3 slices protected",
		"After seconds:  1 slice protected, 1 slice serving with fewer copies, 1 slice not serving until a member is back",
		"After 31m30s:   2 slices protected, 1 slice not serving until a member is back",
		"In the end the loss of any of boston, paris would stop slices.",
		"boston  0.0              80.0 > 95.0       -            -",
		"tokyo   lost",
		"7      tokyo  tokyo   tokyo boston  boston (not serving)  boston (not serving)",
		"boston  oslo  2       3.0 MiB, and 1 slices of unknown size",
		"They take 1m30s",
		"Note: Something is not known.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
}

func TestWhatIf_ReadsDrainsAndHomes(t *testing.T) {
	got, err := whatIfCmd{Home: []string{"1=oslo"}, Level: []string{"2=3"}, DrainNode: []string{"n"}, DrainSite: []string{"tokyo"}, LoseSite: []string{"rome"}}.changes()
	want := []whatif.Change{{Kind: whatif.LoseSite, Site: "rome"}, {Kind: whatif.DrainSite, Site: "tokyo"}, {Kind: whatif.DrainNode, Node: "n"},
		{Kind: whatif.SetHome, Slice: 1, Site: "oslo"}, {Kind: whatif.SetLevel, Slice: 2, Level: 3}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}
