package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// all takes every page, and every chunk that their rows name.
func (t *receiving) all(ctx context.Context, first *pb.TransferResponse, body []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wanted, done := make(chan named, wantedPages), make(chan error, 1)
	go func() {
		err := t.chunks(ctx, wanted)
		if err != nil {
			cancel(err)
		}
		done <- err
	}()
	err := t.pages(ctx, first, body, wanted)
	close(wanted)
	if err != nil {
		cancel(err)
	}
	if bad := <-done; bad != nil && errors.Is(context.Cause(ctx), bad) {
		return bad
	}
	return err
}

// pages writes the pages to the metadata, in the order of their rows. The caller
// passes the first page; the others are asked for.
func (t *receiving) pages(ctx context.Context, answer *pb.TransferResponse, body []byte, wanted chan<- named) error {
	p := operate.Page{}
	for {
		chunks, err := t.restore(answer, body, &p)
		if err != nil {
			return err
		}
		var refused error
		if err = t.s.o.Loop.Ask(ctx, func(*replica.Node, replica.Time) { refused = t.s.o.Copies.CopyPage(t.id, p) }); err == nil {
			err = refused
		}
		if err != nil || p.Last {
			return err
		}
		select {
		case wanted <- chunks:
		case <-ctx.Done():
			return ctx.Err()
		}
		if t.s.o.Clock()-t.said > sayEvery {
			t.say("copying a slice's state")
		}
		applied, err := t.hold(ctx)
		if err != nil {
			return err
		}
		req, err := t.old.request(applied, p.End)
		if err != nil {
			return err
		}
		if answer, body, err = t.ask(ctx, req, nameOf(&p.End)); err != nil {
			return err
		}
	}
}

// chunks fetches what pages name, from the copy's source first.
func (t *receiving) chunks(ctx context.Context, wanted <-chan named) error {
	for chunks := range wanted {
		if plant.On(plant.TransferSkipsChunks) {
			continue
		}
		missing := t.s.o.Fetcher.o.Packs.Missing(nil, chunks.current)
		f := fetch{s: t.s.o.Fetcher, slice: t.id, first: t.peer, gate: t.s.o.Fetcher.bulk, timeout: copyTimeout, without: t.away.without, got: &t.fetched}
		err := f.run(ctx, missing)
		if err == nil {
			err = t.past(ctx, &f, chunks.past)
		}
		if err != nil {
			return fault.Wrap(fault.Missing, opReceive, "", err)
		}
	}
	return nil
}

// past fetches chunks that only older versions use. One that no member has keeps nobody from
// being one: it was collected meanwhile, or is lost, which a scrub finds.
func (t *receiving) past(ctx context.Context, f *fetch, chunks []chunk.Address) error {
	began := t.s.o.Clock()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		left, answered := f.once(ctx, f.missing(chunks))
		if len(left) > 0 && answered {
			t.s.o.Logger.Warn("no member has some chunks of older versions", logattr.Slice(t.id), slog.Any("chunks", len(left)))
		}
		switch {
		case len(left) == 0 || answered:
			return nil
		case t.s.o.Clock()-began > copyTimeout:
			return fault.Errorf(fault.Missing, opReceive, left[0].String(), "%d chunks of older versions that no member gives", len(left))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// restore puts a page's rows into a batch and returns the chunks that they name. The page
// that it makes begins behind the end of the one before.
func (t *receiving) restore(answer *pb.TransferResponse, body []byte, p *operate.Page) (chunks named, err error) {
	p.Last, p.At = answer.Last, replica.EntryID{Serial: ids.Serial(answer.Serial), Epoch: ids.Epoch(answer.Epoch)}
	if err := t.old.alike(int(answer.Same), &p.End, &chunks); err != nil {
		return chunks, err
	}
	behind := p.End
	t.rowBytes += int64(len(body))
	rows, err := t.rowsOf(body, p, &chunks)
	if err != nil {
		return chunks, err
	}
	if end, given := rowNamed(answer.End); given {
		if end.Compare(p.End) < 0 {
			return chunks, malformed()
		}
		p.End = end
	}
	b := t.s.o.Meta.NewBatch()
	if t.old.there {
		err = t.old.over(b, behind, rows, p.End, p.Last)
	} else {
		for i := 0; i < len(rows) && err == nil; i++ {
			err = b.Restore(t.id, rows[i])
		}
	}
	if err != nil {
		b.Abandon()
		return chunks, err
	}
	p.Rows = b
	return chunks, nil
}

func malformed() error { return fault.E(fault.Corrupt, opReceive, "", "a page is malformed") }

// rowsOf takes the rows of a page apart, but for those that each node keeps for itself, and
// notes the chunks that they name. The page ends with the last of them.
func (t *receiving) rowsOf(body []byte, p *operate.Page, chunks *named) (rows []meta.Row, err error) {
	for len(body) > 0 {
		r := meta.Row{Area: body[0]}
		body = body[1:]
		var ok1, ok2 bool
		r.Key, body, ok1 = cutBytes(body)
		r.Value, body, ok2 = cutBytes(body)
		if !ok1 || !ok2 || r.Compare(p.End) <= 0 {
			return nil, malformed()
		}
		p.End = meta.Row{Area: r.Area, Key: r.Key}
		note := r.Plain() && t.away.note(&r)
		if !note && r.Plain() && replog.Own(r.Key) || plant.On(plant.TransferLosesRows) && len(r.Key)%5 == 0 && r.Key[len(r.Key)-1]%16 == 3 {
			continue
		}
		if !note {
			chunks.note(&r)
		}
		rows = append(rows, r)
		t.rows.Add(1)
	}
	return rows, nil
}

// cutBytes cuts what begins with its length off b.
func cutBytes(b []byte) (data, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
