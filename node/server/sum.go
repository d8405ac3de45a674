package server

import (
	"context"
	"fmt"
	"hash/fnv"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// CopySum sums up everything that this node's own copy of a slice shows its
// readers, with the serial up to which it is applied: two members that applied
// as much have the same sum. It is for tests, of a slice at rest.
func (s *Server) CopySum(slice ids.Slice) (ids.Serial, string, error) {
	p := s.loop.Published(slice)
	if p == nil {
		return 0, "", nil
	}
	v := operate.Committed(s.store.Meta(), slice)
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
