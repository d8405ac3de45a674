package server

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

// helpers does for the loop what may wait; it is operate.Helpers. Its methods
// run on the loop's goroutine and start others.
type helpers struct{ s *Server }

// Swap implements operate.Helpers.
func (h helpers) Swap(sw replica.Swap) { h.s.swaps.Run(h.s.ctx, sw) }

// Read implements operate.Helpers. The journal is not read back: whoever
// missed more than is in memory gets the state instead.
func (h helpers) Read(r replica.Read) {
	h.s.loop.Do(func(core *replica.Node, now replica.Time) { core.ReadDone(now, r, nil) })
}

// Fetch implements operate.Helpers.
func (h helpers) Fetch(slice geoconfig.SliceID, serial geoconfig.Serial, epoch geoconfig.Epoch, missing []chunk.Address) {
	h.s.goRun(func(ctx context.Context) {
		if h.s.fetch(ctx, slice, missing) == nil {
			h.s.loop.Held(slice, serial, epoch)
		}
	})
}

// Transfer implements operate.Helpers.
func (h helpers) Transfer(t replica.Transfer) {
	h.s.goRun(func(ctx context.Context) { h.s.takeTransfer(ctx, t) })
}

// Yield implements operate.Helpers: no lease of the slice is left afterwards.
func (h helpers) Yield(slice geoconfig.SliceID) {
	h.s.sessions.RevokeSlice(h.s.ctx, slice, func() {
		h.s.loop.Do(func(core *replica.Node, now replica.Time) { core.Yield(now, slice, nil) })
	})
}

// Role implements operate.Helpers.
func (h helpers) Role(r replica.Role, led bool) {
	h.s.lockRole(&r, led)
	if r.Kind == replica.RoleLeading && !led {
		h.s.goRun(func(ctx context.Context) { h.s.lead(ctx, r.Slice) })
	}
}

// Removed implements operate.Helpers.
func (h helpers) Removed(slice geoconfig.SliceID) {
	b := h.s.store.Meta().NewBatch()
	err := b.DropSlice(slice)
	if err == nil {
		err = b.Commit()
	} else {
		b.Abandon()
	}
	if err != nil {
		h.s.fail(err)
	}
}

// fetchBatch is how many chunks one call asks for: 64 of the largest size
// would be 16 MiB, so answers are bounded by bytes too.
const fetchBatch = 16

// fetch brings chunks from the other members, the active first, and goes on
// until all are here or ctx ends.
func (s *Server) fetch(ctx context.Context, slice geoconfig.SliceID, missing []chunk.Address) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		for _, source := range s.sources(slice) {
			for len(missing) > 0 {
				n := min(len(missing), fetchBatch)
				if err := s.fetchFrom(ctx, slice, source, missing[:n]); err != nil {
					s.log.Debug("chunks could not be fetched", "peer", source, "error", err)
					break
				}
				missing = s.store.Packs().Missing(nil, missing)
				if len(missing) >= n && n > 0 && len(s.store.Packs().Missing(nil, missing[:n])) == n {
					break // that node lacks them too
				}
			}
			if len(missing) == 0 {
				return nil
			}
		}
		missing = s.store.Packs().Missing(nil, missing)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// sources lists the other members, the active first.
func (s *Server) sources(slice geoconfig.SliceID) []string {
	row, _ := s.directory.Slice(slice)
	var out []string
	for _, m := range row.Members {
		if m.Node == s.id || m.State == geoconfig.Failed {
			continue
		}
		if m.Node == row.Active {
			out = slices.Insert(out, 0, string(m.Node))
		} else {
			out = append(out, string(m.Node))
		}
	}
	return out
}

// fetchFrom asks one node for chunks, checks them and stores them.
func (s *Server) fetchFrom(ctx context.Context, slice geoconfig.SliceID, peer string, addresses []chunk.Address) error {
	const op fault.Op = "server.fetch"
	call, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req := &pb.GetRequest{Slice: uint32(slice), Addresses: chunk.AppendAddresses(nil, addresses...)}
	var answer pb.GetResponse
	buffer, err := s.host.Call(call, peer, wire.Chunk, method.Get, req, nil, &answer)
	if err != nil {
		return err
	}
	defer buffer.Release()
	body := buffer.Bytes()
	if len(answer.Sizes) != len(addresses) {
		return fault.E(fault.Corrupt, op, peer, "the answer does not fit the question")
	}
	var found []chunk.Address
	var bodies [][]byte
	for i, n := range answer.Sizes {
		if int(n) > len(body) {
			return fault.E(fault.Corrupt, op, peer, "the answer is shorter than it says")
		}
		data := body[:n]
		body = body[n:]
		if n == 0 {
			continue
		}
		if err := chunk.Verify(addresses[i], data); err != nil {
			return fault.Wrap(fault.Corrupt, op, peer, err)
		}
		found, bodies = append(found, addresses[i]), append(bodies, data)
	}
	return s.store.Packs().Put(ctx, found, bodies)
}
