package command

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
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
