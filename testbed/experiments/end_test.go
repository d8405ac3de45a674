package experiments

import (
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/load"
)

func TestLost_NamesTheFirst(t *testing.T) {
	of := func(v load.Verdict) (string, load.Verdict) { return "a run", v }
	if err := lost([]load.Verdict{{}, {}}, of); err != nil {
		t.Errorf("nothing was lost: got %v", err)
	}
	err := lost([]load.Verdict{{}, {Lost: []string{"first", "second"}}, {Lost: []string{"third"}}}, of)
	if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "a run: 2 acknowledged changes were lost: first") {
		t.Errorf("changes were lost in two runs: got %v, want Corrupt with the first", err)
	}
}
