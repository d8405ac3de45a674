package sending

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/clients/content/dirlock"
	"cartwheel.dev/geo-config/fault"
)

// Place says where a stream goes.
type Place struct {
	// Path is where the copy is, or becomes.
	Path string
	// From is where in the stream the input begins; 0: at its beginning.
	From int64
	// DryRun reads and proves all, and writes nothing.
	DryRun bool
	// Plain leaves out owners, extended attributes and ACLs.
	Plain bool
	// Progress may be nil.
	Progress *Progress

	// unsynced waits for no disk, for tests.
	unsynced bool
}

// Received is what a stream brought, or would bring.
type Received struct {
	Header
	At string `json:"at"`
	// Changes is how many names came: all, or those that differ.
	Changes uint64 `json:"changes"`
	Bytes   uint64 `json:"size_bytes"` // of contents that the stream has
	// From is what had been received before, in bytes of the stream.
	From int64 `json:"from_bytes"`
}

// Receive makes a copy of a whole stream, or makes one current by a difference. It writes
// beside the copy first, and changes that once the stream was proved to its end. Where the
// stream is cut, what came stays beside the copy, and receiving the whole stream again, or its
// rest, goes on there. Errors: Duplicate (the copy is of this snapshot), NotEmpty (something
// else is at the place), NotFound (a difference, and no copy), Conflict (the copy is of
// another snapshot, or was changed), Exists (another stream is half received), Closed (the
// stream was cut), Corrupt (it is damaged), and those of the files.
func Receive(ctx context.Context, in io.Reader, p Place) (Received, error) {
	if p.Progress == nil {
		p.Progress = &Progress{}
	}
	p.Path = filepath.Clean(p.Path)
	x := &receiver{ctx: ctx, p: &p, dir: p.Path + receivingSuffix, r: reader{in: bufio.NewReaderSize(in, 1<<20)}}
	defer x.close()
	begun, err := x.load()
	if err != nil {
		return Received{}, err
	}
	x.since = x.st.Offset
	finished := Header{}
	if begun && x.st.Whole && !p.DryRun {
		if err := x.put(); err != nil {
			return Received{}, err
		}
		finished, begun = x.st.Header, false
	}
	h, err := x.begin(begun)
	if err != nil {
		return Received{}, x.advise(err)
	}
	out := Received{Header: h, At: p.Path}
	if finished.same(&h) {
		return out, nil
	}
	if err := x.check(&h, begun); err != nil {
		return out, err
	}
	if begun && !p.DryRun {
		out.From = x.st.Offset
	}
	if !h.isDifference() {
		p.Progress.Of.Store(int64(h.Names))
	}
	err = x.open(&h, begun)
	if err == nil {
		err = x.all()
	}
	if err == nil && !p.DryRun {
		err = x.publish()
	}
	out.Changes, out.Bytes = x.st.Changes, x.r.bytes
	return out, err
}

// receiver is a receiving as it goes.
type receiver struct {
	ctx context.Context
	p   *Place
	dir string // beside the copy
	r   reader
	st  state

	lock *dirlock.Lock // on the directory, once it is this receiving's

	build   builder // of a whole stream
	expect  expect  // of a difference that is tried
	journal *os.File

	object *object  // the file that is being written; nil: none is
	file   *os.File // where, unless nothing is written
	base   *os.File // what a difference's file was; nil: not needed yet
	since  int64    // where in the stream the state was saved
}

// load reads how far a stream was received before. It reports whether one was.
func (x *receiver) load() (bool, error) {
	path := filepath.Join(x.dir, stateName)
	there, err := exists(path)
	if err != nil || !there {
		return false, err
	}
	if err := x.alone(); err != nil {
		return false, err
	}
	return load(path, &x.st, &x.st.Version)
}

// alone keeps other processes out of the directory. A receiving that writes nothing needs no
// lock.
func (x *receiver) alone() (err error) {
	if x.p.DryRun {
		return nil
	}
	x.lock, err = dirlock.Take(x.dir)
	if fault.Is(err, fault.Busy) {
		return fault.E(fault.Busy, "sending.Receive", x.dir, "another process receives here: wait for it")
	}
	return err
}

// begin reads the header, or goes on behind what was received.
func (x *receiver) begin(begun bool) (Header, error) {
	const op fault.Op = "sending.begin"
	if x.p.From == 0 {
		return x.r.begin()
	}
	if x.p.DryRun {
		return Header{}, fault.E(fault.Usage, op, x.p.Path, "only a stream from its beginning can be tried")
	}
	if !begun {
		return Header{}, fault.E(fault.NotFound, op, x.dir, "no stream was begun here: send all of it")
	}
	if x.st.Offset != x.p.From {
		return Header{}, fault.Errorf(fault.Conflict, op, x.dir, "has the first %d bytes of the stream: send it with --from %d", x.st.Offset, x.st.Offset)
	}
	x.resume()
	return x.st.Header, nil
}

// resume has the reader go on behind what was received.
func (x *receiver) resume() {
	copy(x.r.chain[:], x.st.Sum)
	x.r.end, x.r.records, x.r.bytes = x.st.Offset, x.st.Records, x.st.Bytes
}

