package experiments

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// scaleBed is a lab with a tree that grows.
type scaleBed struct {
	*bed
	p     scalePlan
	home  place // beside the tree's actives; makes and lists
	folks place // where the writers are
	slice ids.Slice
	path  func(string) string // of files in the run's directory
}

// scaleTree is the tree's folder.
const scaleTree = "tree"

// scaleIn measures at one size after the other in one lab.
func scaleIn(ctx context.Context, b *bed, p scalePlan, path func(string) string) ([]scaleRow, error) {
	s := &scaleBed{bed: b, p: p, path: path}
	var err error
	if s.home, err = b.at(scaleHome); err != nil {
		return nil, err
	}
	if s.folks, err = b.at(scaleFolks); err != nil {
		return nil, err
	}
	if err := mkdir(ctx, filepath.Join(s.home.mount, ".Site="+scaleHome, fmt.Sprintf(".RepLevel=%d", scaleLevel), ".KeepTogether", scaleTree)); err != nil {
		return nil, err
	}
	for _, n := range p.files { // before the slice has its fill
		if err := mkdir(ctx, filepath.Join(s.home.mount, scaleTree, s.work(n))); err != nil {
			return nil, err
		}
	}
	if s.slice, err = sliceOf(filepath.Join(s.home.mount, scaleTree)); err != nil {
		return nil, err
	}
	var rows []scaleRow
	before := 0
	for _, n := range p.files {
		r := scaleRow{Files: n, Added: n - before}
		if err := s.at(ctx, &r); err != nil {
			return rows, err
		}
		rows, before = append(rows, r), n
	}
	return rows, nil
}

// work is the name of the writers' folder at a size.
func (s *scaleBed) work(files int) string { return fmt.Sprintf("work-%d", files) }

// at lets the tree grow to one size, and measures there.
func (s *scaleBed) at(ctx context.Context, r *scaleRow) error {
	s.say("scale: the tree grows to %d files", r.Files)
	if err := s.settle(ctx); err != nil {
		return err
	}
	var made load.NameResult
	words := []string{"names", "make", filepath.Join(s.home.mount, ".SyncLevel=0", scaleTree), "--first", strconv.Itoa(r.Files - r.Added), "--count", strconv.Itoa(r.Added),
		"--each", strconv.Itoa(s.p.each), "--workers", strconv.Itoa(s.p.workers)}
	if err := s.home.work(ctx, &made, words...); err != nil {
		return err
	}
	r.Made = made.Seconds
	s.say("scale: %d files: a listing, a snapshot, a takeover and a start", r.Files)
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.home.cold(ctx); err != nil {
		return err
	}
	if err := s.home.work(ctx, &r.Listed, "names", "list", filepath.Join(s.home.mount, scaleTree, load.NameOptions{Each: s.p.each}.NameFolder(0))); err != nil {
		return err
	}
	if want := min(s.p.each, r.Files); r.Listed.Names != want {
		return fault.Errorf(fault.Corrupt, "experiments.scale", scaleTree, "its first folder lists %d names, and has %d", r.Listed.Names, want)
	}
	if err := s.weigh(ctx, r); err != nil {
		return err
	}
	return s.disturb(ctx, r)
}

// settle waits until all slices have all members normal, and the tree's is at its home.
func (s *scaleBed) settle(ctx context.Context) error {
	settled := func(st sliceState) bool {
		return st.isWhole(scaleLevel) && (st.ID != s.slice || st.Active.Site == scaleHome)
	}
	_, ok, err := s.folks.awaitAll(ctx, s.p.lease, s.p.limit, settled)
	if err != nil || !ok {
		return orTimedOut(err, "experiments.settle", scaleTree, "not all slices have all members normal after %v", s.p.limit)
	}
	return nil
}

// weigh measures what the node of the tree's active holds.
func (s *scaleBed) weigh(ctx context.Context, r *scaleRow) error {
	all, err := s.folks.slices(ctx)
	if err != nil {
		return err
	}
	r.Slices = len(all)
	for _, st := range all {
		if st.ID == s.slice {
			r.Objects = st.Objects
		}
	}
	for _, n := range s.Nodes() {
		if n.Site != scaleHome {
			continue
		}
		data := s.DataFolder(n.Host)
		if r.Meta, err = folderBytes(filepath.Join(data, "meta")); err != nil {
			return err
		}
		if r.Journal, err = folderBytes(filepath.Join(data, "journal")); err != nil {
			return err
		}
		r.Memory, err = ownMemory(n.PID)
		return err
	}
	return fault.E(fault.NotFound, "experiments.weigh", scaleHome, "has no node")
}

