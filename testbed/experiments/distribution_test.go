package experiments

import (
	"slices"
	"testing"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

func distributionEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := distribution().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Values: values}
}

func TestDistribution_TakesWaysAndRefusesNonsense(t *testing.T) {
	p, err := planDistribution(distributionEnv(t, map[string]string{"ways": "hotspot, one"}))
	if err != nil || len(p.ways) != 2 || p.ways[0].cues != ".Hotspot/.WholeFile" || !p.ways[1].one || p.bytes != 50e6 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, set := range []map[string]string{{"bytes": "0"}, {"bytes": "many"}, {"replicas": "0"}, {"ways": "torrent"}, {"ways": ""}} {
		if p, err := planDistribution(distributionEnv(t, set)); err == nil {
			t.Errorf("%v gave %+v", set, p)
		}
	}
	env := distributionEnv(t, nil)
	env.Short = true
	if p, err := planDistribution(env); err != nil || p.bytes != 2e6 || len(p.ways) != 3 {
		t.Errorf("the short form: %+v, %v", p, err)
	}
}

func TestDistribution_ShowsCopiesForEachSite(t *testing.T) {
	ways := distributionWays()
	p := distributionPlan{bytes: 8e6, replicas: 1, ways: ways}
	rows := []distributionRow{
		{distributionWay: ways[0], Read: []float64{11000}, Bytes: 8.4e6, Sites: 1},
		{distributionWay: ways[2], Read: []float64{12000, 20000, 14000}, Bytes: 16.8e6, Sites: 2},
	}
	top, err := topology.Find("emulab-5x3", topology.Draw{})
	if err != nil {
		t.Fatal(err)
	}
	line := distributionReport(p, top, rows).Plots[0].Lines[1]
	if x, y := (report.Values{0, 12, 12, 14, 14, 20, 20}), (report.Values{0, 0, 1, 1, 2, 2, 3}); !slices.Equal(line.X, x) || !slices.Equal(line.Y, y) {
		t.Errorf("the plot has %v at %v, want %v at %v", line.Y, line.X, y, x)
	}
	want(t, published(t, distributionReport(p, top, rows)), "| one host alone | 1 | 11.0 | 11.0 | 11.0 | 8.40 | 1.05 | direct: 73 |",
		"| all hosts, .Hotspot/.WholeFile | 3 | 12.0 | 14.0 | 20.0 | 16.8 | 1.05 | WheelFS: 168; BitTorrent: 249 |", "not measured here: WheelFS")
}
