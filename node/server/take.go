package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const (
	// maxTakes bounds the states copied here at once.
	maxTakes = 2
	// pagePatience bounds one page.
	pagePatience = 20 * time.Second
	// copyPatience is how long no chunk may arrive while a copy wants some, and
	// how long a source may lag behind this node, or have no room to compare.
	copyPatience = time.Minute
	// wantedPages bounds the pages whose chunks wait to be fetched.
	wantedPages = 64
	// sayEvery is how often a copy's progress is logged.
	sayEvery = 5 * time.Second
	// voidPatience bounds the wait for the journal to say that the old state is void.
	voidPatience = 20 * time.Second
)

// takeTransfer copies a slice's state here from the first source that gives it.
func (s *Server) takeTransfer(ctx context.Context, t replica.Transfer) {
	select {
	case s.takes <- struct{}{}:
		defer func() { <-s.takes }()
	case <-ctx.Done():
		return
	}
	for _, source := range t.Sources {
		err := s.takeFrom(ctx, t.Slice, string(source))
		if err == nil || ctx.Err() != nil {
			return
		}
		s.log.Warn("a slice's state could not be copied", "slice", uint32(t.Slice), "peer", source, "error", err)
	}
	s.loop.Do(func(core *replica.Node, now replica.Time) { core.TransferFailed(now, t.Slice) })
}

// takeFrom copies a slice's state from one node. Pages of rows come one after
// the other, each of the moment when it was asked for, and the log is applied to
// those that are here (operate.Page). The chunks that they name are fetched
// beside. Then the copy is compared with its source, and made durable. A copy
// that begins again finds the chunks that it had got.
func (s *Server) takeFrom(ctx context.Context, id ids.Slice, peer string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &taking{s: s, id: id, peer: peer, began: s.clock(), said: s.clock()}
	first, body, err := t.ask(ctx, &pb.TransferRequest{Slice: uint32(id)}, nil)
	if err != nil {
		return err
	}
	t.base = replica.Snapshot{Serial: ids.Serial(first.Serial), Epoch: ids.Epoch(first.Epoch), Time: hlc.Time(first.Time), Clients: first.Clients}
	if plant.On(plant.TransferForgetsResults) {
		t.base.Clients = nil
	}
	s.log.Info("a slice's state is being copied", "slice", uint32(id), "peer", peer, "serial", first.Serial)
	if err := t.void(ctx); err != nil {
		return err
	}
	if err := t.all(ctx, first, body); err != nil {
		return err
	}
	if err := t.compare(ctx); err != nil {
		return err
	}
	if err := t.finish(ctx); err != nil {
		return err
	}
	t.say("a slice's state was copied")
	return nil
}

// taking is one copy on its way in.
type taking struct {
	s       *Server
	id      ids.Slice
	peer    string
	base    replica.Snapshot // of the first page
	began   time.Duration
	rows    int
	fetched fetched
	said    time.Duration
}

func (t *taking) say(what string) {
	t.said = t.s.clock()
	t.s.log.Info(what, "slice", uint32(t.id), "peer", t.peer, "rows", t.rows,
		"chunks", t.fetched.chunks.Load(), "bytes", t.fetched.bytes.Load(), "took", t.said-t.began)
}

