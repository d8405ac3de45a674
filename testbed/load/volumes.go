package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// BoxOptions say what is done in which boxes: volumes, or plain directories.
type BoxOptions struct {
	Contact string // contact file
	Site    string // where the client stands
	Folder  string // of the boxes: a path from the root with one component
	Plain   bool   // the boxes are directories
	Boxes   int
	Planted int // files of each box that are there before, and stay
	Sizes   BoxSizes
	Seed    uint64

	// Worker names this process's files. At work are Workers workers at once, for a time
	// or, where Each is above 0, for so many operations of each worker.
	Worker  string
	Workers int
	For     time.Duration
	Each    int
	// Create, Read and Delete are how often each is done, as parts of their sum.
	Create, Read, Delete int
}

// BoxSizes draws the sizes of files.
type BoxSizes string

// The sizes that BoxSizes knows.
const (
	// MailSizesBox has 95 % of the files below 55 kB, 98.5 % below 100 kB, and in those
	// 62 % of the bytes, as BeanFS's paper has them.
	MailSizesBox BoxSizes = "mail"
	// PhotoSizesBox has files of 16 to 512 kB, as BeanFS's paper writes and reads them.
	PhotoSizesBox BoxSizes = "photo"
	// SmallSizesBox has files of 4 kB.
	SmallSizesBox BoxSizes = "small"
)

// draw returns a size for three numbers from 0 to 1.
func (s BoxSizes) draw(which, where float64) int {
	between := func(low, high float64) int { return int(low * math.Pow(high/low, where)) } // log-uniform
	switch {
	case s == SmallSizesBox:
		return 4 << 10
	case s == PhotoSizesBox:
		return between(16e3, 512e3)
	case which < 0.95:
		return between(1e3, 55e3)
	case which < 0.985:
		return between(55e3, 100e3)
	}
	return between(100e3, 1.95e6)
}

// boxed is a file in a box.
type boxed struct {
	box    int
	name   string
	number uint64 // tells what it holds
	size   int
}

func (f boxed) content(seed uint64) []byte { return content(seed, f.number, f.size) }

func boxName(i int) string { return fmt.Sprintf("box-%03d", i) }

// planted is one of the files that are there before.
func (o BoxOptions) planted(i int) boxed {
	r := rand.New(rand.NewPCG(o.Seed, uint64(i)))
	return boxed{i % o.Boxes, fmt.Sprintf("planted-%04d", i/o.Boxes), uint64(i) | 1<<60, o.Sizes.draw(r.Float64(), r.Float64())}
}

func (o BoxOptions) client(ctx context.Context) (*cartwheel.Client, error) {
	file, err := contact.Load(o.Contact)
	if err != nil {
		return nil, err
	}
	return cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: ids.Site(o.Site), Name: "boxes"})
}

// BoxResult is what the workers of one process did. Times of operations are in
// milliseconds; Began and Ended are microseconds since 1970.
type BoxResult struct {
	Site   string    `json:"site"`
	Began  int64     `json:"began_us"`
	Ended  int64     `json:"ended_us"`
	Create []float64 `json:"create_ms"`
	Read   []float64 `json:"read_ms"`
	Delete []float64 `json:"delete_ms"`
	Bytes  int64     `json:"bytes"` // of creates and reads
	// Failed counts operations that ended with an error, and First is the first of them.
	Failed int    `json:"failed"`
	First  string `json:"first_error,omitempty"`
	// Checked files were looked for by another client afterwards. Lost were not there as
	// acknowledged, or were there though deleted.
	Checked int      `json:"checked"`
	Lost    []string `json:"lost,omitempty"`
}

// boxWork is the workers of one process.
type boxWork struct {
	o BoxOptions
	b boxes

	mu   sync.Mutex // guards below
	live []boxed    // acknowledged, and not being deleted
	gone []boxed    // deletion acknowledged
	made uint64
	r    BoxResult
}

