package historytest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// What there is to work on.
const (
	dirs      = 4
	namesEach = 2
	// recordSize is the length of a log's record.
	recordSize = 16
)

// file is a file of registers: ranges of one size, each written as a whole.
type file struct {
	name   string
	ranges int
	size   int
}

func (f file) register(i int) string { return fmt.Sprintf("%s[%d]", f.name, i) }

// registers are a small file that travels with its attributes, one that is
// changed in parts, and one whose content lies in chunks. It is a constant.
func registers() []file { return []file{{"r0", 1, 96}, {"r1", 3, 1200}, {"r2", 3, 8000}} }

const logName = "log"

func dirName(i int) string  { return fmt.Sprintf("d%d", i) }
func cellName(i int) string { return fmt.Sprintf("n%d", i%namesEach) }

// actor is one client at work, one operation at a time.
type actor struct {
	id    int
	fs    mount.FileSystem
	log   *recorder
	rand  *rand.Rand
	limit time.Duration // no call may take longer
	// anew makes it repeat an operation that timed out as another one: a bug.
	anew bool
	// calm: what it makes counts when it is open.
	calm bool
	// stuck tells how things stand when an operation timed out.
	stuck func() string
	// allow names further errors that leave the outcome open; nil: none.
	allow func(error) bool
	// lost: the process of its client has crashed.
	lost atomic.Bool

	nodes map[string]mount.Inode // of files and directories, by name
	// places are the directories, and given the IDs for what batches make.
	places  [dirs]ids.Object
	given   map[ids.Slice]given
	onceDir mount.Inode     // 0: it does nothing there
	known   []mount.Entry   // objects that may be linked
	avoid   map[string]bool // files with a write of ours that may come yet
	made    uint64
}

// meet looks up what the run works on.
func (a *actor) meet(ctx context.Context) error {
	a.nodes, a.avoid = map[string]mount.Inode{}, map[string]bool{}
	all := []string{logName}
	for i := range dirs {
		all = append(all, dirName(i))
	}
	for _, f := range registers() {
		all = append(all, f.name)
	}
	for _, name := range all {
		e, err := a.fs.Lookup(ctx, mount.Caller{}, mount.Root, name)
		if err == nil && e.Node == 0 {
			err = fault.E(fault.NotFound, "history.meet", name, "")
		}
		if err != nil {
			return err
		}
		a.nodes[name] = e.Node
		for i := range dirs {
			if name == dirName(i) {
				a.places[i] = ids.Object(e.Attr.Ino)
			}
		}
	}
	if a.given == nil {
		a.given = map[ids.Slice]given{}
	}
	return nil
}

// unique returns a value that nobody wrote before.
func (a *actor) unique() uint64 {
	a.made++
	return uint64(a.id+1)<<32 | a.made
}

// near draws a cell, most often of the actor's own directory, where it is
// alone for a while then.
func (a *actor) near() int {
	if a.rand.IntN(4) > 0 {
		return a.id%dirs*namesEach + a.rand.IntN(namesEach)
	}
	return a.rand.IntN(dirs * namesEach)
}

// outcomeOf sorts errors: those that a correct system gives, those that leave
// the outcome open, and the rest, which are problems.
func (a *actor) outcomeOf(e *event, err error) outcome {
	switch kind := fault.KindOf(err); {
	case a.lost.Load():
		return unknown // no program of it was told anything
	case err == nil:
		return done
	case errors.Is(err, errUnsaved):
		return unknown
	case kind == fault.Exists && (e.what == create || e.what == link):
		return exists
	case kind == fault.NotFound && (e.what == unlink || e.what == rename), (kind == fault.NotFound || kind == fault.Stale) && e.what == link:
		return missing
	case a.allow != nil && a.allow(err):
		return unknown
	default:
		a.log.problem("client %d: %v of %s %d: %v", a.id, e.what, e.object, e.at, err)
		if kind == fault.TimedOut && a.stuck != nil {
			a.log.problem("there is %s", a.stuck())
		}
		return unknown
	}
}

// run does one operation and notes what came of it.
func (a *actor) run(ctx context.Context, e event, do func(ctx context.Context) error, fill func(*event)) outcome {
	e.client = a.id
	noted := a.log.invoke(e)
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	began := time.Now()
	err := do(ctx)
	for a.anew && fault.Is(err, fault.TimedOut) && ctx.Err() == nil {
		err = do(ctx)
	}
	if took := time.Since(began); took > a.limit {
		a.log.problem("TIME: client %d: %v of %s took %v", a.id, e.what, e.object, took)
	}
	result := a.outcomeOf(noted, err)
	a.log.finish(noted, result, func(e *event) {
		if fill != nil && result != unknown {
			fill(e)
		}
	})
	return result
}

// opened runs fn on an open file.
func (a *actor) opened(ctx context.Context, name string, flags mount.OpenFlags, fn func(mount.Inode, mount.Handle) error) error {
	node := a.nodes[name]
	o, err := a.fs.Open(ctx, mount.Caller{}, node, flags)
	if err != nil {
		return err
	}
	defer a.fs.Release(node, o.Handle, 0, false)
	return fn(node, o.Handle)
}

