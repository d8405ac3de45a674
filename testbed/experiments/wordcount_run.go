package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// wordcountPlan is what is counted, and how often.
type wordcountPlan struct {
	files, bytes, rounds int
	failures             failuresPlan // of the lab, and of the active's return
}

func planWordcount(env *experiment.Env) (wordcountPlan, error) {
	const op fault.Op = "experiments.planWordcount"
	v := map[string]float64{}
	for name, limits := range map[string][2]float64{"files": {8, 1e5}, "bytes": {1, 1 << 28}, "rounds": {1, 100}, "lease": {0.5, 30}, "rtt": {0.01, 1000}} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return wordcountPlan{}, err
		}
		if !(v[name] >= limits[0] && v[name] <= limits[1]) {
			return wordcountPlan{}, fault.Errorf(fault.Usage, op, name, "%s=%s is not from %g to %g", name, env.Text(name), limits[0], limits[1])
		}
	}
	if env.Short {
		for name, most := range map[string]float64{"files": 12, "bytes": 32768, "rounds": 1, "lease": 1} {
			v[name] = min(v[name], most)
		}
	}
	lease := time.Duration(v["lease"] * float64(time.Second))
	return wordcountPlan{
		files: int(v["files"]), bytes: int(v["bytes"]), rounds: int(v["rounds"]),
		failures: failuresPlan{leases: []time.Duration{lease}, rtt: v["rtt"], limit: 2 * time.Minute},
	}, nil
}

// wordcountRow is one count of all texts.
type wordcountRow struct {
	Round  int               `json:"round"`
	Killed *time.Time        `json:"killed,omitempty"` // the active; nil: nothing was disturbed
	Done   int               `json:"done_before"`      // partial results when it was killed
	Each   []load.WordResult `json:"each"`             // program
	Merged load.WordResult   `json:"merged"`
	Right  bool              `json:"right"` // the merged counts are those of the texts
}

// began is when the first program started, in microseconds since 1970.
func (r wordcountRow) began() int64 {
	first := r.Each[0].Began
	for _, e := range r.Each {
		first = min(first, e.Began)
	}
	return first
}

// counting is how long the programs took, from the first start to the last end, in
// seconds.
func (r wordcountRow) counting() float64 {
	ended := r.Each[0].Ended
	for _, e := range r.Each {
		ended = max(ended, e.Ended)
	}
	return float64(ended-r.began()) / 1e6
}

// merging is how long the merge took, in seconds.
func (r wordcountRow) merging() float64 { return float64(r.Merged.Ended-r.Merged.Began) / 1e6 }

// wordcountBed is a lab with texts in a slice, and programs at the sites that do not fail.
type wordcountBed struct {
	*failuresBed
	plan    wordcountPlan
	workers []place
	right   load.WordResult
}

// rows counts undisturbed and with a failover, in turns.
func (p wordcountPlan) rows(ctx context.Context, b *bed, path func(string) string) ([]wordcountRow, error) {
	w := &wordcountBed{failuresBed: &failuresBed{bed: b, p: p.failures, lease: p.failures.leases[0], level: failuresKill.level(), folder: "texts", path: path}, plan: p}
	if err := w.plant(ctx); err != nil {
		return nil, err
	}
	var rows []wordcountRow
	for round := range p.rounds {
		for _, kill := range []bool{false, true} {
			b.say("wordcount: round %d, the active is killed: %v", round+1, kill)
			r, err := w.count(ctx, round+1, kill)
			if err != nil {
				return rows, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// plant makes the slice and the texts in it.
func (w *wordcountBed) plant(ctx context.Context) error {
	if err := w.make(ctx); err != nil {
		return err
	}
	places, err := w.everywhere()
	if err != nil {
		return err
	}
	for _, at := range places {
		if at.site != failuresHome {
			w.workers = append(w.workers, at)
		}
	}
	at := w.watcher()
	return at.work(ctx, &w.right, w.words("plant", at, "", 0)...)
}

func (w *wordcountBed) words(way string, at place, out string, worker int) []string {
	return []string{
		"words", way, filepath.Join(at.mount, w.folder), "--out", filepath.Join(at.mount, w.folder, out), "--files", fmt.Sprint(w.plan.files), "--bytes", fmt.Sprint(w.plan.bytes),
		"--worker", fmt.Sprint(worker), "--workers", fmt.Sprint(len(w.workers)), "--seed", fmt.Sprint(w.env.Seed),
	}
}

// count has the programs count all texts with cold caches, and one of the hosts merge
// what they wrote. Where kill is set, the active dies when a third is done, and starts
// again after the merge.
func (w *wordcountBed) count(ctx context.Context, round int, kill bool) (wordcountRow, error) {
	const op fault.Op = "experiments.count"
	r := wordcountRow{Round: round, Each: make([]load.WordResult, len(w.workers))}
	if err := w.settle(ctx, op); err != nil {
		return r, err
	}
	out := fmt.Sprintf("counts-%d-%v", round, kill)
	if err := mkdir(ctx, filepath.Join(w.watcher().mount, w.folder, out)); err != nil {
		return r, err
	}
	for _, at := range w.workers {
		if err := at.cold(ctx); err != nil {
			return r, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, at := range w.workers {
		g.Go(func() error { return at.work(gctx, &r.Each[i], w.words("count", at, out, i)...) })
	}
	victim := ""
	g.Go(func() (err error) {
		if victim, err = w.third(gctx, &r, out); err == nil && kill {
			now := time.Now()
			r.Killed = &now
			err = w.Do(gctx, lab.Fault{Do: lab.Kill, A: victim})
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return r, err
	}
	if err := w.watcher().work(ctx, &r.Merged, w.words("merge", w.watcher(), out, 0)...); err != nil {
		return r, err
	}
	r.Right = r.Merged.Digest == w.right.Digest && r.Merged.Words == w.right.Words
	if !kill {
		return r, nil
	}
	return r, w.Do(ctx, lab.Fault{Do: lab.Start, A: victim})
}

// third waits until a third of the partial results are there, and returns the active's
// host. It does so in every count, so that all are watched alike.
func (w *wordcountBed) third(ctx context.Context, r *wordcountRow, out string) (string, error) {
	const op fault.Op = "experiments.third"
	s, err := w.watcher().slice(ctx, w.slice)
	if err != nil {
		return "", err
	}
	victim, err := w.hostOf(s.Active.Node)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(w.watcher().mount, w.folder, out)
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return "", fault.FromOS(op, folder, err)
		}
		if r.Done = len(entries); r.Done >= (w.plan.files+2)/3 {
			return victim, nil
		}
		if err := sleep(ctx, slicePoll); err != nil {
			return "", err
		}
	}
	return "", fault.Errorf(fault.TimedOut, op, folder, "a third of the partial results is not there after 10 minutes")
}