// folderBytes is what the files of a folder take on disk. One that goes away meanwhile
// does not count.
func folderBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum, fault.FromOS("experiments.folderBytes", dir, err)
}

// ownMemory is the memory of a process that no file backs, in bytes.
func ownMemory(pid int) (int64, error) {
	const op fault.Op = "experiments.ownMemory"
	file := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fault.FromOS(op, file, err)
	}
	return anonymous(string(text))
}

// anonymous reads RssAnon of a process's status.
func anonymous(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib * 1024, fault.Wrap(fault.Other, "experiments.anonymous", line, err)
		}
	}
	return 0, fault.E(fault.NotFound, "experiments.anonymous", "RssAnon", "is not in the process's status")
}

// disturb makes a snapshot beside writers, kills the node of the active and starts it
// again, and looks for what was acknowledged.
func (s *scaleBed) disturb(ctx context.Context, r *scaleRow) error {
	g, gctx := errgroup.WithContext(ctx)
	var at scaleTimes
	g.Go(func() error {
		return s.folks.work(gctx, nil, append([]string{"writers"}, s.words(r, s.folks)...)...)
	})
	g.Go(func() (err error) { at, err = s.acts(gctx, r); return err })
	if err := g.Wait(); err != nil {
		return err
	}
	words := s.words(r, s.home)
	events, err := readEvents(words[len(words)-1])
	if err != nil {
		return err
	}
	r.gaps(changes(events), at, s.p)
	return s.home.work(ctx, &r.Verdict, append([]string{"verify"}, words...)...)
}

// words are those of the writers at a size, or of their check at another place.
func (s *scaleBed) words(r *scaleRow, at place) []string {
	return []string{filepath.Join(at.mount, scaleTree, s.work(r.Files)), "--workers", strconv.Itoa(s.p.writers), "--for", s.p.length().String(),
		"--seed", strconv.FormatUint(s.env.Seed, 10), "--events", s.path(fmt.Sprintf("events-%d.jsonl", r.Files))}
}

// scaleTimes are when what happened beside the writers.
type scaleTimes struct{ calm, snapshot, killed time.Time }

// gaps are the longest times without a change beside a snapshot and after the kill.
func (r *scaleRow) gaps(events []load.Event, at scaleTimes, p scalePlan) {
	r.Calm = 1000 * stall(events, at.calm, at.calm.Add(p.calm/2))
	r.Beside = 1000 * stall(events, at.snapshot, at.snapshot.Add(p.calm/2))
	r.Takeover = stall(events, at.killed, at.killed.Add(p.away()))
}

// acts are the snapshot, the kill and the start.
func (s *scaleBed) acts(ctx context.Context, r *scaleRow) (at scaleTimes, err error) {
	if err := sleep(ctx, s.p.calm/2); err != nil {
		return at, err
	}
	at.calm = time.Now()
	if err := sleep(ctx, s.p.calm/2); err != nil {
		return at, err
	}
	name := fmt.Sprintf("scale-%d", r.Files)
	at.snapshot = time.Now()
	if _, err := s.folks.run(ctx, s.folks.programs.Cartwheel, "--contact", s.folks.contact, "snapshot", "create", name); err != nil {
		return at, err
	}
	r.Snapshot = time.Since(at.snapshot).Seconds() * 1000
	if err := sleep(ctx, s.p.calm); err != nil {
		return at, err
	}
	st, err := s.folks.slice(ctx, s.slice)
	if err != nil {
		return at, err
	}
	host, err := s.hostOf(st.Active.Node)
	if err != nil {
		return at, err
	}
	at.killed = time.Now()
	if err := s.Do(ctx, lab.Fault{Do: lab.Kill, A: host}); err != nil {
		return at, err
	}
	if err := sleep(ctx, s.p.away()); err != nil {
		return at, err
	}
	start := time.Now()
	if err := s.Do(ctx, lab.Fault{Do: lab.Start, A: host}); err != nil {
		return at, err
	}
	r.Ready = time.Since(start).Seconds()
	whole, ok, err := s.folks.awaitAll(ctx, s.p.lease, s.p.limit, func(st sliceState) bool { return st.isWhole(scaleLevel) })
	if ok {
		took := whole.Sub(start).Seconds()
		r.Whole = &took
	}
	return at, err
}
