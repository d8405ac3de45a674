package experiments

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/wan"
)

const syncthingSource = "Syncthing over 200 Mbit/s at 150 ms (docs/experiments.md, Figures of others)"

// Sites of the pipe, and its line.
const (
	pipeNear = "near"
	pipeFar  = "far"
	pipeMbit = 200
	pipeYAML = `
name: pipe
sites:
  - {name: near, nodes: 1, link: {rate: 200 Mbps}}
  - {name: far, nodes: 1, link: {rate: 200 Mbps}}
wan: {rtt: 150 ms}
`
)

func pipe() experiment.Experiment {
	return experiment.Experiment{
		Name:    "pipe",
		Summary: "fill 200 Mbit/s at 150 ms with one large file, with and without 0.1 % loss",
		Settings: []experiment.Setting{
			{Name: "bytes", Default: "536870912", Help: "bytes of the file (16 MiB in the short form)"},
			{Name: "rounds", Default: "3", Help: "files a loss (1 in the short form)"},
			{Name: "losses", Default: "0,0.001", Help: "shares of the packets that are lost"},
		},
		Run: runPipe,
	}
}

// pipeRow is one file, written or read once.
type pipeRow struct {
	Loss float64 `json:"loss"`
	Way  string  `json:"way"`
	load.StreamResult
	// Line is what the emulator let through in the file's direction, in
	// Mbit/s, and LineAt when, in seconds since the start.
	LineAt report.Values `json:"line_at_s"`
	Line   report.Values `json:"line_mbit"`
}

// percent is the share of the line that the file's own bytes filled.
func (r pipeRow) percent() float64 { return 100 * r.Mbit() / pipeMbit }

func runPipe(ctx context.Context, env *experiment.Env) error {
	size, err := env.Number("bytes")
	if err != nil {
		return err
	}
	rounds, err := env.Number("rounds")
	if err != nil {
		return err
	}
	if env.Short {
		size, rounds = min(size, 16<<20), 1
	}
	losses, err := numbers(env.Text("losses"), 0, 1)
	if err != nil {
		return err
	}
	t, err := described("pipe", pipeYAML)
	if err != nil {
		return err
	}
	f, err := env.Folder("pipe", t)
	if err != nil {
		return err
	}
	var rows []pipeRow
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) error {
		rows = nil
		for _, loss := range losses {
			for round := range int(rounds) {
				b.say("pipe: loss %g, round %d", loss, round+1)
				got, err := pipeOnce(ctx, b, loss, int64(size), fmt.Sprintf("file-%g-%d", loss, round), env.Seed+uint64(len(rows)))
				rows = append(rows, got...)
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := pipeReport(rows, int64(size), losses)
	return out.end(f, env, r, nil)
}

// pipeOnce writes one file whose only replica is at the far site, and reads it
// back cold.
func pipeOnce(ctx context.Context, b *bed, loss float64, size int64, name string, seed uint64) ([]pipeRow, error) {
	near, err := b.at(pipeNear)
	if err != nil {
		return nil, err
	}
	if err := b.Do(ctx, lab.Fault{Do: lab.Set, A: pipeNear, B: pipeFar, Change: lab.Change{Loss: &loss}}); err != nil {
		return nil, err
	}
	if err := mkdir(ctx, filepath.Join(near.mount, ".Site="+pipeFar, ".RepLevel=1", "pipe")); err != nil {
		return nil, err
	}
	var rows []pipeRow
	for _, way := range []string{"write", "read"} {
		if err := near.cold(ctx); err != nil {
			return rows, err
		}
		r := pipeRow{Loss: loss, Way: way}
		pair := wan.Pair{From: pipeNear, To: pipeFar}
		if way == "read" {
			pair = wan.Pair{From: pipeFar, To: pipeNear}
		}
		end := b.watch(ctx, pair, &r)
		err := near.work(ctx, &r.StreamResult, "stream", way, filepath.Join(near.mount, "pipe", name), "--size", strconv.FormatInt(size, 10),
			"--seed", strconv.FormatUint(seed, 10))
		end()
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// watchEvery is how often the emulator is asked what it let through.
const watchEvery = 500 * time.Millisecond

// watch notes what passes from one site to another, until the function that it
// returns is called.
func (b *bed) watch(ctx context.Context, pair wan.Pair, r *pipeRow) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		start := time.Now()
		var last *wan.Stats
		for ctx.Err() == nil {
			s, err := b.Network().Stats(ctx)
			if err == nil && last != nil {
				d := s.Since(last)
				r.LineAt = append(r.LineAt, time.Since(start).Seconds())
				r.Line = append(r.Line, float64(d.Pairs[pair].Through)*8/1e6/d.Elapsed.Seconds())
			}
			if err == nil {
				last = s
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { stop(); done.Wait() }
}

func pipeReport(rows []pipeRow, size int64, losses []float64) report.Result {
	t := report.Table{Name: "filled", Title: "How full the line was", Columns: []report.Column{
		{Name: "loss", Unit: "%"}, {Name: "way"}, {Name: "files"}, {Name: "median", Unit: "Mbit/s"}, {Name: "of the line", Unit: "%"}, {Name: "least", Unit: "%"},
		{Name: "Syncthing", Unit: "%", Source: syncthingSource}, {Name: "limit", Unit: "%"}, {Name: "to reach", Unit: "%"},
	}}
	over := report.Plot{
		Name: "overtime", Title: "What passed the line while one file was written, or read cold", X: report.Axis{Label: "time, s", FromZero: true},
		Y: report.Axis{Label: "passed, Mbit/s", FromZero: true}, Marks: []report.Mark{{Name: "the line", Y: pipeMbit}},
	}
	for _, loss := range losses {
		for _, way := range []string{"write", "read"} {
			var mbit, percent []float64
			for _, r := range rows {
				if r.Loss != loss || r.Way != way {
					continue
				}
				if len(mbit) == 0 {
					over.Lines = append(over.Lines, report.Line{Name: fmt.Sprintf("%s, %g %% loss", way, 100*loss), X: r.LineAt, Y: r.Line, Dashed: loss > 0})
				}
				mbit, percent = append(mbit, r.Mbit()), append(percent, r.percent())
			}
			theirs, goal := report.Text("-"), report.None()
			switch loss {
			case 0:
				theirs, goal = report.Text("0.4-8"), report.Number(80)
			case 0.001:
				goal = report.Number(60)
			}
			t.Add(report.Number(100*loss), report.Text(way), report.Count(len(mbit)), report.Number(median(mbit)), report.Number(median(percent)),
				report.Number(quantile(percent, 0)), theirs, report.Number(100), goal)
		}
	}
	return report.Result{
		Title: "pipe: one large file over 200 Mbit/s at 150 ms",
		SetUp: fmt.Sprintf("A file of %.0f MiB of noise, whose only replica is at the far site, written with fsync, then read with cold caches. "+
			"Percent are of the file's own bytes: headers of all layers are taken off the line's 200 Mbit/s.", float64(size)/(1<<20)),
		Tables: []report.Table{t}, Plots: []report.Plot{over}, Figures: rows,
	}
}
