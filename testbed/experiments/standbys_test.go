package experiments

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func standbysEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := standbys().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestStandbys_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"rtts": {"", "-1", "far"}, "levels": {"0", "6", "1.5", "1,"}, "actives": {"", "0", "6", "2.5"}, "workers": {"0", "NaN", "many"}, "seconds": {"0", "1e9"}, "rounds": {"0", "Inf"},
	} {
		for _, v := range values {
			if p, err := planStandbys(standbysEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
}

func TestStandbys_HasFiveNodes(t *testing.T) {
	p, err := planStandbys(standbysEnv(t, map[string]string{"levels": "5,1,5"}))
	if err != nil || len(p.levels) != 2 || p.levels[0] != 1 {
		t.Fatalf("got levels %v, %v; want 1 and 5", p.levels, err)
	}
	for rtt, sites := range map[float64]int{0: 1, 20: standbysMost} {
		top, err := p.topology(rtt)
		if err != nil {
			t.Fatal(err)
		}
		if top.Nodes() != standbysMost || len(top.Sites) != sites || top.Hosts[0].Site != standbysSite {
			t.Errorf("%g ms: got %d nodes at %d sites, want 5 at %d", rtt, top.Nodes(), len(top.Sites), sites)
		}
	}
}

func TestStandbys_TellsWhatEachMoreCosts(t *testing.T) {
	p := standbysPlan{rtts: []float64{0, 20}, levels: []int{1, 3}, actives: []int{1, 3}, workers: 1, rounds: 3}
	turn := func(creates ...float64) load.BoxResult {
		return load.BoxResult{Began: 1e6, Ended: 2e6, Create: creates}
	}
	rows := []standbysRow{
		{RTT: 0, Level: 1, Rounds: []load.BoxResult{turn(1, 1, 1, 1), turn(2, 2, 2, 2), turn(9)}},
		{RTT: 0, Level: 3, Rounds: []load.BoxResult{turn(3, 3, 3), turn(4, 4, 4), {Began: 0, Ended: 1e6, Create: []float64{5, 5, 5}, Failed: 2}}},
		{RTT: 20, Level: 1, Rounds: []load.BoxResult{turn(7, 7)}},
		{RTT: 20, Level: 2, Rounds: []load.BoxResult{turn(7, 7)}},
	}
	actives := []activesRow{
		{RTT: 20, Clients: 1, Actives: 1, Rounds: []activesTurn{{Rate: 100}, {Rate: 300}, {Rate: 200}}},
		{RTT: 20, Clients: 3, Actives: 2, Rounds: []activesTurn{{Rate: 500, Failed: 1}}},
	}
	r := standbysReport(p, rows, actives)
	want(t, published(t, r), "| 0 | 1 | 4.00 | 2.00 | 9.00 | 100 | - | 0 | - |", "| 0 | 3 | 3.00 | 4.00 | 5.00 | 75.0 | 12.5 | 2 | about 4 |",
		"| 20.0 | 2 | 2.00 | 7.00 | 7.00 | 100 | 0 | 0 | about 4 |", "| 20.0 | 1 | 1 | 200 | 100 | 0 |", "| 20.0 | 3 | 2 | 500 | 250 | 1 |", "not measured here: CFS with MAMS")
	if lines := r.Plots[0].Lines; len(lines) != 3 || !lines[2].Dashed || lines[2].Y[1] != 92 {
		t.Errorf("the lines are %+v, want ours for each round trip and MAMS's dashed", lines)
	}
}

func TestStandbys_AddsUpTheClients(t *testing.T) {
	turn := turnOf([]load.BoxResult{
		{Began: 1e6, Ended: 2e6, Create: []float64{1, 2, 3}, Failed: 1},
		{Began: 15e5, Ended: 3e6, Create: []float64{1}, Lost: []string{"f"}},
	})
	if turn.Rate != 2 || turn.Failed != 1 || len(turn.Lost) != 1 {
		t.Errorf("got %+v, want 4 creates in 2 s, one failure and one loss", turn)
	}
	rows := []activesRow{{Clients: 2, Rounds: []activesTurn{turn}}}
	if got := lostOf(nil, rows); got != "2 actives: f" {
		t.Errorf("lost: %q", got)
	}
}
