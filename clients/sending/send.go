package sending

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
)

// Source says what is sent.
type Source struct {
	// Path is a file or a directory below a mount. It may have been removed since.
	Path string
	// Root is where that is from the root of the tree on, for people: the same at each mount.
	Root string
	// Snapshot is its name, or a time as .Snapshot has it.
	Snapshot string
	// Since is an earlier one, of which the receiver has a copy; empty: all is sent.
	Since string
	// Moment tells of what is shown below .Snapshot.
	Moment func(path string) (earlier.Moment, error)
	// Progress may be nil.
	Progress *Progress
}

// Sent is what a sending wrote.
type Sent struct {
	Header
	// From is where it began in the stream, and Size is how long the stream is.
	From int64 `json:"from_bytes"`
	Size int64 `json:"size_bytes"`
}

// Send writes the stream of a snapshot, without its first bytes up to from: what was sent of
// the same snapshot before. All of it is read. Errors: NotFound (no such snapshot, or the path
// was not there), Permission (a part may not be read), Invalid (from is behind the end), and
// those of reading and writing.
func Send(ctx context.Context, out io.Writer, from int64, s Source) (Sent, error) {
	x, h, err := open(ctx, &s)
	if err != nil {
		return Sent{}, err
	}
	if h.Names, err = count(ctx, x.now); err != nil {
		return Sent{}, err
	}
	buffer := bufio.NewWriterSize(out, 1<<20)
	x.out.out, x.out.skip = buffer, from
	if err = x.out.begin(&h); err == nil {
		err = x.all(&h)
	}
	if e := buffer.Flush(); err == nil {
		err = fault.FromOS("sending.Send", "the stream", e)
	}
	sent := Sent{Header: h, From: from, Size: x.out.end}
	if err == nil && from > sent.Size {
		err = fault.Errorf(fault.Invalid, "sending.Send", s.Snapshot, "the stream has %d bytes, and %d were sent: it is of something else", sent.Size, from)
	}
	return sent, err
}

// sender is a sending as it goes.
type sender struct {
	ctx       context.Context
	src       *Source
	now, then string // the roots at both times; then is empty where all is sent
	masks     [2]uint64
	out       writer
	links     map[uint64]*firstName
	// resume is the last record that was sent before; nil: this sending writes.
	resume       *position
	piece, other []byte
}

// firstName is the name of a file under which it was sent.
type firstName struct {
	path string
	was  uint64 // the number of what the receiver has there
	// whole: the receiver makes it anew, so that all its names follow.
	whole bool
	left  uint64 // names that were not met
}

// open finds the snapshots.
func open(ctx context.Context, s *Source) (*sender, Header, error) {
	if s.Progress == nil {
		s.Progress = &Progress{}
	}
	x := &sender{ctx: ctx, src: s, links: map[uint64]*firstName{}, piece: make([]byte, pieceBytes), other: make([]byte, pieceBytes)}
	h := Header{Name: s.Snapshot, Base: s.Since, Path: s.Root}
	now, err := x.find(s.Snapshot, 0, &x.now)
	if err != nil {
		return nil, h, err
	}
	h.Time, h.Object = now.Time, now.Object
	if s.Since == "" {
		return x, h, nil
	}
	then, err := x.find(s.Since, 1, &x.then)
	if err != nil {
		return nil, h, err
	}
	h.BaseTime, h.BaseObject = then.Time, then.Object
	if then.Time >= now.Time {
		return nil, h, fault.E(fault.Invalid, "sending.open", s.Since, "is not before "+s.Snapshot+": name an earlier snapshot")
	}
	return x, h, nil
}

// find finds the root of a snapshot.
func (x *sender) find(name string, i int, root *string) (earlier.Moment, error) {
	const op fault.Op = "sending.find"
	q, is, err := cue.Parse(cue.Snapshot.String() + "=" + name)
	if err != nil || !is || name == earlier.Now {
		return earlier.Moment{}, fault.E(fault.Invalid, op, name, "is no snapshot and no time")
	}
	if _, age := q.Moment(time.UTC); age != 0 {
		return earlier.Moment{}, fault.E(fault.Invalid, op, name, "is another moment each time, so that a stream of it cannot be continued: name a snapshot, or a time")
	}
	path := x.src.Path
	if info, bad := os.Stat(path); bad == nil && info.IsDir() {
		*root = earlier.At(path, name)
	} else if *root, err = earlier.Inside(path, name); err != nil {
		return earlier.Moment{}, err
	}
	f, err := look(*root)
	if err != nil {
		return earlier.Moment{}, err
	}
	x.masks[i] = f.Number
	return x.src.Moment(*root)
}

// count counts the names of a tree.
func count(ctx context.Context, root string) (uint64, error) {
	const op fault.Op = "sending.count"
	n := uint64(1)
	info, err := os.Lstat(root)
	if err != nil || !info.IsDir() {
		return n, fault.FromOS(op, root, err)
	}
	d, err := os.Open(root)
	if err != nil {
		return n, fault.FromOS(op, root, err)
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(1024)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fault.FromOS(op, root, err)
		}
		for _, e := range list {
			if ctx.Err() != nil {
				return n, fault.Wrap(fault.Canceled, op, root, ctx.Err())
			}
			if !e.IsDir() {
				n++
				continue
			}
			below, err := count(ctx, filepath.Join(root, e.Name()))
			if err != nil {
				return n, err
			}
			n += below
		}
	}
}

// all sends everything behind the header.
func (x *sender) all(h *Header) error {
	x.src.Progress.Of.Store(int64(h.Names))
	if err := x.visit("", x.then != "", true); err != nil {
		return err
	}
	if x.resume != nil {
		return fault.E(fault.Conflict, "sending.all", x.resume.path, "the file has this name, and the snapshot does not: it is of something else")
	}
	return x.out.finish()
}