func (a *actor) write(ctx context.Context, f file, i int) {
	if a.avoid[f.name] {
		return
	}
	v := a.unique()
	body := make([]byte, 0, f.size)
	for len(body) < f.size {
		body = binary.BigEndian.AppendUint64(body, v)
	}
	result := a.run(ctx, event{object: f.register(i), what: write, value: fmt.Sprintf("%x", v)}, func(ctx context.Context) error {
		return a.opened(ctx, f.name, mount.OpenWrite, func(n mount.Inode, h mount.Handle) error {
			if _, err := a.fs.Write(ctx, mount.Caller{}, n, h, int64(i*f.size), body, 0); err != nil {
				return err
			}
			return a.fs.Flush(ctx, mount.Caller{}, n, h, 0)
		})
	}, nil)
	a.avoid[f.name] = result == unknown
}

// read reads all registers of a file at once.
func (a *actor) read(ctx context.Context, f file) {
	if a.avoid[f.name] {
		return
	}
	noted := make([]*event, f.ranges)
	for i := range noted {
		noted[i] = a.log.invoke(event{client: a.id, object: f.register(i), what: read})
	}
	buf := make([]byte, f.ranges*f.size+1)
	got := 0
	err := a.opened(ctx, f.name, mount.OpenRead, func(n mount.Inode, h mount.Handle) (err error) {
		got, err = a.fs.Read(ctx, mount.Caller{}, n, h, 0, buf)
		return err
	})
	for i, e := range noted {
		result := a.outcomeOf(e, err)
		if result == done && got != f.ranges*f.size {
			a.log.problem("client %d: %s has %d bytes, want %d", a.id, f.name, got, f.ranges*f.size)
			result = unknown
		}
		a.log.finish(e, result, func(e *event) {
			if result == done {
				e.value = value(buf[i*f.size : (i+1)*f.size])
			}
		})
	}
}

// value is what a range holds: one word throughout, or a mixture that nobody
// wrote.
func value(b []byte) string {
	first := binary.BigEndian.Uint64(b)
	for at := 0; at < len(b); at += 8 {
		if v := binary.BigEndian.Uint64(b[at:]); v != first {
			return fmt.Sprintf("%x, but %x at %d", first, v, at)
		}
	}
	return fmt.Sprintf("%x", first)
}

func (a *actor) append(ctx context.Context) {
	if a.avoid[logName] {
		return
	}
	record := fmt.Sprintf("%0*x\n", recordSize-1, a.unique())
	result := a.run(ctx, event{object: logName, what: add, value: record}, func(ctx context.Context) error {
		return a.opened(ctx, logName, mount.OpenWrite|mount.OpenAppend, func(n mount.Inode, h mount.Handle) error {
			if _, err := a.fs.Write(ctx, mount.Caller{}, n, h, 0, []byte(record), mount.WriteAppend); err != nil {
				return err
			}
			return a.fs.Flush(ctx, mount.Caller{}, n, h, 0)
		})
	}, nil)
	a.avoid[logName] = result == unknown
}

func (a *actor) readLog(ctx context.Context) {
	if a.avoid[logName] {
		return
	}
	var b strings.Builder
	a.run(ctx, event{object: logName, what: read}, func(ctx context.Context) error {
		b.Reset()
		return a.opened(ctx, logName, mount.OpenRead, func(n mount.Inode, h mount.Handle) error {
			buf := make([]byte, 64<<10)
			for {
				got, err := a.fs.Read(ctx, mount.Caller{}, n, h, int64(b.Len()), buf)
				b.Write(buf[:got])
				if err != nil || got < len(buf) {
					return err
				}
			}
		})
	}, func(e *event) { e.value = b.String() })
}

// cell is the directory and the name of a cell.
func (a *actor) cell(at int) (mount.Inode, string) {
	return a.nodes[dirName(at/namesEach)], cellName(at)
}

func (a *actor) create(ctx context.Context, at int) {
	dir, name := a.cell(at)
	var e mount.Entry
	result := a.run(ctx, event{object: namesObject, what: create, at: at}, func(ctx context.Context) error {
		made, o, err := a.fs.Create(ctx, mount.Caller{}, dir, name, 0o644, mount.OpenWrite|mount.OpenExclusive)
		if err == nil && !a.calm {
			err = a.fs.Flush(ctx, mount.Caller{}, made.Node, o.Handle, 0)
		}
		if o.Handle != 0 {
			a.fs.Release(made.Node, o.Handle, 0, false)
			e = made
		}
		return err
	}, func(x *event) { x.ino = e.Attr.Ino })
	if result == done {
		a.know(e)
	}
}

// know keeps the last few objects seen, whose lookups count.
func (a *actor) know(e mount.Entry) {
	if a.known = append(a.known, e); len(a.known) > 4 {
		a.fs.Forget(a.known[0].Node, 1)
		a.known = a.known[1:]
	}
}

