package server

import (
	"context"
	"fmt"
	"hash/fnv"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/metrics"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

// CheckRoot answers nil once this node leads the root slice and the root is
// there.
func (s *Server) CheckRoot() error {
	p := s.loop.Published(ids.RootSlice)
	if !p.Serves(s.clock()) {
		return fault.E(fault.NotActive, "server.CheckRoot", string(s.id), "this node does not act for the root slice now")
	}
	_, err := tree.GetAttr(s.committed(ids.RootSlice), ids.RootObject, false, false)
	return err
}

// CheckCopy answers nil if this node's own copy, whatever its part, has a name
// and all the content of the file that it names.
func (s *Server) CheckCopy(dir ids.Object, name []byte) error {
	v := s.committed(dir.Slice())
	e, err := tree.Lookup(v, dir, name)
	if err != nil {
		return err
	}
	attr, err := tree.GetAttr(v, e.Object, true, false)
	if err != nil || attr.Content == nil || len(attr.Content.Root) == 0 {
		return err
	}
	_, _, done, err := s.answers.content.Range(s.life.ctx, &pb.RangeRequest{Root: attr.Content.Root, Height: attr.Content.Height, Length: attr.Size, Data: true}, chunks.Room{})
	if done != nil {
		done()
	}
	return err
}

// CopySum sums up everything that this node's own copy of a slice shows its
// readers, with the serial up to which it is applied: two members that applied
// as much have the same sum. It is for tests, of a slice at rest.
func (s *Server) CopySum(slice ids.Slice) (ids.Serial, string, error) {
	p := s.loop.Published(slice)
	if p == nil {
		return 0, "", nil
	}
	v := s.committed(slice)
	out := ""
	for kind := byte('a'); kind <= 'z'; kind++ {
		if !tree.Versioned([]byte{kind}) {
			continue
		}
		n, h := 0, fnv.New64a()
		err := v.Scan([]byte{kind}, []byte{kind + 1}, func(key, value []byte) bool {
			n++
			fmt.Fprintf(h, "%d,%d;", len(key), len(value))
			_, _ = h.Write(key) // a hash takes everything
			_, _ = h.Write(value)
			return true
		})
		if err != nil {
			return 0, "", err
		}
		out += fmt.Sprintf("%c%d:%x ", kind, n, h.Sum64())
	}
	return ids.Serial(p.Applied.Load()), out, nil
}

// PackSpace is what the node's chunks take.
func (s *Server) PackSpace() pack.Space { return s.store.Packs().Space() }

// Serves reports whether this node may act for a slice at this moment.
func (s *Server) Serves(slice ids.Slice) bool {
	return s.loop.Published(slice).Serves(s.clock())
}

// Standing is how a copy stands between two turns of the loop, for tests.
type Standing struct {
	replica.Status
	Whole   bool // the copy has all that it says to have
	Applied ids.Serial
}

// Stand tells how a copy stands. ok is false where there is none.
func (s *Server) Stand(ctx context.Context, slice ids.Slice) (st Standing, ok bool, err error) {
	err = s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		if st.Status, ok = core.Status(slice); !ok {
			return
		}
		var snapshot replica.Snapshot
		snapshot, st.Whole = core.Snapshot(slice)
		st.Applied = snapshot.Serial
	})
	return st, ok, err
}

// Figures are what a monitoring system may ask of the node, until Close.
func (s *Server) Figures() metrics.Source {
	return metrics.Source{Node: s.newReports().Node, Leading: s.leading, JournalBytes: s.JournalBytes, Shared: s.answers.shared.Counts, Sent: s.budgets.Passed,
		Turn: func(ctx context.Context) error { return s.loop.Ask(ctx, func(*replica.Node, replica.Time) {}) }}
}