// check refuses a stream that the place cannot take.
func (x *receiver) check(h *Header, begun bool) error {
	const op fault.Op = "sending.check"
	if begun && !x.st.Header.same(h) {
		return fault.E(fault.Exists, op, x.dir, "has a part of "+x.st.Header.what()+": receive the rest of that, or remove the directory")
	}
	var rec Record
	known, err := load(x.p.Path+receivedSuffix, &rec, &rec.Version)
	if err != nil {
		return err
	}
	there, err := exists(x.p.Path)
	if err != nil {
		return err
	}
	known = known && there
	switch {
	case known && rec.Time == h.Time && rec.Object == h.Object:
		return fault.E(fault.Duplicate, op, x.p.Path, "is the copy of "+h.Name+" already: there is nothing to receive")
	case h.isDifference() && !known:
		return fault.E(fault.NotFound, op, x.p.Path, "no copy is there that was received: receive the whole stream of "+h.Base+" first")
	case h.isDifference() && (rec.Time != h.BaseTime || rec.Object != h.BaseObject):
		return fault.E(fault.Conflict, op, x.p.Path, "is the copy of "+rec.Name+", and the stream counts from "+h.Base+
			": receive those between, or send the difference with --since "+rec.Name)
	case !h.isDifference() && there:
		if list, err := os.ReadDir(x.p.Path); err != nil || len(list) > 0 {
			return fault.E(fault.NotEmpty, op, x.p.Path, "something is there, and a whole stream writes over nothing: name another place, or send a difference with --since")
		}
	}
	x.p.Plain = x.p.Plain || h.isDifference() && rec.Plain
	return nil
}

// open prepares what is beside the copy.
func (x *receiver) open(h *Header, begun bool) error {
	const op fault.Op = "sending.open"
	x.expect = expect{root: x.p.Path, base: h.Base}
	if x.p.DryRun {
		x.st = state{Header: *h}
		return nil
	}
	if !begun {
		x.st = state{Version: fileVersion, Header: *h, Plain: x.p.Plain}
		if err := x.mkdir(); err != nil {
			return err
		}
	}
	x.build = builder{root: filepath.Join(x.dir, treeName), spare: filepath.Join(x.dir, newName), plain: x.st.Plain}
	var err error
	if h.isDifference() {
		if x.journal, err = openAt(filepath.Join(x.dir, journalName), x.st.Journal); err != nil {
			return fault.FromOS(op, x.dir, err)
		}
	}
	for _, body := range x.st.Open {
		o, err := decodeObject(body)
		if err != nil {
			return err
		}
		if err := x.build.push(level{path: o.path, dress: o}); err != nil {
			return err
		}
	}
	if len(x.st.Object) > 0 {
		if x.object, err = decodeObject(x.st.Object); err != nil {
			return err
		}
		if err := x.reopen(); err != nil {
			return fault.FromOS(op, x.object.path, err)
		}
	}
	if begun {
		return x.pass()
	}
	return x.save()
}

// mkdir makes the directory beside the copy. One in which nothing was begun is as good.
func (x *receiver) mkdir() error {
	const op fault.Op = "sending.mkdir"
	if err := os.Mkdir(x.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fault.FromOS(op, x.dir, err)
	}
	list, err := os.ReadDir(x.dir)
	if err != nil {
		return fault.FromOS(op, x.dir, err)
	}
	for _, e := range list {
		if e.Name() != dirlock.Name && e.Name() != stateName+replacing {
			return fault.E(fault.Exists, op, x.dir, "is needed to receive the stream and has something else: move it away first")
		}
	}
	return x.alone()
}

// reopen opens the file that was being written when the state was saved. It may have got to
// its place since.
func (x *receiver) reopen() error {
	at := x.content()
	there, err := exists(at)
	if err != nil {
		return err
	}
	if !there {
		placed := x.written(x.st.Files)
		if !x.st.Header.isDifference() {
			if placed, err = x.build.full(x.object.path); err != nil {
				return err
			}
		}
		if err := os.Chmod(placed, 0o600); err != nil {
			return err
		}
		if err := os.Rename(placed, at); err != nil {
			return err
		}
	}
	x.file, err = openAt(at, x.st.Written)
	return err
}

// openAt opens a file at what was written of it.
func openAt(path string, at int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(at)
	}
	if err == nil {
		_, err = f.Seek(at, io.SeekStart)
	}
	return f, err
}

// pass reads what was received before, and proves that it was of this stream.
func (x *receiver) pass() error {
	for x.r.end < x.st.Offset {
		if x.ctx.Err() != nil {
			return fault.Wrap(fault.Canceled, "sending.pass", x.p.Path, x.ctx.Err())
		}
		if _, err := x.r.next(); err != nil {
			return x.advise(err)
		}
	}
	x.since = x.r.end
	if x.r.end != x.st.Offset || string(x.r.chain[:]) != string(x.st.Sum) {
		return fault.E(fault.Conflict, "sending.pass", x.dir, "was not received from this stream: remove the directory, and receive the stream anew")
	}
	return nil
}

// advise says how to go on where a stream was cut or damaged.
func (x *receiver) advise(err error) error {
	if !fault.Is(err, fault.Closed) && !fault.Is(err, fault.Corrupt) {
		return err
	}
	text := "nothing at the place has changed"
	if x.since > 0 && !x.p.DryRun {
		text += fmt.Sprintf(", and the first %d bytes of the stream are received: continue the file with `cartwheel snapshot send --resume` and receive it again, or receive the rest from `cartwheel snapshot send --from %d`",
			x.since, x.since)
	}
	return &fault.Error{Kind: fault.KindOf(err), Op: "sending.Receive", Subject: x.p.Path, Public: text, Cause: err}
}
