package experiments

import (
	"fmt"
	"slices"
	"time"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

// pingsSource is where the figure of WheelFS is from.
const pingsSource = "WheelFS's Table 3, the program with .EventualConsistency; its paper prints no times (docs/experiments.md, Figures of others)"

func pingsReport(p pingsPlan, t *topology.Topology, records []pingsRecord, o outage) report.Result {
	r := report.Result{
		Title: "pings: every host's round trips in a common folder",
		SetUp: fmt.Sprintf("%d hosts, one a city. Every %v each measures its round trips and replaces the file in its own directory, whose home is its site, and reads the files of all others. "+
			"%s loses its wide area for %v after %v. A program without cues and one with run side by side.", len(t.Sites), p.every, p.cut, p.off, p.calm),
		Notes: []string{
			"With .EventualConsistency, which the paper's program uses, a host that is cut off goes on to write and to read what its site has. Without it the host waits, or is answered by an error with .MaxTime.",
			"An operation without cues waits up to 60 s, the mounts' --op-timeout.",
		},
		Tables: []report.Table{pingsSeen(p, records, o), pingsErrors(p, records), pingsMatrix(t, records)},
		Plots:  []report.Plot{pingsPlot(p, records, o)},
	}
	r.Figures = map[string]any{"outage": o, "ways": records}
	return r
}

// pingsView is whose files are read by whom.
type pingsView struct {
	name string
	is   func(by, of string) bool
}

func pingsViews(cut string) []pingsView {
	return []pingsView{
		{cut + "'s, read by others", func(_, of string) bool { return of == cut }},
		{"others', read by " + cut, func(by, _ string) bool { return by == cut }},
		{"others', read by others", func(by, of string) bool { return by != cut && of != cut }},
	}
}

// of are the reads of a view that were answered, in no order.
func (v pingsView) of(events []load.PingEvent) []load.PingEvent {
	var out []load.PingEvent
	for _, e := range events {
		if e.Op == load.OpRead && e.Err == "" && v.is(e.By, e.Is.Host) {
			out = append(out, e)
		}
	}
	return out
}

// ages are how old, in seconds, what was read in a time was.
func ages(reads []load.PingEvent, from, to time.Time) []float64 {
	var out []float64
	for _, e := range reads {
		if !e.End().Before(from) && e.End().Before(to) {
			out = append(out, e.Age().Seconds())
		}
	}
	return out
}

// seenAgain is, for each pair of reader and host, how many seconds after back
// the reader first saw what was measured after it.
func seenAgain(reads []load.PingEvent, back time.Time) []float64 {
	first := map[[2]string]float64{}
	for _, e := range reads {
		if e.Is.At < back.UnixMicro() {
			continue
		}
		pair, at := [2]string{e.By, e.Is.Host}, e.End().Sub(back).Seconds()
		if v, ok := first[pair]; !ok || at < v {
			first[pair] = at
		}
	}
	var out []float64
	for _, v := range first {
		out = append(out, v)
	}
	return out
}

func pingsSeen(p pingsPlan, records []pingsRecord, o outage) report.Table {
	t := report.Table{Name: "seen", Title: "How old the round trips are that a host reads", Columns: []report.Column{
		{Name: "cues"}, {Name: "whose"}, {Name: "calm, median", Unit: "s"}, {Name: "cut off, median", Unit: "s"}, {Name: "oldest", Unit: "s"}, {Name: "reads while cut off"},
		{Name: "new again after, median", Unit: "s"}, {Name: "the last", Unit: "s"}, {Name: "pairs"},
	}}
	for _, r := range records {
		for _, v := range pingsViews(p.cut) {
			reads := v.of(r.Events)
			off, again := ages(reads, o.Off, o.Back), seenAgain(reads, o.Back)
			t.Add(report.Text(r.Name), report.Text(v.name), report.Number(median(ages(reads, o.Off.Add(-p.calm/2), o.Off))), report.Number(median(off)),
				report.Number(quantile(ages(reads, o.Off, o.Back.Add(p.after)), 1)), report.Count(len(off)),
				report.Number(median(again)), report.Number(quantile(again, 1)), report.Count(len(again)))
		}
	}
	return t
}

func pingsErrors(p pingsPlan, records []pingsRecord) report.Table {
	t := report.Table{Name: "errors", Title: "What the programs met", Columns: []report.Column{
		{Name: "cues"}, {Name: "at"}, {Name: "writes"}, {Name: "failed writes"}, {Name: "reads"}, {Name: "failed reads"}, {Name: "longest", Unit: "s"},
		{Name: "older than before"}, {Name: "lost at the end"}, {Name: "WheelFS's program", Source: pingsSource},
	}}
	for _, r := range records {
		for _, at := range []string{p.cut, "others"} {
			var done, failed [2]int // writes, reads
			back, longest := 0, 0.0
			for _, e := range r.Events {
				if (e.By == p.cut) != (at == p.cut) {
					continue
				}
				kind := 0
				if e.Op == load.OpRead {
					kind = 1
				}
				if done[kind]++; e.Err != "" {
					failed[kind]++
				}
				if e.Back {
					back++
				}
				longest = max(longest, float64(e.Took)/1e6)
			}
			lost := report.None()
			if at == p.cut {
				lost = report.Count(len(r.Lost))
			}
			t.Add(report.Text(r.Name), report.Text(at), report.Count(done[0]), report.Count(failed[0]), report.Count(done[1]), report.Count(failed[1]), report.Number(longest),
				report.Count(back), lost, report.Text("13 lines of shell"))
		}
	}
	return t
}

// pingsMatrix is what the program is for: the round trips that one host gathers
// from the files of all.
func pingsMatrix(top *topology.Topology, records []pingsRecord) report.Table {
	t := report.Table{Name: "roundtrips", Title: "Round trips between all hosts, as the common folder tells them at " + pingsCommon, Columns: []report.Column{
		{Name: "from"}, {Name: "to"}, {Name: "median", Unit: "ms"}, {Name: "of the topology", Unit: "ms"}, {Name: "samples"},
	}}
	got := map[[2]string][]float64{}
	seen := map[[2]string]uint64{} // latest version, by way and host
	for _, r := range records {
		for _, e := range r.Events {
			key := [2]string{r.Name, e.Is.Host}
			own := e.Op == load.OpReplace && e.Is.Host == pingsCommon
			if e.By != pingsCommon || e.Err != "" || !own && e.Op != load.OpRead || e.Is.Version <= seen[key] {
				continue
			}
			seen[key] = e.Is.Version
			for to, rtt := range e.Is.RTT {
				pair := [2]string{e.Is.Host, to}
				got[pair] = append(got[pair], rtt)
			}
		}
	}
	for _, from := range top.Sites {
		for _, to := range top.Sites {
			if v := got[[2]string{from.Name, to.Name}]; from.Name != to.Name {
				t.Add(report.Text(from.Name), report.Text(to.Name), report.Number(median(v)), report.Number(float64(top.RTT(from.Name, to.Name))/1e6), report.Count(len(v)))
			}
		}
	}
	return t
}

func pingsPlot(p pingsPlan, records []pingsRecord, o outage) report.Plot {
	plot := report.Plot{
		Name: "age", Title: fmt.Sprintf("How old the round trips were when %s read them", pingsCommon), X: report.Axis{Label: "time, s", FromZero: true},
		Y: report.Axis{Label: "age, s", FromZero: true}, Bands: []report.Band{{Name: p.cut + " cut off", From: p.calm.Seconds(), To: p.calm.Seconds() + o.Back.Sub(o.Off).Seconds()}},
	}
	began := o.Off.Add(-p.calm)
	for _, r := range records {
		for _, of := range []bool{true, false} {
			line := report.Line{Name: p.cut + "'s, " + r.Name, Dashed: !of}
			if !of {
				line.Name = "others', " + r.Name
			}
			reads := slices.DeleteFunc(slices.Clone(r.Events), func(e load.PingEvent) bool {
				return e.Op != load.OpRead || e.Err != "" || e.By != pingsCommon || (e.Is.Host == p.cut) != of
			})
			slices.SortFunc(reads, func(a, b load.PingEvent) int { return a.End().Compare(b.End()) })
			for _, e := range reads {
				line.X, line.Y = append(line.X, e.End().Sub(began).Seconds()), append(line.Y, e.Age().Seconds())
			}
			plot.Lines = append(plot.Lines, line)
		}
	}
	return plot
}
