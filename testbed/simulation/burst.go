package simulation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// burst is work with many operations in flight: each worker makes, changes,
// moves and removes files of its own, so that it knows what must be there. The
// moves lead to directories of other slices. At the end another client looks.
type burst struct {
	*findings
	dirs []string

	mu    sync.Mutex // guards below
	files []*owned
}

// owned is a file of one worker, which alone changes it.
type owned struct {
	name string
	// at are the directories where it may be, and contents what it may hold,
	// for all that the worker was told; more than one where an outcome is not
	// known. absent: it may be gone, or never have been made.
	at       map[int]bool
	contents map[string]bool
	absent   bool
	// late are contents whose writer crashed: it may have sent them, and they
	// may come behind what was written since.
	late map[string]bool
	// past is what was done with it, for the report of one that is wrong.
	past []string
}

// did notes what was done with a file, and how it ended; it returns the error.
func (f *owned) did(k *worker, err error, format string, args ...any) error {
	what := fmt.Sprintf("%.3f %s", k.b.since().Seconds(), fmt.Sprintf(format, args...))
	if err != nil {
		what += ": " + err.Error()
	}
	f.past = append(f.past, what)
	return err
}

const burstDirs = 3

// prepare makes the directories, all but the first at a site of its own.
func (b *burst) prepare(ctx context.Context, fs *cartwheel.Client, sites []string) error {
	for i := range burstDirs {
		parent := mount.Root
		if i > 0 {
			e, err := fs.Lookup(ctx, mount.Caller{}, mount.Root, ".Site="+sites[i])
			if err != nil {
				return err
			}
			parent = e.Node
		}
		name := fmt.Sprint("burst", i)
		if _, err := fs.Mkdir(ctx, mount.Caller{}, parent, name, 0o755); err != nil {
			return err
		}
		b.dirs = append(b.dirs, name)
	}
	return nil
}

// worker works until stop; it is one of many of a client.
type worker struct {
	b      *burst
	c      *client
	fs     *cartwheel.Client // of the life that dirs are of
	over   chan struct{}     // closed at its end
	name   string
	chance *rand.Rand
	dirs   []mount.Inode
	files  []*owned
	made   int
}

func (b *burst) worker(c *client, name string, chance *rand.Rand) *worker {
	return &worker{b: b, c: c, name: name, chance: chance}
}

// enter reports whether there is a process to work with.
func (k *worker) enter() bool {
	now, over := k.c.now()
	if now != k.fs {
		k.fs, k.over, k.dirs = now, over, nil
	}
	return now != nil
}

func (k *worker) run(ctx context.Context, stop chan struct{}, pause time.Duration) {
	for {
		t := time.NewTimer(time.Duration(k.chance.Int64N(int64(pause))))
		select {
		case <-stop:
			t.Stop()
			return
		case <-t.C:
		}
		if !k.enter() {
			continue
		}
		if err := k.step(ctx); err != nil && !k.b.allowed(err) && !ended(k.over) {
			k.b.problem("BURST: %s: %v", k.name, err)
		}
	}
}

// step does one thing; an error is one that a correct system does not give.
func (k *worker) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	if err := k.meet(ctx); err != nil {
		return err
	}
	var f *owned
	if len(k.files) > 0 {
		f = k.files[k.chance.IntN(len(k.files))]
	}
	n := k.chance.IntN(100)
	switch {
	case f == nil || n < 45:
		return k.create(ctx)
	case len(f.at) > 1 || f.absent:
		return nil // where it is is for the end to see
	case n < 65:
		return k.write(ctx, f)
	case n < 90:
		return k.move(ctx, f)
	default:
		return k.unlink(ctx, f)
	}
}

// meet finds the directories.
func (k *worker) meet(ctx context.Context) error {
	for len(k.dirs) < len(k.b.dirs) {
		e, err := k.fs.Lookup(ctx, mount.Caller{}, mount.Root, k.b.dirs[len(k.dirs)])
		if err == nil && e.Node == 0 {
			err = fault.E(fault.NotFound, "simulation.meet", k.b.dirs[len(k.dirs)], "")
		}
		if err != nil {
			return err
		}
		k.dirs = append(k.dirs, e.Node)
	}
	return nil
}

// content draws what a file holds: inline, or in chunks.
func (k *worker) content() string {
	size := 16 + k.chance.IntN(400)
	if k.chance.IntN(4) == 0 {
		size = 5000 + k.chance.IntN(20_000)
	}
	k.made++
	head := fmt.Sprintf("%s/%d:", k.name, k.made)
	return head + string(bytes.Repeat([]byte{byte('a' + k.made%26)}, size))
}

func (k *worker) create(ctx context.Context) error {
	at, content := k.chance.IntN(len(k.dirs)), k.content()
	f := &owned{name: fmt.Sprintf("%s-%d", k.name, k.made), at: map[int]bool{at: true}, contents: map[string]bool{content: true, "": true}, absent: true}
	k.files = append(k.files, f)
	k.b.mu.Lock()
	k.b.files = append(k.b.files, f)
	k.b.mu.Unlock()
	defer f.crashed(k)
	e, o, err := k.fs.Create(ctx, mount.Caller{}, k.dirs[at], f.name, 0o644, mount.OpenWrite|mount.OpenExclusive)
	if f.did(k, err, "created in %d as %v", at, ids.Object(e.Attr.Ino)) != nil {
		return fmt.Errorf("creating %s: %w", f.name, err)
	}
	err = k.put(ctx, f, e.Node, o.Handle, content)
	k.fs.Forget(e.Node, 1)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.name, err)
	}
	return nil
}

