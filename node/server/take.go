package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/ledger"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

const (
	// maxTakes bounds the states copied here at once.
	maxTakes = 2
	// pagePatience bounds one page.
	pagePatience = 20 * time.Second
	// copyPatience is how long no chunk may arrive while a copy wants some.
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
// the other and are written while the chunks that the earlier ones name are
// fetched; then everything is made durable. A copy that begins again finds the
// chunks that it had got.
func (s *Server) takeFrom(ctx context.Context, id geoconfig.SliceID, peer string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &taking{s: s, id: id, peer: peer, began: s.clock(), said: s.clock()}
	first, body, err := t.page(ctx, &pb.TransferRequest{Slice: uint32(id), Page: 1})
	if err != nil {
		return err
	}
	base := replica.Snapshot{Serial: geoconfig.Serial(first.Serial), Epoch: geoconfig.Epoch(first.Epoch), Time: hlc.Time(first.Time), Clients: first.Clients}
	if plant.On(plant.TransferForgetsResults) {
		base.Clients = nil
	}
	s.log.Info("a slice's state is being copied", "slice", uint32(id), "peer", peer, "serial", first.Serial)
	if err := t.void(ctx, base); err != nil {
		return err
	}
	if err := t.all(ctx, first, body); err != nil {
		return err
	}
	if err := t.compare(base); err != nil {
		return err
	}
	if err := t.finish(ctx, base); err != nil {
		return err
	}
	var refused error
	err = s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { refused = core.TransferDone(now, id, base) })
	if err == nil {
		err = refused
	}
	if err == nil {
		t.say("a slice's state was copied")
	}
	return err
}

// taking is one copy on its way in.
type taking struct {
	s       *Server
	id      geoconfig.SliceID
	peer    string
	began   time.Duration
	rows    int
	fetched fetched
	said    time.Duration
	sum     []byte // of the state, as its source has it
}

func (t *taking) say(what string) {
	t.said = t.s.clock()
	t.s.log.Info(what, "slice", uint32(t.id), "peer", t.peer, "rows", t.rows,
		"chunks", t.fetched.chunks.Load(), "bytes", t.fetched.bytes.Load(), "took", t.said-t.began)
}

func (t *taking) page(ctx context.Context, req *pb.TransferRequest) (*pb.TransferResponse, []byte, error) {
	call, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	answer := &pb.TransferResponse{}
	b, err := t.s.host.Call(call, t.peer, wire.Chunk, method.Transfer, req, nil, answer)
	if err != nil {
		return nil, nil, err
	}
	return answer, b.Bytes(), nil // left to the garbage collector: rows share it
}

// void throws away what was here, once a crash would find that it is void.
func (t *taking) void(ctx context.Context, base replica.Snapshot) error {
	const op fault.Op = "server.takeTransfer"
	ctx, cancel := context.WithTimeout(ctx, voidPatience)
	defer cancel()
	wanted, ready := false, false
	err := t.s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) {
		if wanted = core.TransferBegun(now, t.id, base); wanted {
			t.s.loop.Reset(t.id, base.Serial)
		}
	})
	if err == nil && !wanted {
		err = fault.E(fault.Canceled, op, "", "the state is not wanted any more")
	}
	for err == nil && !ready {
		if err = t.s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) { ready = core.TransferReady(t.id) }); ready {
			break
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			err = fault.Wrap(fault.TimedOut, op, "", ctx.Err())
		}
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

func (t *taking) pages(ctx context.Context, first *pb.TransferResponse, body []byte, wanted chan<- []chunk.Address) error {
	last := first.Last
	for page := uint64(2); ; page++ {
		named, err := t.restore(body)
		if err != nil {
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
		if last {
			t.sum = first.Sum
			return nil
		}
		answer, next, err := t.page(ctx, &pb.TransferRequest{Slice: uint32(t.id), Token: first.Token, Page: page})
		if err != nil {
			return err
		}
		last, body, first.Sum = answer.Last, next, answer.Sum
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

// restore writes a page's rows and returns the chunks that they name.
func (t *taking) restore(body []byte) (named []chunk.Address, err error) {
	b := t.s.store.Meta().NewBatch()
	for len(body) > 0 {
		r := meta.Row{Area: body[0]}
		body = body[1:]
		var ok1, ok2 bool
		r.Key, body, ok1 = cutBytes(body)
		r.Value, body, ok2 = cutBytes(body)
		if !ok1 || !ok2 {
			b.Abandon()
			return nil, fault.E(fault.Corrupt, "server.takeTransfer", "", "a page is malformed")
		}
		if r.Plain() && ledger.Own(r.Key) || plant.On(plant.TransferLosesRows) && len(r.Key)%5 == 0 && r.Key[len(r.Key)-1]%16 == 3 {
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
	return named, b.Commit()
}

func cutBytes(b []byte) (data, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// compare checks that what lies here now is what the source has at that serial.
func (t *taking) compare(base replica.Snapshot) error {
	frozen := t.s.store.Meta().Freeze()
	sum, err := sumOf(frozen, t.id, base)
	if e := frozen.Close(); err == nil {
		err = e
	}
	if err == nil && !bytes.Equal(sum, t.sum) {
		err = fault.Errorf(fault.Corrupt, "server.takeTransfer", fmt.Sprintf("slices/%d", t.id), "the copy of the state at serial %d differs from what %s has", base.Serial, t.peer)
	}
	return err
}

// finish saves where the copy stands and makes all of it durable.
func (t *taking) finish(ctx context.Context, base replica.Snapshot) error {
	b := t.s.store.Meta().NewBatch()
	err := ledger.SaveBase(b, t.id, base)
	if err == nil {
		err = b.SetApplied(t.id, base.Serial)
	}
	if err != nil {
		b.Abandon()
		return err
	}
	if err := b.Commit(); err != nil {
		return err
	}
	return t.s.store.Meta().Flush(ctx)
}
