package command

import (
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/protocol/status"
)

func TestLacks_SaysWhatIsWrongWithASlice(t *testing.T) {
	yes, no := true, false
	two := []member{{Site: "oslo", State: geoconfig.Normal.String()}, {Site: "rome", State: geoconfig.Normal.String()}}
	for _, c := range []struct {
		name string
		v    sliceView
		want string
	}{
		{"whole", sliceView{Serving: &yes, Members: two, Policy: geoconfig.Policy{Level: 2}}, ""},
		{"a copy short", sliceView{Serving: &yes, Members: two, Policy: geoconfig.Policy{Level: 3}}, "has 2 of 3 copies (oslo:N rome:N)"},
		{"without an answer", sliceView{Members: two, Policy: geoconfig.Policy{Level: 2}}, "has no active that answers"},
		{"not served", sliceView{Serving: &no, Why: "its lease has ended", Members: two, Policy: geoconfig.Policy{Level: 2}}, "does not serve: its lease has ended"},
	} {
		if got := c.v.lacks(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestStatus_TellsOfADrill(t *testing.T) {
	v := statusView{Sentence: "All well.", Drill: &status.Drill{ID: "x", Kind: "cut", LeftNS: 12 * time.Second}}
	var out strings.Builder
	if v.text(&out); !strings.Contains(out.String(), "Note: drill x (cut) is under way, for 12 s more at the most") {
		t.Errorf("got %s", out.String())
	}
}

func TestMixedVersions_SaysWhichNodesAreBehind(t *testing.T) {
	node := func(version string, up bool) nodeView { return nodeView{Version: version, Reachable: up} }
	if got := mixedVersions([]nodeView{node("1.0", true), node("1.0", true), node("", false)}); got != "" {
		t.Errorf("got %q where all that answer run one version", got)
	}
	got := mixedVersions([]nodeView{node("1.1", true), node("1.0", true), node("1.0", true)})
	if want := "nodes run different versions (1.0 at 2, 1.1 at 1): features that not all of them know stay off until the older ones are updated"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDiskText_SaysWhatHoldsEachDisk(t *testing.T) {
	var out strings.Builder
	diskText(&out, []nodeView{
		{Site: "oslo", ID: "12D3KooWabcdefgh", Waiting: 3 << 10, Free: 8 << 10, Disk: &status.Disk{LiveBytes: 1 << 10, RetainedBytes: 2 << 10, EmptyBytes: 4 << 10, JournalBytes: 5 << 10, MetadataBytes: 6 << 10}},
		{Site: "rome", ID: "silent"},
	})
	want := `
DISK OF  NODE       LIVE     RETAINED  WAITING  EMPTY    JOURNAL  METADATA  FREE
oslo     …abcdefgh  1.0 KiB  2.0 KiB   3.0 KiB  4.0 KiB  5.0 KiB  6.0 KiB   8.0 KiB
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if diskText(&out, []nodeView{{Site: "rome"}}); out.Len() > 0 {
		t.Errorf("to a user who may not see it: got %q", out.String())
	}
}
