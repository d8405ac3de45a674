package experiments

import (
	"testing"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func scalabilityEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	x := scalability()
	values, err := x.Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Values: values}
}

func TestScalability_RefusesNonsense(t *testing.T) {
	for _, set := range []map[string]string{{"clients": "0"}, {"files": "0"}, {"bytes": "none"}, {"replicas": "0"}, {"mbit": "0"}} {
		if p, err := planScalability(scalabilityEnv(t, set)); err == nil {
			t.Errorf("%v gave %+v", set, p)
		}
	}
}

func TestScalability_ComparesSpreadFilesWithOneServer(t *testing.T) {
	p := scalabilityPlan{clients: []int{2, 1}, owners: 2, files: 1, bytes: 1e6, replicas: 1, mbit: 10, rtt: 100}
	second := func(from, to float64) load.SetResult {
		return load.SetResult{Began: int64(from * 1e6), Ended: int64(to * 1e6), Bytes: 1e6, Read: []float64{1000 * (to - from)}}
	}
	spread, one := scalabilityLayouts()[0], scalabilityLayouts()[1]
	rows := []scalabilityRow{ // more clients first
		newScalabilityRow(spread, []load.SetResult{second(0, 1), second(1, 2)}), newScalabilityRow(one, []load.SetResult{second(0, 2), second(0, 2)}),
		newScalabilityRow(spread, []load.SetResult{second(5, 6)}), newScalabilityRow(one, []load.SetResult{second(5, 6)}),
	}
	want(t, published(t, scalabilityReport(p, rows)), "| all sites | 1 | 1.00 | 1.00 | 100 | 8.00 | 10.0 | flat |", "| all sites | 2 | 1.00 | 1.00 | 100 | 8.00 | 20.0 | flat |",
		"| one server | 2 | 2.00 | 2.00 | 200 | 8.00 | 10.0 | rises past about 100 clients |", "not measured here: WheelFS")
}