// WorkInBoxes has workers create, read and delete files of boxes, and looks for what was
// acknowledged with another client afterwards. It fails where it cannot work at all.
func WorkInBoxes(ctx context.Context, o BoxOptions) (r BoxResult, err error) {
	const op fault.Op = "load.WorkInBoxes"
	if o.Create < 1 || o.Read < 0 || o.Delete < 0 || o.Boxes < 1 || o.Workers < 1 || o.Planted < 1 {
		return r, fault.E(fault.Usage, op, "", "there is a create at least, a box, a planted file and a worker")
	}
	c, err := o.client(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w := &boxWork{o: o}
	if w.b, err = openBoxes(ctx, c, o); err != nil {
		return r, err
	}
	defer w.b.close()
	if err := w.warm(ctx); err != nil {
		return r, err
	}
	w.r = BoxResult{Site: o.Site, Began: time.Now().UnixMicro()}
	until := time.Now().Add(o.For)
	err = each(ctx, o.Workers, o.Workers, func(ctx context.Context, i int) error {
		chance := rand.New(rand.NewPCG(o.Seed, uint64(i)+1))
		for n := 0; (o.Each > 0 && n < o.Each || o.Each == 0 && time.Now().Before(until)) && ctx.Err() == nil; n++ {
			w.one(ctx, chance)
		}
		return ctx.Err()
	})
	w.r.Ended = time.Now().UnixMicro()
	if err != nil {
		return r, err
	}
	err = w.check(ctx)
	return w.r, err
}

// warm makes one file in each box, which registers the client and finds the slices.
func (w *boxWork) warm(ctx context.Context) error {
	for box := range w.o.Boxes {
		f := w.next(box, SmallSizesBox.draw(0, 0))
		if err := w.b.create(ctx, f.box, f.name, f.content(w.o.Seed)); err != nil {
			return err
		}
	}
	return nil
}

// next names a new file.
func (w *boxWork) next(box, size int) boxed {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	return boxed{box, fmt.Sprintf("%s-%06d", w.o.Worker, w.made), w.made, size}
}

// one does one operation.
func (w *boxWork) one(ctx context.Context, chance *rand.Rand) {
	n := chance.IntN(w.o.Create + w.o.Read + w.o.Delete)
	switch {
	case n < w.o.Create:
		f := w.next(chance.IntN(w.o.Boxes), w.o.Sizes.draw(chance.Float64(), chance.Float64()))
		data := f.content(w.o.Seed)
		took, err := timed(func() error { return w.b.create(ctx, f.box, f.name, data) })
		w.note(&w.r.Create, took, f.size, err, func() { w.live = append(w.live, f) })
	case n < w.o.Create+w.o.Read:
		f := w.some(chance)
		var data []byte
		took, err := timed(func() (err error) { data, err = w.b.read(ctx, f.box, f.name); return err })
		w.note(&w.r.Read, took, f.size, err, func() {
			if !bytes.Equal(data, f.content(w.o.Seed)) {
				w.r.Lost = append(w.r.Lost, f.name+": holds something else")
			}
		})
	default:
		f, ok := w.take(chance)
		if !ok {
			return // nothing of its own is left
		}
		took, err := timed(func() error { return w.b.remove(ctx, f.box, f.name) })
		w.note(&w.r.Delete, took, 0, err, func() { w.gone = append(w.gone, f) })
	}
}

// note takes in how an operation ended. done is called where it was acknowledged.
func (w *boxWork) note(into *[]float64, took time.Duration, bytes int, err error, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.r.Failed++; w.r.First == "" {
			w.r.First = err.Error()
		}
		return
	}
	*into = append(*into, milliseconds(took))
	w.r.Bytes += int64(bytes)
	done()
}

// some is a file to read: one of those that were planted, which other processes read
// too.
func (w *boxWork) some(chance *rand.Rand) boxed {
	return w.o.planted(chance.IntN(w.o.Boxes * w.o.Planted))
}

// take is a file of this process to delete.
func (w *boxWork) take(chance *rand.Rand) (boxed, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.live) == 0 {
		return boxed{}, false
	}
	i := chance.IntN(len(w.live))
	f := w.live[i]
	w.live[i] = w.live[len(w.live)-1]
	w.live = w.live[:len(w.live)-1]
	return f, true
}

// checks bounds the files that are looked for of each kind.
const checks = 200

// check looks for what was acknowledged, with a client that has nothing cached.
func (w *boxWork) check(ctx context.Context) (err error) {
	c, err := w.o.client(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b, err := openBoxes(ctx, c, w.o)
	if err != nil {
		return err
	}
	defer b.close()
	return w.look(ctx, b)
}

// look looks for what was acknowledged in boxes.
func (w *boxWork) look(ctx context.Context, b boxes) error {
	live, gone := w.live[:min(len(w.live), checks)], w.gone[:min(len(w.gone), checks)]
	lost := func(f boxed, why string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.r.Lost = append(w.r.Lost, f.name+": "+why)
	}
	err := each(ctx, 16, len(live)+len(gone), func(ctx context.Context, i int) error {
		f, there := boxed{}, i < len(live)
		if there {
			f = live[i]
		} else {
			f = gone[i-len(live)]
		}
		data, err := b.read(ctx, f.box, f.name)
		switch {
		case err == nil && !there:
			lost(f, "was deleted, and is there")
		case err == nil && !bytes.Equal(data, f.content(w.o.Seed)):
			lost(f, "holds something else")
		case fault.Is(err, fault.NotFound):
			if there {
				lost(f, "is not there")
			}
		case err != nil:
			return err
		}
		return nil
	})
	w.r.Checked = len(live) + len(gone)
	return err
}