// ask puts a question to the source, again while it lags behind what is applied
// here or keeps enough states already.
func (t *taking) ask(ctx context.Context, req *pb.TransferRequest, behind []byte) (answer *pb.TransferResponse, body []byte, err error) {
	const shortest = 5 * time.Millisecond
	began := t.s.clock()
	for wait := shortest; ; wait = min(2*wait, time.Second) {
		answer = &pb.TransferResponse{}
		call, cancel := context.WithTimeout(ctx, pagePatience)
		b, err := t.s.host.Call(call, t.peer, wire.Chunk, method.Transfer, req, [][]byte{behind}, answer)
		cancel()
		switch {
		case err == nil:
			return answer, b.Bytes(), nil // left to the garbage collector: rows share it
		case !fault.Is(err, fault.Again) && !fault.Is(err, fault.Overloaded), t.s.clock()-began > copyPatience:
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// hold has nothing more applied than is now, and returns that serial.
func (t *taking) hold(ctx context.Context) (applied ids.Serial, err error) {
	err = t.s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { applied = core.TransferHold(now, t.id, 0) })
	return applied, err
}

// void throws away what was here, once a crash would find that it is void.
func (t *taking) void(ctx context.Context) error {
	const op fault.Op = "server.takeTransfer"
	ctx, cancel := context.WithTimeout(ctx, voidPatience)
	defer cancel()
	wanted := false
	var refused error
	err := t.s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) {
		if wanted, refused = core.TransferBegun(now, t.id, t.base); wanted {
			t.s.loop.Reset(t.id, replica.EntryID{Serial: t.base.Serial, Epoch: t.base.Epoch})
		}
	})
	if err == nil {
		err = refused
	}
	if err == nil && !wanted {
		err = fault.E(fault.Canceled, op, "", "the state is not wanted any more")
	}
	if err == nil {
		err = t.until(ctx, func(core *replica.Node, _ replica.Time) (bool, error) { return core.TransferReady(t.id), nil })
	}
	if err != nil {
		return err
	}
	if plant.On(plant.TransferKeepsOld) {
		return nil
	}
	drop := t.s.store.Meta().NewBatch()
	if err := drop.DropSlice(t.id); err != nil {
		drop.Abandon()
		return err
	}
	return drop.Commit()
}

