package experiments

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/load"
)

func TestLost_NamesTheFirst(t *testing.T) {
	of := func(v load.Verdict) (string, load.Verdict) { return "a run", v }
	if err := lost([]load.Verdict{{}, {}}, of); err != nil {
		t.Errorf("nothing was lost: got %v", err)
	}
	if err := lost([]load.Verdict{{}, {Lost: []string{"first", "second"}}}, of); !fault.Is(err, fault.Corrupt) {
		t.Errorf("two changes were lost: got %v, want Corrupt", err)
	}
}
