package sending

import (
	"bufio"
	"context"
	"io"
	"os"

	"cartwheel.dev/geo-config/fault"
)

// position is the last record of a stream that was cut.
type position struct {
	kind   byte
	path   string
	offset uint64 // of a file: the end of what was sent of its content
}

// Resume continues a stream that was cut in a file: what is whole of it stays, and the rest
// is written behind that. Only names and attributes are read of what was sent, and no content.
// A file without a whole header is begun anew. Errors: Exists, where the file is whole;
// Conflict, where it is of another snapshot, path or base; and those of Send.
func Resume(ctx context.Context, file *os.File, s Source) (Sent, error) {
	const op fault.Op = "sending.Resume"
	x, h, err := open(ctx, &s)
	if err != nil {
		return Sent{}, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return Sent{}, fault.FromOS(op, file.Name(), err)
	}
	r := reader{in: bufio.NewReaderSize(file, 1<<20)}
	got, err := r.begin()
	if fault.Is(err, fault.Closed) {
		if err := rewind(file, 0); err != nil {
			return Sent{}, err
		}
		return Send(ctx, file, 0, s)
	}
	if err != nil {
		return Sent{}, named(err, file)
	}
	if !got.same(&h) {
		return Sent{}, fault.E(fault.Conflict, op, file.Name(), "has a part of "+got.what()+" of "+got.Path+": name another file")
	}
	from, err := x.place(&r)
	if err != nil {
		return Sent{}, named(err, file)
	}
	if err := rewind(file, from); err != nil {
		return Sent{}, err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	x.out.out = out
	err = x.all(&got)
	if e := out.Flush(); err == nil {
		err = fault.FromOS(op, file.Name(), e)
	}
	return Sent{Header: got, From: from, Size: x.out.end}, err
}

// named says of which file an error is.
func named(err error, file *os.File) error {
	return fault.Wrap(fault.IO, "sending.Resume", file.Name(), err)
}

// rewind cuts a file and goes to its end.
func rewind(file *os.File, to int64) error {
	const op fault.Op = "sending.rewind"
	if err := file.Truncate(to); err != nil {
		return fault.FromOS(op, file.Name(), err)
	}
	_, err := file.Seek(to, io.SeekStart)
	return fault.FromOS(op, file.Name(), err)
}

// place reads what was sent, and has this sending go on behind it. What is damaged is sent
// again, with all that follows.
func (x *sender) place(r *reader) (int64, error) {
	p := position{}
	for {
		rec, err := r.next()
		if fault.Is(err, fault.Closed) || fault.Is(err, fault.Corrupt) {
			break
		}
		if err != nil {
			return 0, err
		}
		if err := p.pass(rec); err != nil {
			return 0, err
		}
		if rec.kind == recordEnd {
			return 0, fault.E(fault.Exists, "sending.place", "", "the stream is whole already")
		}
	}
	if p.kind != 0 {
		x.resume = &p
	}
	x.out = writer{chain: r.chain, end: r.end, records: r.records, bytes: r.bytes}
	return r.end, nil
}

// pass follows a record.
func (p *position) pass(rec record) error {
	switch rec.kind {
	case recordObject:
		o, err := decodeObject(rec.body)
		if err != nil {
			return err
		}
		*p = position{kind: rec.kind, path: o.path}
	case recordRemoved:
		r, err := decodeRemoved(rec.body)
		if err != nil {
			return err
		}
		*p = position{kind: rec.kind, path: r.path}
	case recordLink:
		l, err := decodeLink(rec.body)
		if err != nil {
			return err
		}
		*p = position{kind: rec.kind, path: l.path}
	case recordData:
		d, err := decodeData(rec.body)
		if err != nil {
			return err
		}
		p.offset = d.offset + uint64(len(d.bytes))
	case recordKept:
		d, err := decodeKept(rec.body)
		if err != nil {
			return err
		}
		p.offset = d.offset + d.length
	}
	return nil
}
