package experiments

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

// pingAt is a read, or a write, that ended so many seconds after zero.
func pingAt(by, op, host string, version uint64, measured, ended float64) load.PingEvent {
	micro := func(s float64) int64 { return zero.UnixMicro() + int64(s*1e6) }
	return load.PingEvent{By: by, Op: op, Is: load.PingSample{Host: host, Version: version, At: micro(measured), RTT: map[string]float64{"tokyo": 200}}, At: micro(ended) - 500, Took: 500}
}

func TestPings_RefusesNonsense(t *testing.T) {
	x := pings()
	top, err := described("pings", pingsYAML)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []map[string]string{{"cut": pingsCommon}, {"cut": "nowhere"}, {"off": "0"}, {"every": "-1"}, {"calm": "none"}} {
		values, err := x.Fill(set)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := planPings(&experiment.Env{Values: values}, top); err == nil {
			t.Errorf("%v gave %+v", set, p)
		}
	}
}

func TestPings_SaysWhenAHostIsSeenAgain(t *testing.T) {
	top, err := described("pings", pingsYAML)
	if err != nil {
		t.Fatal(err)
	}
	p := pingsPlan{cut: "tokyo", calm: 10 * time.Second, off: 20 * time.Second, after: 10 * time.Second, every: time.Second}
	o := outage{Site: "tokyo", Off: zero.Add(10 * time.Second), Back: zero.Add(30 * time.Second)}
	failed := pingAt("tokyo", load.OpReplace, "tokyo", 3, 20, 21)
	failed.Err = "timed out"
	events := []load.PingEvent{
		pingAt("tokyo", load.OpReplace, "tokyo", 1, 8, 8.5), failed,
		pingAt("frankfurt", load.OpRead, "tokyo", 1, 8, 9), pingAt("frankfurt", load.OpRead, "tokyo", 1, 8, 29), // 1 s and 21 s old
		pingAt("frankfurt", load.OpRead, "tokyo", 4, 29, 31), // measured while it was cut off
		pingAt("frankfurt", load.OpRead, "tokyo", 5, 32, 34), pingAt("sydney", load.OpRead, "tokyo", 5, 32, 36), pingAt("sydney", load.OpRead, "tokyo", 6, 37, 38),
	}
	page := published(t, pingsReport(p, top, []pingsRecord{{pingsWay: pingsWays()[0], Events: events, Lost: []string{"tokyo"}}}, o))
	want(t, page, "| no cue | tokyo's, read by others | 1.00 | 21.0 | 21.0 | 1 | 5.00 | 6.00 | 2 |",
		"| no cue | tokyo | 2 | 1 | 0 | 0 | 0.0005 | 0 | 1 | 13 lines of shell |", "| no cue | others | 0 | 0 | 6 | 0 | 0.0005 | 0 | - | 13 lines of shell |",
		"| tokyo | sydney | - |", "not measured here: WheelFS")
}

func TestPings_ABrokenPromiseIsFound(t *testing.T) {
	back := pingAt("frankfurt", load.OpRead, "tokyo", 1, 0, 1)
	back.Back = true
	for _, w := range pingsWays() {
		for name, r := range map[string]pingsRecord{
			"lost":            {pingsWay: w, Lost: []string{"tokyo"}},
			"went back":       {pingsWay: w, Events: []load.PingEvent{back}},
			"all as promised": {pingsWay: w, Events: []load.PingEvent{pingAt("frankfurt", load.OpRead, "tokyo", 1, 0, 1)}},
		} {
			if want := w.cue == "" && name != "all as promised"; r.broken() != want {
				t.Errorf("%s, %s: broken is %v", w.Name, name, r.broken())
			}
		}
	}
}

func TestPings_LooksForWhatWasAcknowledgedLast(t *testing.T) {
	dir := t.TempDir()
	at := place{site: "tokyo", mount: dir}
	for _, w := range pingsWays() {
		folder := filepath.Join(dir, w.dir, "tokyo")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		events := `{"by":"tokyo","op":"replace","is":{"host":"tokyo","version":4}}` + "\n" + `{"by":"tokyo","op":"replace","is":{"host":"tokyo","version":5},"err":"timed out"}` + "\n"
		for name, text := range map[string]string{
			filepath.Join(dir, pingsFile(w, "tokyo")): events, filepath.Join(folder, "pings"): `{"host":"tokyo","version":` + map[bool]string{true: "3", false: "4"}[w.strict()] + `}`,
		} {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := pingsRecords([]place{at}, func(name string) string { return filepath.Join(dir, name) })
	if err != nil || len(got) != len(pingsWays()) || len(got[0].Lost) != 1 || len(got[1].Lost) != 0 {
		t.Errorf("got %+v, %v; want that version 4 is missing where 3 is", got, err)
	}
}