func (a *actor) lookup(ctx context.Context, at int) {
	dir, name := a.cell(at)
	var e mount.Entry
	result := a.run(ctx, event{object: namesObject, what: lookup, at: at}, func(ctx context.Context) (err error) {
		e, err = a.fs.Lookup(ctx, mount.Caller{}, dir, name)
		if fault.Is(err, fault.NotFound) {
			e, err = mount.Entry{}, nil
		}
		return err
	}, func(x *event) {
		if e.Node != 0 {
			x.ino = e.Attr.Ino
		}
	})
	if result == done && e.Node != 0 {
		a.know(e)
	}
}

func (a *actor) unlink(ctx context.Context, at int) {
	dir, name := a.cell(at)
	a.run(ctx, event{object: namesObject, what: unlink, at: at}, func(ctx context.Context) error {
		if err := a.fs.Unlink(ctx, mount.Caller{}, dir, name); err != nil {
			return err
		}
		return a.saved(ctx, dir)
	}, nil)
}

func (a *actor) rename(ctx context.Context, at, to int) {
	dir, name := a.cell(at)
	newDir, newName := a.cell(to)
	a.run(ctx, event{object: namesObject, what: rename, at: at, to: to}, func(ctx context.Context) error {
		if err := a.fs.Rename(ctx, mount.Caller{}, dir, name, newDir, newName, 0); err != nil {
			return err
		}
		return a.saved(ctx, dir, newDir)
	}, nil)
}

// saved waits until changes of names count, unless they do at once.
func (a *actor) saved(ctx context.Context, list ...mount.Inode) error {
	if a.calm {
		return nil
	}
	return saved(ctx, a.fs, list...)
}

func (a *actor) link(ctx context.Context, at int) {
	if len(a.known) == 0 {
		return
	}
	what := a.known[a.rand.IntN(len(a.known))]
	dir, name := a.cell(at)
	var e mount.Entry
	result := a.run(ctx, event{object: namesObject, what: link, at: at, ino: what.Attr.Ino}, func(ctx context.Context) (err error) {
		if e, err = a.fs.Link(ctx, mount.Caller{}, what.Node, dir, name); err != nil {
			return err
		}
		return a.saved(ctx, dir)
	}, nil)
	if result == done {
		a.know(e)
	}
}

func (a *actor) list(ctx context.Context, dir int) {
	node := a.nodes[dirName(dir)]
	var found listing
	a.run(ctx, event{object: namesObject, what: list, at: dir}, func(ctx context.Context) error {
		o, err := a.fs.OpenDir(ctx, mount.Caller{}, node)
		if err != nil {
			return err
		}
		defer a.fs.ReleaseDir(node, o.Handle)
		found = listing{dir: dir}
		return a.fs.ReadDir(ctx, mount.Caller{}, node, o.Handle, 0, false, &found)
	}, func(e *event) { e.cells = found.cells })
	if found.twice != "" {
		a.log.problem("client %d: %s listed twice in %s", a.id, found.twice, dirName(dir))
	}
}

// listing takes a directory's entries.
type listing struct {
	dir   int
	cells cells
	twice string
}

// Add implements mount.DirSink.
func (l *listing) Add(e mount.DirEntry) bool {
	for i := l.dir * namesEach; i < (l.dir+1)*namesEach; i++ {
		if e.Name == cellName(i) {
			if l.cells[i] != 0 {
				l.twice = e.Name
			}
			l.cells[i] = e.Ino
		}
	}
	return true
}

// AddPlus implements mount.DirSink.
func (l *listing) AddPlus(mount.DirEntry, *mount.Entry) bool { return false }

// everything reads all there is, as ordinary operations at the end.
func (a *actor) everything(ctx context.Context) {
	clear(a.avoid)
	for _, f := range registers() {
		a.read(ctx, f)
	}
	a.readLog(ctx)
	for i := range dirs {
		a.list(ctx, i)
	}
	for i := range dirs * namesEach {
		a.lookup(ctx, i)
	}
	if a.onceDir == 0 {
		return
	}
	for i := range dirs * namesEach {
		a.readOnce(ctx, i)
	}
}

// prepare makes what the run works on: by turns of the clients, so that the
// files stand at different sites, and one directory at a site of its own.
func prepare(ctx context.Context, actors []*actor, site ids.Site) error {
	who := mount.Caller{}
	for i := range dirs {
		parent := mount.Root
		if i > 0 {
			e, err := actors[0].fs.Lookup(ctx, who, mount.Root, ".Site="+string(site))
			if err != nil {
				return err
			}
			parent = e.Node
		}
		if _, err := actors[0].fs.Mkdir(ctx, who, parent, dirName(i), 0o755); err != nil {
			return err
		}
	}
	for i, f := range append(registers(), file{name: logName}) {
		a := actors[i%len(actors)]
		e, o, err := a.fs.Create(ctx, who, mount.Root, f.name, 0o644, mount.OpenWrite|mount.OpenExclusive)
		if err == nil {
			_, err = a.fs.Write(ctx, who, e.Node, o.Handle, 0, make([]byte, f.ranges*f.size), 0)
		}
		if err == nil {
			err = a.fs.Flush(ctx, who, e.Node, o.Handle, 0)
		}
		if err != nil {
			return err
		}
		a.fs.Release(e.Node, o.Handle, 0, false)
	}
	return nil
}
