package experiments

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// said counts the lines of the lab's logs of one kind of process, since a
// time, in which a phrase stands.
func (b *bed) said(process, phrase string, since time.Time) (int, error) {
	files, err := filepath.Glob(filepath.Join(b.Dir(), "logs", "*-"+process+".log"))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return n, fault.FromOS("experiments.said", name, err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if at, ok := loggedAt(lines.Text()); ok && !at.Before(since) && strings.Contains(lines.Text(), phrase) {
				n++
			}
		}
		err = lines.Err()
		f.Close()
		if err != nil {
			return n, fault.FromOS("experiments.said", name, err)
		}
	}
	return n, nil
}

// loggedAt is the time of a line of a log.
func loggedAt(line string) (time.Time, bool) {
	_, rest, found := strings.Cut(line, "time=")
	if !found {
		return time.Time{}, false
	}
	text, _, _ := strings.Cut(rest, " ")
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}

// readEvents reads what writers noted.
func readEvents(file string) ([]load.Event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.FromOS("experiments.readEvents", file, err)
	}
	defer f.Close()
	return load.ReadEvents(f)
}

func saturateReport(rows []saturateRow, length time.Duration) report.Result {
	t := report.Table{Name: "punctual", Title: "How long what is small took", Columns: []report.Column{
		{Name: "TCP"}, {Name: "the line"}, {Name: "what"}, {Name: "median", Unit: "ms"}, {Name: "p99", Unit: "ms"}, {Name: "longest", Unit: "ms"}, {Name: "count"}, {Name: "failed"},
		{Name: "limit", Unit: "ms"}, {Name: "to reach", Unit: "ms"},
	}}
	lost := report.Table{Name: "lost", Title: "What was lost beside a full line", Columns: []report.Column{
		{Name: "TCP"}, {Name: "the line"}, {Name: "sessions of mounts"}, {Name: "sessions kept beside"}, {Name: "roles in slices"}, {Name: "out", Unit: "Mbit/s"}, {Name: "in", Unit: "Mbit/s"},
	}}
	spread := report.Plot{
		Name: "sessions", Title: "Share of the keep-alives that took at most so long", X: report.Axis{Label: "time, ms", FromZero: true},
		Y: report.Axis{Label: "share", FromZero: true},
	}
	third := report.Number(float64(saturateLease.Milliseconds()) / 3)
	for _, r := range rows {
		line := "empty"
		if r.Full {
			line = "full"
		}
		for _, what := range []struct {
			name   string
			took   []float64
			failed int
			reach  report.Cell
		}{{"keep-alive", r.Sessions.RTT, r.Sessions.Failed, third}, {"beacon", r.Beacons, r.Unheard, third}, {"small file", r.Operations, r.Refused, report.None()}} {
			t.Add(report.Text(r.Control), report.Text(line), report.Text(what.name), report.Number(median(what.took)), report.Number(quantile(what.took, 0.99)),
				report.Number(quantile(what.took, 1)), report.Count(len(what.took)), report.Count(what.failed), report.Number(300), what.reach)
		}
		lost.Add(report.Text(r.Control), report.Text(line), report.Count(r.Lapsed), report.Count(r.Sessions.Lapsed), report.Count(r.Parts), report.Number(r.Out), report.Number(r.In))
		spread.Lines = append(spread.Lines, cumulative(r.Control+", "+line, r.Sessions.RTT))
	}
	return report.Result{
		Title: "saturate: what is small beside what is large, 20 Mbit/s at 300 ms",
		SetUp: fmt.Sprintf("A mount writes large files to the far site and reads one from there, and its own site's node passes large files on to the far one, for %v. "+
			"Beside it a client keeps a session with the far node, the nodes measure each other over their connections for beacons, and a writer works on small files. "+
			"A third of the lease of %v is the limit of what a keep-alive or a beacon may take; nothing fails here, so no session and no part in a slice should be lost.", length, saturateLease),
		Tables: []report.Table{t, lost}, Plots: []report.Plot{spread}, Figures: rows,
	}
}
