package experiments

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func scaleEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := scale().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestScale_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"files": {"", "0", "many", "1e9"}, "each": {"0", "NaN"}, "lease": {"0", "60"}, "workers": {"0"}, "writers": {"-1"}, "calm": {"0", "Inf"},
	} {
		for _, v := range values {
			if p, err := planScale(scaleEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
}

func TestScale_GrowsStepByStep(t *testing.T) {
	p, err := planScale(scaleEnv(t, map[string]string{"files": "1000, 10,1000"}))
	if err != nil || len(p.files) != 2 || p.files[0] != 10 || p.files[1] != 1000 {
		t.Fatalf("got sizes %v, %v; want 10 and 1000", p.files, err)
	}
	top, err := p.topology()
	if err != nil || top.Nodes() != scaleLevel || len(top.Sites) != scaleLevel || top.Lease != p.lease {
		t.Errorf("got the topology %+v, %v; want three sites with a node each", top, err)
	}
}

func TestScale_WeighsFoldersAndMemory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "a/two", "a/b/three"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "one"), 1<<40); err != nil { // a hole takes no room
		t.Fatal(err)
	}
	if got, err := folderBytes(dir); err != nil || got < 3<<20 || got > 4<<20 {
		t.Errorf("three files of 1 MiB take %d bytes, %v", got, err)
	}
	if _, err := folderBytes(filepath.Join(dir, "none")); !fault.Is(err, fault.NotFound) {
		t.Errorf("a folder that is not there gave %v", err)
	}
	if got, err := anonymous("VmRSS:\t  9000 kB\nRssAnon:\t    1500 kB\nRssFile:\t 7500 kB\n"); err != nil || got != 1500<<10 {
		t.Errorf("got %d bytes, %v; want 1500 KiB", got, err)
	}
	if _, err := anonymous("VmRSS:\t9000 kB\n"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a status without RssAnon gave %v", err)
	}
	if got, err := ownMemory(os.Getpid()); err != nil || got < 1<<20 {
		t.Errorf("this process has %d bytes of its own, %v", got, err)
	}
}

func TestScale_TellsGapsApart(t *testing.T) {
	p := scalePlan{files: []int{100, 1000}, each: 1000, workers: 8, writers: 2, lease: time.Second, calm: 4 * time.Second}
	// Ten changes a second, but for a pause of a second from 6 s and one of 2 s from 10 s.
	events := steady(20, 10, func(s int) bool { return s == 6 || s == 10 || s == 11 })
	r := scaleRow{Files: 1000, Added: 900, Made: 3, Slices: 4, Objects: 1010, Meta: 250e3, Journal: 2e6, Memory: 30e6, Snapshot: 12, Ready: 1.5,
		Listed: load.NameResult{Names: 1000, Seconds: 0.5}, Verdict: load.Verdict{Acknowledged: 700}}
	r.gaps(events, scaleTimes{calm: zero.Add(2 * time.Second), snapshot: zero.Add(5 * time.Second), killed: zero.Add(10 * time.Second)}, p)
	if r.Calm > 150 || r.Beside < 950 || r.Beside > 1150 || r.Takeover < 1.9 || r.Takeover > 2.2 {
		t.Errorf("got gaps of %g and %g ms, and a takeover of %g s; want about 100, 1,000 and 2", r.Calm, r.Beside, r.Takeover)
	}
	whole := 2.5
	first := scaleRow{Files: 100, Added: 100, Made: 1, Listed: load.NameResult{Names: 100, Seconds: 1}, Meta: 50e3, Memory: 20e6, Whole: &whole}
	text := published(t, scaleReport(p, []scaleRow{first, r}))
	want(t, text, "| 1000 | 4 | 300 | 0.25 | 250 | 2.00 | 30.0 | 0.15 |", "| 100 | 0 | 100 | 100 |", "not measured here: HDFS's NameNode")
}
