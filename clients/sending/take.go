package sending

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// saveEvery is how much of a stream is received between two savings of the state.
const saveEvery = 64 << 20

// malformed is the error of records that make no sense together.
func malformed(path string) error {
	return fault.E(fault.Corrupt, "sending.take", path, "the stream's records make no sense here")
}

// all takes the records of the stream to its end. Where that fails, what came is saved.
func (x *receiver) all() error {
	for {
		if x.ctx.Err() != nil {
			if err := x.save(); err != nil {
				return err
			}
			return fault.Wrap(fault.Canceled, "sending.all", x.p.Path, x.ctx.Err())
		}
		rec, err := x.r.next()
		if err != nil {
			if bad := x.save(); bad != nil {
				return bad
			}
			return x.advise(err)
		}
		if rec.kind == recordEnd {
			return x.end()
		}
		if err := x.take(rec); err != nil {
			return err
		}
		if x.r.end-x.since >= saveEvery {
			if err := x.save(); err != nil {
				return err
			}
		}
	}
}

// take does what a record says.
func (x *receiver) take(rec record) error {
	switch rec.kind {
	case recordObject, recordLink, recordRemoved:
		return x.name(rec)
	case recordData:
		d, err := decodeData(rec.body)
		if err != nil {
			return err
		}
		return x.data(&d)
	case recordKept:
		d, err := decodeKept(rec.body)
		if err != nil {
			return err
		}
		return x.kept(&d)
	}
	return malformed("")
}

// pathOf returns the path of a record, what it is if content follows, and whether it needs a
// base.
func pathOf(rec record) (path string, file *object, onBase bool, err error) {
	switch rec.kind {
	case recordObject:
		o, err := decodeObject(rec.body)
		if err == nil && o.whole && o.isRegular() {
			file = o
		}
		return o.path, file, o.was != nil, err
	case recordLink:
		l, err := decodeLink(rec.body)
		return l.path, nil, l.was != nil, err
	}
	r, err := decodeRemoved(rec.body)
	return r.path, nil, true, err
}

// name takes the record of a name.
func (x *receiver) name(rec record) error {
	if err := x.finish(); err != nil {
		return err
	}
	path, file, onBase, err := pathOf(rec)
	if err != nil {
		return err
	}
	isDifference := x.st.Header.isDifference()
	if onBase && !isDifference {
		return malformed(path)
	}
	if err := x.st.Order.next(path, rec.kind == recordRemoved); err != nil {
		return err
	}
	x.st.Changes++
	x.p.Progress.Names.Add(1)
	if x.p.DryRun {
		x.object, x.st.Written = file, 0
		if isDifference {
			return x.expect.record(rec)
		}
		return nil
	}
	if file != nil {
		if err := x.create(file, rec.body); err != nil {
			return err
		}
	}
	switch {
	case isDifference:
		return x.note(rec)
	case file != nil:
		return nil // it gets its name once it is whole
	}
	return x.build.record(rec, nil)
}

// note writes the record of a name into the journal.
func (x *receiver) note(rec record) error {
	b := append(little.AppendUint32(nil, uint32(len(rec.body))), rec.kind)
	b = append(b, rec.body...)
	n, err := x.journal.Write(b)
	x.st.Journal += int64(n)
	return fault.FromOS("sending.note", x.journal.Name(), err)
}

// create begins a file.
func (x *receiver) create(o *object, body []byte) error {
	var err error
	x.object, x.st.Object, x.st.Written = o, append([]byte(nil), body...), 0
	x.file, err = openAt(x.content(), 0)
	return fault.FromOS("sending.create", x.dir, err)
}

// content is where the file lies that is being written. Each has a name of its own, so that a
// state that was saved finds its file again.
func (x *receiver) content() string {
	return filepath.Join(x.dir, contentName+fmt.Sprint(x.st.Changes))
}

// data takes a piece of a file.
func (x *receiver) data(d *data) error {
	if err := chunk.Verify(d.name, d.bytes); err != nil {
		return err
	}
	return x.write(d.offset, d.bytes)
}

// write writes a piece of a file behind those before it.
func (x *receiver) write(offset uint64, piece []byte) error {
	if x.object == nil || offset < uint64(x.st.Written) || offset > x.object.size || uint64(len(piece)) > x.object.size-offset {
		return malformed("")
	}
	x.st.Written = int64(offset) + int64(len(piece))
	x.p.Progress.Bytes.Add(int64(len(piece)))
	if x.file == nil {
		return nil
	}
	_, err := x.file.WriteAt(piece, int64(offset))
	return fault.FromOS("sending.write", x.dir, err)
}

