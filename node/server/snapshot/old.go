package snapshot

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// old is the state of a slice that lay here when a copy began. Its rows stay behind the
// pages that came, until a page says what is there: alike ones are not sent again.
type old struct {
	db     *meta.DB
	id     ids.Slice
	ranges int  // about how many bytes of rows a range has at first
	there  bool // there are rows behind the last page
	ask    int  // ranges of the next request: more as long as all of them are alike
	bytes  int  // about how many bytes of rows each of them has
	kept   int  // rows that were alike
	// rows are those of the ranges of the last request, in order, and ends where each
	// range ends among them.
	rows []meta.Row
	ends []int
}

// first asks for the first page. What lies here may still change, so nothing is compared:
// the range only says where the page may end.
func (o *old) first(build bool) (*pb.TransferRequest, error) {
	req := &pb.TransferRequest{Slice: uint32(o.id)}
	if !build {
		return req, nil
	}
	frozen := o.db.Freeze()
	defer func() { _ = frozen.Close() }() // it was only read
	rows, err := frozen.Rows(o.id, meta.Row{}, o.ranges)
	if err == nil && len(rows) > 0 {
		req.Have = []*pb.TransferRequest_Range{{End: nameOf(&rows[len(rows)-1]), Sum: make([]byte, rangeSum)}}
	}
	return req, err
}

// request asks for the page behind a row, with what lies here behind it. Nothing may be
// applied from before until the page came: the rows are those of the serial from which on
// the source answers.
func (o *old) request(applied ids.Serial, behind meta.Row) (*pb.TransferRequest, error) {
	req := &pb.TransferRequest{Slice: uint32(o.id), AtLeast: uint64(applied)}
	o.rows, o.ends = o.rows[:0], o.ends[:0]
	if !o.there {
		return req, nil
	}
	frozen := o.db.Freeze()
	defer func() { _ = frozen.Close() }() // it was only read
	for range o.ask {
		rows, err := frozen.Rows(o.id, behind, o.bytes)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			o.there = len(req.Have) > 0
			return req, nil
		}
		behind = rows[len(rows)-1]
		req.Have = append(req.Have, &pb.TransferRequest_Range{End: nameOf(&behind), Sum: sumRows(rows)})
		o.rows = append(o.rows, rows...)
		o.ends = append(o.ends, len(o.rows))
	}
	req.More = true
	return req, nil
}

// alike takes the rows of the ranges that a source found alike as copied, up to the last
// of them, and notes the chunks that they name.
func (o *old) alike(same int, end *meta.Row, chunks *named) error {
	if same > len(o.ends) {
		return fault.E(fault.Corrupt, "snapshot.alike", "", "a page names more ranges than were asked about")
	}
	switch {
	case len(o.ends) == 0:
		return nil
	case same == 0:
		o.ask, o.bytes = 1, min(2*o.bytes, max(rangeGrown, o.ranges))
		return nil
	case same == len(o.ends):
		o.ask, o.bytes = min(2*o.ask, rangesMost), o.ranges
	default:
		o.ask, o.bytes = 1, o.ranges
	}
	for i := range o.rows[:o.ends[same-1]] {
		chunks.note(&o.rows[i])
		o.kept++
	}
	last := &o.rows[o.ends[same-1]-1]
	*end = meta.Row{Area: last.Area, Key: last.Key}
	return nil
}

// over makes the rows here behind one row, up to a page's end, those of the page. They are
// what is not alike, so there are about as many as fit into a page.
func (o *old) over(b *meta.Batch, behind meta.Row, rows []meta.Row, end meta.Row, last bool) error {
	frozen := o.db.Freeze()
	defer func() { _ = frozen.Close() }() // it was only read
	next := 0
	for {
		here, err := frozen.Rows(o.id, behind, o.ranges)
		if err != nil {
			return err
		}
		for i := range here {
			r := &here[i]
			if r.Compare(end) > 0 {
				here = nil
				break
			}
			for next < len(rows) && rows[next].Compare(*r) < 0 {
				if err := b.Restore(o.id, rows[next]); err != nil {
					return err
				}
				next++
			}
			switch is := next < len(rows) && rows[next].Compare(*r) == 0; {
			case is && bytes.Equal(rows[next].Value, r.Value):
				next++
			case is: // it is written over
			case r.Plain() && replog.Own(r.Key): // this node's own, and written since the copy began
			case !plant.On(plant.TransferKeepsOld):
				if err := b.Remove(o.id, *r); err != nil {
					return err
				}
			}
		}
		if len(here) == 0 {
			break
		}
		behind = here[len(here)-1]
	}
	for _, r := range rows[next:] {
		if err := b.Restore(o.id, r); err != nil {
			return err
		}
	}
	if last && !plant.On(plant.TransferKeepsOld) {
		return b.RemoveBehind(o.id, end, replog.OwnFirst)
	}
	return nil
}

// keep decides whether the state that lies here is built on, and throws away what of it is
// not of the state, or all of it.
func (o *old) keep(build bool) error {
	b := o.db.NewBatch()
	var err error
	if build {
		err = b.RemoveMarks(o.id, replog.OwnFirst)
	} else if !plant.On(plant.TransferKeepsOld) {
		err = b.DropSlice(o.id)
	}
	if err != nil {
		b.Abandon()
		return err
	}
	o.there, o.ask, o.bytes = build, 1, o.ranges
	return fault.Wrap(fault.IO, "snapshot.keep", "", b.Commit())
}
