package experiments

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// slice makes a slice with a directory of plain directories, one for each worker.
func (p syncPlan) slice(ctx context.Context, b *bed, folder string, path func(string) string) (*failuresBed, error) {
	f := &failuresBed{bed: b, p: p.failures, lease: p.lease(), level: failuresKill.level(), folder: folder, path: path}
	home, err := b.at(failuresHome)
	if err != nil {
		return nil, err
	}
	cues := fmt.Sprintf("/.Site=%s/.RepLevel=%d/.KeepTogether", failuresHome, f.level)
	if err := home.work(ctx, nil, append(p.words("make", home, folder, b.env.Seed), "--cues", cues)...); err != nil {
		return nil, err
	}
	return f, f.make(ctx)
}

// create has so many files made below a folder.
func (p syncPlan) create(ctx context.Context, b *bed, at place, folder, worker string, files int) (load.BoxResult, error) {
	const op fault.Op = "experiments.create"
	var got load.BoxResult
	workers := min(p.workers, files)
	words := append(p.words("work", at, folder, b.env.Seed), "--worker", worker, "--workers", fmt.Sprint(workers), "--each", fmt.Sprint((files+workers-1)/workers))
	if err := at.work(ctx, &got, words...); err != nil {
		return got, err
	}
	if got.Failed > 0 || len(got.Lost) > 0 {
		return got, fault.Errorf(fault.Other, op, folder, "%d creates failed, the first with %q, and %d do not show", got.Failed, got.First, len(got.Lost))
	}
	return got, nil
}

func (p syncPlan) words(way string, at place, folder string, seed uint64) []string {
	return []string{
		"volumes", way, "--contact", at.contact, "--site", at.site, "--folder", folder, "--plain", "--sizes", string(load.SmallSizesBox), "--boxes", fmt.Sprint(p.workers),
		"--planted", "1", "--create", "1", "--read", "0", "--delete", "0", "--seed", fmt.Sprint(seed),
	}
}

// missedAll has a standby miss more and more.
func (p syncPlan) missedAll(ctx context.Context, b *bed, path func(string) string) ([]syncMissed, error) {
	f, err := p.slice(ctx, b, "missed", path)
	if err != nil {
		return nil, err
	}
	var rows []syncMissed
	for _, files := range p.missed {
		b.say("sync: a standby misses %d files", files)
		r, err := p.miss(ctx, f, files)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// miss kills a standby, has files made, and starts it again.
func (p syncPlan) miss(ctx context.Context, f *failuresBed, files int) (syncMissed, error) {
	const op fault.Op = "experiments.miss"
	r := syncMissed{Files: files}
	if err := f.settle(ctx, op); err != nil {
		return r, err
	}
	at := f.watcher()
	before, err := at.slice(ctx, f.slice)
	if err != nil {
		return r, err
	}
	i := slices.IndexFunc(before.Members, func(m sliceMember) bool { return m.Node != before.Active.Node })
	if i < 0 {
		return r, fault.Errorf(fault.Other, op, f.folder, "slice %d has no standby", f.slice)
	}
	standby := before.Members[i]
	r.Standby = standby.Site
	host, err := f.hostOf(standby.Node)
	if err != nil {
		return r, err
	}
	if err := f.Do(ctx, lab.Fault{Do: lab.Kill, A: host}); err != nil {
		return r, err
	}
	made, err := p.create(ctx, f.bed, at, f.folder, fmt.Sprintf("missed-%d", files), files)
	if err != nil {
		return r, err
	}
	after, err := at.slice(ctx, f.slice)
	if err != nil {
		return r, err
	}
	r.Entries, r.MB = after.Commit-before.Commit, float64(made.Bytes)/1e6
	return r, f.comeBack(ctx, &r, host)
}

// comeBack starts the standby, and notes when it was what.
func (f *failuresBed) comeBack(ctx context.Context, r *syncMissed, host string) error {
	start := time.Now()
	if err := f.Do(ctx, lab.Fault{Do: lab.Start, A: host}); err != nil {
		return err
	}
	r.Ready = time.Since(start).Seconds()
	whole, ok, err := f.watcher().await(ctx, f.slice, f.lease, f.p.limit, func(s sliceState) bool { return s.isWhole(f.level) })
	if err != nil {
		return err
	}
	since := func(at time.Time) *float64 {
		s := at.Sub(start).Seconds()
		return &s
	}
	if ok {
		r.Whole = since(whole)
	}
	for _, n := range f.Nodes() {
		if n.Host != host {
			continue
		}
		log, err := os.Open(n.Log)
		if err != nil {
			return fault.FromOS("experiments.comeBack", n.Log, err)
		}
		defer log.Close()
		junior, normal, err := returnIn(log, f.slice, start)
		if err != nil {
			return fault.FromOS("experiments.comeBack", n.Log, err)
		}
		if !junior.IsZero() {
			r.Junior = since(junior)
		}
		if !normal.IsZero() {
			r.Normal = since(normal)
		}
	}
	return nil
}

// returnIn reads in a node's log when it became a junior of a slice, and when it was a
// standby for good after that; zero: never. What it says before that is of its old row.
func returnIn(log io.Reader, id ids.Slice, since time.Time) (junior, normal time.Time, err error) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		line := lines.Text()
		at, ok := loggedAt(line)
		if !ok || at.Before(since) || !strings.Contains(line, "part in a slice") || !strings.Contains(line, fmt.Sprintf(" slice=%d ", id)) {
			continue
		}
		switch {
		case junior.IsZero() && strings.Contains(line, " is=junior "):
			junior = at
		case !junior.IsZero() && strings.Contains(line, " is=standby "):
			normal = at
		}
	}
	return junior, normal, lines.Err()
}

// sizesAll kills the actives of larger and larger slices.
func (p syncPlan) sizesAll(ctx context.Context, b *bed, path func(string) string) ([]syncSize, error) {
	var rows []syncSize
	for _, objects := range p.objects {
		b.say("sync: the active of a slice of %d files dies", objects)
		r, err := p.size(ctx, b, objects, path)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (p syncPlan) size(ctx context.Context, b *bed, objects int, path func(string) string) (syncSize, error) {
	r := syncSize{Planted: objects}
	folder := fmt.Sprintf("objects-%d", objects)
	f, err := p.slice(ctx, b, folder, func(name string) string { return path(folder + "-" + name) })
	if err != nil {
		return r, err
	}
	if _, err := p.create(ctx, b, f.watcher(), folder, "planted", objects); err != nil {
		return r, err
	}
	s, err := f.watcher().slice(ctx, f.slice)
	if err != nil {
		return r, err
	}
	r.Objects = s.Objects
	r.Failure, err = f.once(ctx, failuresKill)
	return r, err
}