// put writes a file's content and closes it. What Write returned for is in the
// write journal: it survives the process, unless the nodes refuse it.
func (k *worker) put(ctx context.Context, f *owned, n mount.Inode, h mount.Handle, content string) error {
	before, absent := maps.Clone(f.contents), f.absent
	_, err := k.fs.Write(ctx, mount.Caller{}, n, h, 0, []byte(content), 0)
	_ = f.did(k, err, "written %d bytes", len(content))
	certain := func() {
		clear(f.contents)
		f.contents[content], f.absent = true, false
	}
	if err == nil && !ended(k.over) && !k.b.filled.Load() {
		certain()
	}
	if err == nil && k.chance.IntN(4) == 0 {
		pass(time.Duration(k.chance.Int64N(400_000_000)))
	}
	if err == nil {
		err = f.did(k, k.fs.Flush(ctx, mount.Caller{}, n, h, 0), "flushed")
	}
	k.fs.Release(n, h, 0, false)
	switch {
	case err == nil && !ended(k.over):
		certain()
	case err != nil: // what was not taken is not in the file
		maps.Copy(f.contents, before)
		// A disk that filled up behind the write refuses a new file too.
		f.absent = f.absent || absent && k.b.allowed(err)
	}
	return err
}

// crashed notes what may come late because the process died meanwhile.
func (f *owned) crashed(k *worker) {
	if !ended(k.over) {
		return
	}
	if f.late == nil {
		f.late = map[string]bool{}
	}
	maps.Copy(f.late, f.contents)
}

func (k *worker) only(f *owned) int {
	for at := range f.at {
		return at
	}
	return 0
}

func (k *worker) write(ctx context.Context, f *owned) error {
	e, err := k.fs.Lookup(ctx, mount.Caller{}, k.dirs[k.only(f)], f.name)
	if err == nil && e.Node == 0 {
		err = fault.E(fault.NotFound, "simulation.write", f.name, "it was there")
	}
	if err != nil {
		return fmt.Errorf("finding %s: %w", f.name, err)
	}
	defer k.fs.Forget(e.Node, 1)
	content := k.content()
	f.contents[content], f.contents[""] = true, true
	defer f.crashed(k)
	o, err := k.fs.Open(ctx, mount.Caller{}, e.Node, mount.OpenWrite|mount.OpenTruncate)
	if err != nil {
		return fmt.Errorf("opening %s: %w", f.name, err)
	}
	if err := k.put(ctx, f, e.Node, o.Handle, content); err != nil {
		return fmt.Errorf("writing %s: %w", f.name, err)
	}
	return nil
}

func (k *worker) move(ctx context.Context, f *owned) error {
	from, to := k.only(f), k.chance.IntN(len(k.dirs))
	if from == to {
		return nil
	}
	f.at[to] = true
	err := k.fs.Rename(ctx, mount.Caller{}, k.dirs[from], f.name, k.dirs[to], f.name, 0)
	if f.did(k, err, "moved from %d to %d", from, to) != nil {
		return fmt.Errorf("moving %s from %d to %d: %w", f.name, from, to, err)
	}
	delete(f.at, from)
	return nil
}

func (k *worker) unlink(ctx context.Context, f *owned) error {
	f.absent = true
	err := k.fs.Unlink(ctx, mount.Caller{}, k.dirs[k.only(f)], f.name)
	if f.did(k, err, "removed") != nil {
		return fmt.Errorf("removing %s: %w", f.name, err)
	}
	clear(f.at)
	return nil
}

// look checks all files with a client that did not make them.
func (b *burst) look(ctx context.Context, k *worker) {
	k.enter()
	if err := k.meet(ctx); err != nil {
		b.problem("LOST: %v", err)
		return
	}
	for _, f := range b.files {
		if wrong := k.check(ctx, f); wrong != "" {
			b.problem("LOST: %s: %s; it was %s", f.name, wrong, strings.Join(f.past, ", "))
		}
	}
}

// check says what is wrong with a file.
func (k *worker) check(ctx context.Context, f *owned) string {
	found := 0
	for at, dir := range k.dirs {
		e, err := k.fs.Lookup(ctx, mount.Caller{}, dir, f.name)
		switch {
		case err == nil && e.Node == 0, fault.Is(err, fault.NotFound):
			continue
		case err != nil:
			return err.Error()
		}
		found++
		if !f.at[at] {
			return fmt.Sprintf("it is in directory %d, and should be in %v", at, f.at)
		}
		content, err := k.read(ctx, e.Node)
		k.fs.Forget(e.Node, 1)
		if err != nil {
			return "it cannot be read: " + err.Error()
		}
		if !f.contents[content] && !f.late[content] {
			return fmt.Sprintf("it holds %d bytes %.40q, and may hold one of %d others", len(content), content, len(f.contents))
		}
	}
	if found > 1 || found == 0 && len(f.at) > 0 && !f.absent {
		return fmt.Sprintf("it is in %d directories, and should be in one of %v", found, f.at)
	}
	return ""
}

func (k *worker) read(ctx context.Context, n mount.Inode) (string, error) {
	o, err := k.fs.Open(ctx, mount.Caller{}, n, mount.OpenRead)
	if err != nil {
		return "", err
	}
	defer k.fs.Release(n, o.Handle, 0, false)
	buf := make([]byte, 64<<10)
	got, err := k.fs.Read(ctx, mount.Caller{}, n, o.Handle, 0, buf)
	return string(buf[:got]), err
}