// kept takes a range of a file from what the copy has.
func (x *receiver) kept(d *data) error {
	const op fault.Op = "sending.kept"
	if x.object == nil || x.object.was == nil || d.offset%pieceBytes != 0 {
		return malformed("")
	}
	if x.base == nil {
		if err := x.openBase(); err != nil {
			return fault.FromOS(op, x.object.path, err)
		}
	}
	var sums []byte
	buf := make([]byte, pieceBytes)
	for offset, end := d.offset, d.offset+d.length; offset < end; {
		piece, err := readPiece(x.base, buf[:min(pieceBytes, end-offset)], offset)
		if err != nil {
			return err
		}
		if len(piece) == 0 {
			break // it is shorter: the sum tells
		}
		name := chunk.Sum(piece)
		sums = append(sums, name[:]...)
		if err := x.write(offset, piece); err != nil {
			return err
		}
		offset += uint64(len(piece))
	}
	if chunk.Sum(sums) != d.name {
		return x.expect.differs(x.base.Name(), "was changed since it was received")
	}
	return nil
}

// openBase opens what the copy has under the name of the file that is being written.
func (x *receiver) openBase() error {
	b := builder{root: x.p.Path}
	at, err := b.full(x.object.path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return x.expect.differs(at, "was changed since it was received")
	}
	x.base, err = os.Open(at)
	return err
}

// finish gives a file that is whole its attributes. Of a whole stream it also gets its name.
func (x *receiver) finish() error {
	const op fault.Op = "sending.finish"
	o, f := x.object, x.file
	if x.base != nil {
		x.base.Close()
	}
	x.object, x.file, x.base = nil, nil, nil
	if f == nil {
		return nil
	}
	x.st.Object, x.st.Written = nil, 0
	err := f.Truncate(int64(o.size))
	if err == nil && !x.p.unsynced {
		err = syncFile(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = dress(f.Name(), o, x.st.Plain)
	}
	if err != nil {
		return fault.FromOS(op, o.path, err)
	}
	if !x.st.Header.isDifference() {
		return x.build.object(o, f.Name())
	}
	to := x.written(x.st.Files)
	x.st.Files++
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fault.FromOS(op, to, err)
	}
	return fault.FromOS(op, to, os.Rename(f.Name(), to))
}

// written is where a file of a difference lies until the stream is whole.
func (x *receiver) written(n uint64) string {
	return filepath.Join(x.dir, filesName, fmt.Sprint(n/1000), fmt.Sprint(n))
}

// save saves how far the stream was received, once that is on the disk.
func (x *receiver) save() error {
	const op fault.Op = "sending.save"
	if x.p.DryRun {
		return nil
	}
	for _, f := range []*os.File{x.file, x.journal} {
		if f == nil || x.p.unsynced {
			continue
		}
		if err := f.Sync(); err != nil {
			return fault.FromOS(op, f.Name(), err)
		}
	}
	if !x.p.unsynced {
		if err := syncTree(x.dir); err != nil {
			return fault.FromOS(op, x.dir, err)
		}
	}
	x.st.Offset, x.st.Sum = x.r.end, append([]byte(nil), x.r.chain[:]...)
	x.st.Records, x.st.Bytes, x.st.Open = x.r.records, x.r.bytes, nil
	for _, l := range x.build.open {
		x.st.Open = append(x.st.Open, l.dress.encode())
	}
	x.since = x.r.end
	return save(filepath.Join(x.dir, stateName), &x.st, x.p.unsynced)
}

// end takes the end of the stream.
func (x *receiver) end() error {
	if err := x.finish(); err != nil {
		return err
	}
	if !x.st.Order.Any && !x.st.Header.isDifference() {
		return malformed("")
	}
	if n, err := x.r.in.Read(make([]byte, 1)); n > 0 {
		return fault.E(fault.Corrupt, "sending.end", x.p.Path, "something follows the end of the stream: it is of another one, or was written twice")
	} else if !errors.Is(err, io.EOF) {
		return fault.FromOS("sending.end", "the stream", err)
	}
	if x.p.DryRun {
		return x.expect.close()
	}
	if err := x.build.close(); err != nil {
		return err
	}
	if !x.st.Header.isDifference() {
		return nil
	}
	if err := x.replay(x.expect.record); err != nil {
		return err
	}
	return x.expect.close()
}

// close closes what is open. What was not saved is lost.
func (x *receiver) close() {
	for _, f := range []*os.File{x.file, x.base, x.journal} {
		if f != nil {
			f.Close()
		}
	}
	x.file, x.base, x.journal = nil, nil, nil
	if x.lock != nil {
		_ = x.lock.Close() // nothing is written through it
	}
	x.lock = nil
}
