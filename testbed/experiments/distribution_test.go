package experiments

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
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
	if p, err := planDistribution(distributionEnv(t, nil)); err != nil || len(p.ways) != 5 || !p.ways[3].past || !p.ways[4].past {
		t.Errorf("the whole form: %+v, %v", p, err)
	}
	env := distributionEnv(t, nil)
	env.Short = true
	if p, err := planDistribution(env); err != nil || p.bytes != 6e5 || len(p.ways) != 3 {
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
		"| all hosts, .Hotspot/.WholeFile | 3 | 12.0 | 14.0 | 20.0 | 16.8 | 1.05 | WheelFS: 168 |", "not measured here: WheelFS")
}

// swarmHere is a swarm of processes on this machine's loopback.
func swarmHere(t *testing.T, members int) *swarm {
	t.Helper()
	if err := torrentNeeds(t.Context()); err != nil {
		t.Fatal(err)
	}
	family := supervisor.New()
	t.Cleanup(family.Close)
	logs := t.TempDir()
	s := &swarm{plan: distributionPlan{bytes: 300000}, dir: filepath.Join(t.TempDir(), "swarm")}
	s.start = func(m place, argv ...string) (*supervisor.Child, error) {
		return family.Spawn(supervisor.Spec{Name: m.host, Log: filepath.Join(logs, m.host), Command: exec.Command(argv[0], argv[1:]...)})
	}
	for i := range members {
		s.members = append(s.members, place{host: fmt.Sprint("member", i), run: func(ctx context.Context, argv ...string) ([]byte, error) {
			var out bytes.Buffer
			err := load.Main(ctx, argv[2:], &out)
			return out.Bytes(), err
		}})
		s.addresses = append(s.addresses, fmt.Sprintf("127.0.7.%d:6881", i+1))
	}
	return s
}

func TestTorrent_BringsTheFileToAll(t *testing.T) {
	took, err := swarmHere(t, 3).bring(t.Context(), 5)
	if err != nil || len(took) != 2 || took[0] <= 0 || took[1] <= 0 {
		t.Errorf("got %v, %v", took, err)
	}
}

func TestTorrent_SaysWhoEnded(t *testing.T) {
	s := swarmHere(t, 2)
	start := s.start
	s.start = func(m place, argv ...string) (*supervisor.Child, error) {
		if m.host == "member1" {
			argv = []string{"/bin/sh", "-c", `echo '{"ready":true}'`}
		}
		return start(m, argv...)
	}
	if _, err := s.bring(t.Context(), 5); err == nil || !bytes.Contains([]byte(err.Error()), []byte("member1")) {
		t.Errorf("got %v, want that member1 ended", err)
	}
}

func TestTorrent_ComparesWhatCame(t *testing.T) {
	s := swarmHere(t, 2)
	start := s.start
	s.start = func(m place, argv ...string) (*supervisor.Child, error) {
		if m.host == "member1" { // says at once that it has the file
			argv = append([]string{"/bin/sh", "-c", `echo else >"$2/file-000"; echo '{"read_ms":[1]}' >"$4"; echo '{"ready":true}'; exec sleep 60`}, argv[2:]...)
		}
		return start(m, argv...)
	}
	if took, err := s.bring(t.Context(), 5); !fault.Is(err, fault.Corrupt) {
		t.Errorf("got %v, %v; want that the file is another", took, err)
	}
}