// all takes every page, and every chunk that their rows name.
func (t *taking) all(ctx context.Context, first *pb.TransferResponse, body []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wanted, done := make(chan []chunk.Address, wantedPages), make(chan error, 1)
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

// pages takes the pages in the order of their rows, the first of which is here.
func (t *taking) pages(ctx context.Context, answer *pb.TransferResponse, body []byte, wanted chan<- []chunk.Address) error {
	p := operate.Page{}
	for {
		var named []chunk.Address
		var err error
		p.Last, p.At = answer.Last, replica.EntryID{Serial: ids.Serial(answer.Serial), Epoch: ids.Epoch(answer.Epoch)}
		if named, err = t.restore(body, &p); err != nil {
			return err
		}
		var refused error
		if err = t.s.loop.Ask(ctx, func(*replica.Node, replica.Time) { refused = t.s.loop.CopyPage(t.id, p) }); err == nil {
			err = refused
		}
		if err != nil || p.Last {
			return err
		}
		select {
		case wanted <- named:
		case <-ctx.Done():
			return ctx.Err()
		}
		if t.s.clock()-t.said > sayEvery {
			t.say("copying a slice's state")
		}
		applied, err := t.hold(ctx)
		if err != nil {
			return err
		}
		if answer, body, err = t.ask(ctx, &pb.TransferRequest{Slice: uint32(t.id), AtLeast: uint64(applied)}, append([]byte{p.End.Area}, p.End.Key...)); err != nil {
			return err
		}
	}
}

// chunks fetches what pages name, from the copy's source first.
func (t *taking) chunks(ctx context.Context, wanted <-chan []chunk.Address) error {
	for named := range wanted {
		if plant.On(plant.TransferSkipsChunks) {
			continue
		}
		missing := t.s.store.Packs().Missing(nil, named)
		f := fetch{s: t.s, slice: t.id, first: t.peer, gate: t.s.bulk, patience: copyPatience, got: &t.fetched}
		if err := f.run(ctx, missing); err != nil {
			return fault.Wrap(fault.Missing, "server.takeTransfer", "", err)
		}
	}
	return nil
}

// restore puts a page's rows into a batch and returns the chunks that they name.
func (t *taking) restore(body []byte, p *operate.Page) (named []chunk.Address, err error) {
	b := t.s.store.Meta().NewBatch()
	for len(body) > 0 {
		r := meta.Row{Area: body[0]}
		body = body[1:]
		var ok1, ok2 bool
		r.Key, body, ok1 = cutBytes(body)
		r.Value, body, ok2 = cutBytes(body)
		if !ok1 || !ok2 || r.Compare(p.End) <= 0 {
			b.Abandon()
			return nil, fault.E(fault.Corrupt, "server.takeTransfer", "", "a page is malformed")
		}
		p.End = meta.Row{Area: r.Area, Key: r.Key}
		if r.Plain() && replog.Own(r.Key) || plant.On(plant.TransferLosesRows) && len(r.Key)%5 == 0 && r.Key[len(r.Key)-1]%16 == 3 {
			continue
		}
		if r.Plain() {
			if a, ok := tree.RefAddress(r.Key, r.Value); ok {
				named = append(named, a)
			}
		}
		if err := b.Restore(t.id, r); err != nil {
			b.Abandon()
			return nil, err
		}
		t.rows++
	}
	p.Rows = b
	return named, nil
}

func cutBytes(b []byte) (data, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// compare checks that what lies here is what the source has, as of one entry.
func (t *taking) compare(ctx context.Context) error {
	if err := t.settled(ctx); err != nil {
		return err
	}
	applied, err := t.hold(ctx)
	if err != nil {
		return err
	}
	kept, _, err := t.ask(ctx, &pb.TransferRequest{Slice: uint32(t.id), Compare: true, AtLeast: uint64(applied)}, nil)
	if err != nil {
		return err
	}
	frozen, at, err := t.freezeAt(ctx, ids.Serial(kept.Serial))
	if err != nil {
		return err
	}
	mine, err := sumOf(frozen, t.id, at)
	if e := frozen.Close(); err == nil {
		err = e
	}
	for theirs := []byte(nil); err == nil; {
		var answer *pb.TransferResponse
		if answer, _, err = t.ask(ctx, &pb.TransferRequest{Slice: uint32(t.id), Token: kept.Token}, nil); err != nil {
			break
		}
		if theirs = answer.Sum; theirs == nil {
			continue
		}
		if !bytes.Equal(mine, theirs) {
			err = fault.Errorf(fault.Corrupt, "server.takeTransfer", fmt.Sprintf("slices/%d", t.id), "the copy of the state at serial %d differs from what %s has", at.Serial, t.peer)
		}
		break
	}
	return err
}

// until asks the loop again and again until done, or the state is not wanted.
func (t *taking) until(ctx context.Context, done func(core *replica.Node, now replica.Time) (bool, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var ok bool
		var refused error
		err := t.s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { ok, refused = done(core, now) })
		if err == nil {
			err = refused
		}
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settled waits until every row here shows what is applied: some were read as of
// entries that are yet to come, whoever is the active by then.
func (t *taking) settled(ctx context.Context) error {
	return t.until(ctx, func(*replica.Node, replica.Time) (bool, error) { return t.s.loop.Copied(t.id) })
}

// freezeAt has the log applied up to an entry, and no further until the state of
// then is kept.
func (t *taking) freezeAt(ctx context.Context, serial ids.Serial) (frozen *meta.Frozen, at replica.Snapshot, err error) {
	err = t.until(ctx, func(core *replica.Node, now replica.Time) (bool, error) {
		if _, err := t.s.loop.Copied(t.id); err != nil {
			return false, err
		}
		in, _ := core.Incomplete(t.id)
		if at = in.At; at.Serial < serial {
			core.TransferHold(now, t.id, serial)
			return false, nil
		}
		frozen = t.s.store.Meta().Freeze()
		core.TransferHold(now, t.id, math.MaxUint64)
		return true, nil
	})
	return frozen, at, err
}

// finish makes the copy durable and says that it is whole.
func (t *taking) finish(ctx context.Context) error {
	err := t.until(ctx, func(core *replica.Node, _ replica.Time) (bool, error) {
		if _, err := t.s.loop.Copied(t.id); err != nil {
			return false, err
		}
		in, _ := core.Incomplete(t.id)
		b := t.s.store.Meta().NewBatch()
		err := replog.SaveBase(b, t.id, in.At)
		if err == nil {
			err = b.SetApplied(t.id, in.At.Serial) // there may have been no entry
		}
		if err != nil {
			b.Abandon()
			return false, err
		}
		return true, b.Commit()
	})
	if err == nil {
		err = t.s.store.Meta().Flush(ctx)
	}
	if err != nil {
		return err
	}
	return t.s.loop.Ask(ctx, func(*replica.Node, replica.Time) { t.s.loop.CopyDone(t.id, t.base) })
}
