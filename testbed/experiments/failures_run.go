package experiments

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// failuresBed is a lab with a slice, and writers at two sites where no node fails.
type failuresBed struct {
	*bed
	p       failuresPlan
	lease   time.Duration
	level   int    // members of the slice
	folder  string // which the slice holds, with all below it
	slice   ids.Slice
	writers []place
	path    func(string) string // of files in the run's directory
}

// failuresIn makes one failure after the other in one lab.
func failuresIn(ctx context.Context, b *bed, p failuresPlan, lease time.Duration, path func(string) string) ([]failuresRow, error) {
	beds := map[int]*failuresBed{}
	var rows []failuresRow
	for _, k := range p.kinds {
		b.say("failures: %s, lease %v", k, lease)
		f := beds[k.level()]
		if f == nil {
			f = &failuresBed{bed: b, p: p, lease: lease, level: k.level(), folder: fmt.Sprintf("level-%d", k.level()), path: path}
			if err := f.make(ctx); err != nil {
				return rows, err
			}
			beds[k.level()] = f
		}
		r, err := f.once(ctx, k)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// make makes the slice, and chooses the sites of the writers: those that have no member,
// else those of the last members, which take over last.
func (f *failuresBed) make(ctx context.Context) error {
	places, err := f.everywhere()
	if err != nil {
		return err
	}
	at := places[0]
	if err := mkdir(ctx, filepath.Join(at.mount, ".Site="+failuresHome, fmt.Sprintf(".RepLevel=%d", f.level), ".KeepTogether", f.folder)); err != nil {
		return err
	}
	if f.slice, err = sliceOf(filepath.Join(at.mount, f.folder)); err != nil {
		return err
	}
	s, err := at.slice(ctx, f.slice)
	if err != nil {
		return err
	}
	order := map[string]int{}
	for i, m := range s.Members {
		order[m.Site] = i + 1
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(order[a.site], order[b.site]) })
	if others := failuresSites - len(s.Members); others >= 2 {
		f.writers = places[:2]
	} else {
		f.writers = places[len(places)-2:]
	}
	return nil
}

// once has the writers work while members fail and return, and looks for what was
// acknowledged.
func (f *failuresBed) once(ctx context.Context, k failuresKind) (failuresRow, error) {
	return f.under(ctx, k, f.disturb)
}

// under has the writers work while act happens, and looks for what was acknowledged. It
// starts where the slice is at its home with all members normal.
func (f *failuresBed) under(ctx context.Context, k failuresKind, act func(context.Context, *failuresRow) error) (failuresRow, error) {
	const op fault.Op = "experiments.under"
	r := failuresRow{Lease: f.lease, Kind: k}
	if err := f.settle(ctx, op); err != nil {
		return r, err
	}
	for _, w := range f.writers {
		r.Writers = append(r.Writers, w.site)
		if err := mkdir(ctx, filepath.Join(w.mount, f.dir(k, w))); err != nil {
			return r, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	r.Began = time.Now()
	for i, w := range f.writers {
		g.Go(func() error {
			return w.work(gctx, nil, append([]string{"writers"}, f.words(k, w, w, i)...)...)
		})
	}
	g.Go(func() error { return act(gctx, &r) })
	if err := g.Wait(); err != nil {
		return r, err
	}
	return r, f.judge(ctx, &r)
}

// settle waits until the slice is at its home with all members normal.
func (f *failuresBed) settle(ctx context.Context, op fault.Op) error {
	atHome := func(s sliceState) bool { return s.isWhole(f.level) && s.Active.Site == failuresHome }
	_, ok, err := f.watcher().await(ctx, f.slice, f.lease, f.p.limit, atHome)
	if err != nil || !ok {
		return orTimedOut(err, op, f.folder, "its slice is not at its home with all members normal after %v", f.p.limit)
	}
	return nil
}

// orTimedOut is err, or an error that says what did not come in time.
func orTimedOut(err error, op fault.Op, subject, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fault.Errorf(fault.TimedOut, op, subject, format, args...)
}

// watcher is where the state of the slice is asked for: no node fails there.
func (f *failuresBed) watcher() place { return f.writers[0] }

func (f *failuresBed) dir(k failuresKind, w place) string {
	return filepath.Join(f.folder, string(k)+"-"+w.site)
}

// words are those of the writers of a site, or of their check at another place.
func (f *failuresBed) words(k failuresKind, writer, at place, i int) []string {
	return []string{
		filepath.Join(at.mount, f.dir(k, writer)), "--workers", strconv.Itoa(f.p.workers), "--for", f.p.length(k).String(),
		"--bytes", strconv.Itoa(f.p.bytes), "--seed", strconv.FormatUint(f.env.Seed+uint64(i), 10),
		"--events", f.path(fmt.Sprintf("events-%v-%s-%s.jsonl", f.lease, k, writer.site)),
	}
}

// verbs make a member fail and return.
func (k failuresKind) verbs() [2]lab.Verb {
	switch k {
	case failuresPause:
		return [2]lab.Verb{lab.Pause, lab.Start}
	case failuresUnplug:
		return [2]lab.Verb{lab.Unplug, lab.Plug}
	case failuresRestart:
		return [2]lab.Verb{lab.Stop, lab.Start}
	}
	return [2]lab.Verb{lab.Kill, lab.Start}
}

// disturb makes members fail and return, and waits until all are normal again.
func (f *failuresBed) disturb(ctx context.Context, r *failuresRow) error {
	if err := sleep(ctx, f.p.calm); err != nil {
		return err
	}
	first, err := f.active(ctx, r)
	if err != nil {
		return err
	}
	do, back := r.Kind.verbs(), first
	r.Failed = time.Now()
	if err := f.Do(ctx, lab.Fault{Do: do[0], A: first}); err != nil {
		return err
	}
	switch {
	case r.Kind == failuresRestart: // it starts as soon as it has ended
	case r.Kind.hitsTwo():
		if back, err = f.second(ctx, r, first); err != nil {
			return err
		}
	default:
		if err := sleep(ctx, f.p.away); err != nil {
			return err
		}
	}
	if err := f.Do(ctx, lab.Fault{Do: do[1], A: back}); err != nil {
		return err
	}
	r.Back = time.Now()
	whole := func(s sliceState) bool { return s.isWhole(f.level) }
	since, ok, err := f.watcher().await(ctx, f.slice, 2*f.lease, f.p.limit, whole)
	if ok {
		r.Whole = &since
	}
	return err
}

// second makes the member that took over fail too, half way through the time that the
// first is away, and returns the first. It names the one that is still away.
func (f *failuresBed) second(ctx context.Context, r *failuresRow, first string) (string, error) {
	if err := sleep(ctx, f.p.away/2); err != nil {
		return "", err
	}
	was := r.Victims[0]
	taken := func(s sliceState) bool { return s.Serving != nil && *s.Serving && s.Active.Site != was }
	if _, ok, err := f.watcher().await(ctx, f.slice, 0, f.p.limit, taken); err != nil || !ok {
		return "", orTimedOut(err, "experiments.second", was, "no member took over within %v", f.p.limit)
	}
	next, err := f.active(ctx, r)
	if err != nil {
		return "", err
	}
	if err := f.Do(ctx, lab.Fault{Do: lab.Kill, A: next}); err != nil {
		return "", err
	}
	if err := sleep(ctx, f.p.away/2); err != nil {
		return "", err
	}
	if err := f.Do(ctx, lab.Fault{Do: lab.Start, A: first}); err != nil {
		return "", err
	}
	return next, sleep(ctx, f.p.away/2)
}

// active is the host of the slice's active, which fails next.
func (f *failuresBed) active(ctx context.Context, r *failuresRow) (string, error) {
	s, err := f.watcher().slice(ctx, f.slice)
	if err != nil {
		return "", err
	}
	r.Victims = append(r.Victims, s.Active.Site)
	return f.hostOf(s.Active.Node)
}

// judge reads what the writers noted, and looks from another site for what was
// acknowledged.
func (f *failuresBed) judge(ctx context.Context, r *failuresRow) error {
	r.Ended = r.Began.Add(f.p.length(r.Kind)) // or later, where the last operations waited
	for i, w := range f.writers {
		at := f.writers[(i+1)%len(f.writers)]
		words := f.words(r.Kind, w, at, i)
		events, err := readEvents(words[len(words)-1])
		if err != nil {
			return err
		}
		r.changes = append(r.changes, changes(events)...)
		for _, e := range r.changes {
			if e.End().After(r.Ended) {
				r.Ended = e.End()
			}
		}
		var v load.Verdict
		if err := at.work(ctx, &v, append([]string{"verify"}, words...)...); err != nil {
			return fmt.Errorf("looking from %s: %w", at.site, err)
		}
		r.Verdict = load.Verdict{Acknowledged: r.Verdict.Acknowledged + v.Acknowledged, Unknown: r.Verdict.Unknown + v.Unknown,
			Reads: r.Verdict.Reads + v.Reads, Files: r.Verdict.Files + v.Files, Lost: append(r.Verdict.Lost, v.Lost...)}
	}
	return nil
}

// changes are the events that are no reads.
func changes(events []load.Event) []load.Event {
	var out []load.Event
	for _, e := range events {
		if e.Op != load.OpRead {
			out = append(out, e)
		}
	}
	return out
}
