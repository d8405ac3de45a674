package server

import (
	"context"
	"encoding/binary"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/ledger"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

// takeTransfer copies a slice's state here from the first source that gives it.
func (s *Server) takeTransfer(ctx context.Context, t replica.Transfer) {
	for _, source := range t.Sources {
		err := s.takeFrom(ctx, t.Slice, string(source))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("a slice's state could not be copied", "slice", uint32(t.Slice), "peer", source, "error", err)
	}
	s.loop.Do(func(core *replica.Node, now replica.Time) { core.TransferFailed(now, t.Slice) })
}

// pagePatience bounds one page.
const pagePatience = 20 * time.Second

// takeFrom copies a slice's state from one node: rows first, then the chunks
// that they name, then everything is made durable.
func (s *Server) takeFrom(ctx context.Context, id geoconfig.SliceID, peer string) error {
	began := s.clock()
	first, body, err := s.page(ctx, peer, &pb.TransferRequest{Slice: uint32(id), Page: 1})
	if err != nil {
		return err
	}
	base := replica.Snapshot{Serial: geoconfig.Serial(first.Serial), Epoch: geoconfig.Epoch(first.Epoch), Time: hlc.Time(first.Time), Clients: first.Clients}
	if err := s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) {
		core.TransferBegun(now, id, base)
		s.loop.Reset(id, base.Serial)
	}); err != nil {
		return err
	}
	drop := s.store.Meta().NewBatch()
	if err := drop.DropSlice(id); err != nil {
		drop.Abandon()
		return err
	}
	if err := drop.Commit(); err != nil {
		return err
	}
	w := &taking{s: s, id: id}
	last, page := first.Last, uint64(1)
	for {
		if err := w.rows(ctx, body); err != nil {
			return err
		}
		if last {
			break
		}
		page++
		answer, next, err := s.page(ctx, peer, &pb.TransferRequest{Slice: uint32(id), Token: first.Token, Page: page})
		if err != nil {
			return err
		}
		last, body = answer.Last, next
	}
	if err := w.finish(ctx, base); err != nil {
		return err
	}
	var refused error
	err = s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { refused = core.TransferDone(now, id, base) })
	if err == nil {
		err = refused
	}
	if err == nil {
		s.log.Info("a slice's state was copied", "slice", uint32(id), "peer", peer, "rows", w.count, "took", s.clock()-began)
	}
	return err
}

func (s *Server) page(ctx context.Context, peer string, req *pb.TransferRequest) (*pb.TransferResponse, []byte, error) {
	call, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	answer := &pb.TransferResponse{}
	b, err := s.host.Call(call, peer, wire.Chunk, method.Transfer, req, nil, answer)
	if err != nil {
		return nil, nil, err
	}
	return answer, b.Bytes(), nil // left to the garbage collector: rows share it
}

// taking is one copy on its way in.
type taking struct {
	s       *Server
	id      geoconfig.SliceID
	missing []chunk.Address
	count   int
}

// rows writes a page's rows and notes the chunks that they name.
func (t *taking) rows(ctx context.Context, body []byte) error {
	b := t.s.store.Meta().NewBatch()
	for len(body) > 0 {
		r := meta.Row{Area: body[0]}
		body = body[1:]
		var ok1, ok2 bool
		r.Key, body, ok1 = cutBytes(body)
		r.Value, body, ok2 = cutBytes(body)
		if !ok1 || !ok2 {
			b.Abandon()
			return fault.E(fault.Corrupt, "server.takeTransfer", "", "a page is malformed")
		}
		if r.Plain() && ledger.Own(r.Key) {
			continue
		}
		if r.Plain() {
			if a, ok := tree.RefAddress(r.Key, r.Value); ok {
				t.missing = append(t.missing, a)
			}
		}
		if err := b.Restore(t.id, r); err != nil {
			b.Abandon()
			return err
		}
		t.count++
	}
	if err := b.Commit(); err != nil {
		return err
	}
	t.missing = t.s.store.Packs().Missing(nil, t.missing)
	return t.fetch(ctx)
}

// copyPatience bounds the fetching of one page's chunks.
const copyPatience = 2 * time.Minute

func (t *taking) fetch(ctx context.Context) error {
	if len(t.missing) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	if err := t.s.fetch(call, t.id, t.missing); err != nil {
		return fault.Wrap(fault.Missing, "server.takeTransfer", "", err)
	}
	t.missing = nil
	return nil
}

func cutBytes(b []byte) (data, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
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
