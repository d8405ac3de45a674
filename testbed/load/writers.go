package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// WriterOptions say who works where and for how long.
type WriterOptions struct {
	Dir     string // there already; each worker makes a folder of its own in it
	Workers int
	For     time.Duration
	Bytes   int // of each file
	Seed    uint64
	Pause   time.Duration // between two operations of a worker
}

// What writers do.
const (
	OpCreate  = "create"
	OpReplace = "replace" // by another file, renamed over it
	OpRead    = "read"
	OpDelete  = "delete"
)

// Event is one operation of a writer. Without Err it was acknowledged; with
// one, what came of it is unknown, and the writer leaves that name alone.
type Event struct {
	Worker  int    `json:"w"`
	Op      string `json:"op"`
	Name    string `json:"name"` // path from Dir
	Version uint64 `json:"v"`    // what the file holds then; no two writes share one
	At      int64  `json:"at_us"`
	Took    int64  `json:"took_us"`
	Err     string `json:"err,omitempty"`
	// Wrong says that the answer cannot be: what was acknowledged is not there.
	Wrong bool `json:"wrong,omitempty"`
}

// End is when the operation ended.
func (e Event) End() time.Time { return time.UnixMicro(e.At + e.Took) }

// Writers runs until o.For has passed, and writes every operation to out as it
// ends, a line of JSON each. Errors of operations are events; Writers itself
// fails only where it cannot work at all.
func Writers(ctx context.Context, o WriterOptions, out io.Writer) error {
	const op fault.Op = "load.Writers"
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	l := &eventLog{w: bufio.NewWriterSize(out, 1<<16)}
	err := each(context.WithoutCancel(ctx), o.Workers, o.Workers, func(_ context.Context, i int) error {
		w := writer{o: o, id: i, rand: rand.New(rand.NewPCG(o.Seed, uint64(i))), dir: fmt.Sprintf("worker-%02d", i), log: l}
		if err := w.home(ctx); err != nil {
			return err
		}
		for ctx.Err() == nil {
			if err := w.one(); err != nil {
				return err
			}
			_ = wait(ctx, o.Pause) // the loop sees that it is over
		}
		return nil
	})
	return fault.Wrap(fault.IO, op, o.Dir, errors.Join(err, l.flush()))
}

// eventLog writes events of many workers.
type eventLog struct {
	mu sync.Mutex // guards w
	w  *bufio.Writer
}

func (l *eventLog) add(e any) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(line, '\n'))
	return err
}

func (l *eventLog) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

// writer is one worker: one operation at a time, on names of its own.
type writer struct {
	o    WriterOptions
	id   int
	rand *rand.Rand
	dir  string // from o.Dir
	log  *eventLog
	live []held
	made uint64
}

// held is a file that the worker knows to be there.
type held struct {
	name    string
	version uint64
}

// keep is how many files a worker has at a time.
const keep = 16

// home makes the worker's folder; a site may be off when it begins.
func (w *writer) home(ctx context.Context) error {
	for {
		err := os.Mkdir(filepath.Join(w.o.Dir, w.dir), 0o755)
		if err == nil || errors.Is(err, os.ErrExist) {
			return nil
		}
		if ctx.Err() != nil {
			return fault.FromOS("load.home", w.dir, err)
		}
		_ = wait(ctx, 100*time.Millisecond) // the loop sees that it is over
	}
}

// one does one operation and notes it.
func (w *writer) one() error {
	e := Event{Worker: w.id, At: time.Now().UnixMicro()}
	n, at := w.rand.IntN(100), 0
	if len(w.live) > 0 {
		at = w.rand.IntN(len(w.live))
	}
	var err error
	switch {
	case len(w.live) < keep/2 || n < 40 && len(w.live) < keep:
		err = w.create(&e)
	case n < 60:
		err = w.replace(&e, at)
	case n < 80:
		err = w.read(&e, at)
	default:
		err = w.remove(&e, at)
	}
	e.Took = time.Now().UnixMicro() - e.At
	if err != nil {
		e.Err = err.Error()
	}
	return w.log.add(e)
}

func (w *writer) path(name string) string { return filepath.Join(w.o.Dir, name) }

func (w *writer) next() uint64 {
	w.made++
	return uint64(w.id+1)<<40 | w.made
}

func (w *writer) create(e *Event) error {
	e.Op, e.Version = OpCreate, w.next()
	e.Name = filepath.Join(w.dir, fmt.Sprintf("f%06d", w.made))
	if err := write(w.path(e.Name), 0o644, content(w.o.Seed, e.Version, w.o.Bytes)); err != nil {
		return err
	}
	w.live = append(w.live, held{e.Name, e.Version})
	return nil
}

// replace writes another file and renames it over the old one.
func (w *writer) replace(e *Event, at int) error {
	e.Op, e.Version, e.Name = OpReplace, w.next(), w.live[at].name
	next := w.path(filepath.Join(w.dir, fmt.Sprintf("t%06d", w.made)))
	err := write(next, 0o644, content(w.o.Seed, e.Version, w.o.Bytes))
	if err == nil {
		err = os.Rename(next, w.path(e.Name))
	}
	if err != nil {
		w.drop(at)
		return err
	}
	w.live[at].version = e.Version
	return nil
}

func (w *writer) read(e *Event, at int) error {
	e.Op, e.Name, e.Version = OpRead, w.live[at].name, w.live[at].version
	data, err := os.ReadFile(w.path(e.Name))
	e.Wrong = errors.Is(err, os.ErrNotExist) || err == nil && !bytes.Equal(data, content(w.o.Seed, e.Version, w.o.Bytes))
	return err
}

func (w *writer) remove(e *Event, at int) error {
	e.Op, e.Name = OpDelete, w.live[at].name
	w.drop(at)
	return os.Remove(w.path(e.Name))
}

func (w *writer) drop(at int) { w.live = append(w.live[:at], w.live[at+1:]...) }
