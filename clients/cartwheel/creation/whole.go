package creation

import (
	"context"
	"slices"
	"sync"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/route"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// WholeLimit is up to how many bytes a file is made with all of its content in one
// operation.
const WholeLimit = 64 << 10

// maxHomes bounds the directories whose cues are remembered.
const maxHomes = 4096

// homes remembers the cues of directories in which files were made whole: they tell
// where new files go, and never change. It is safe for concurrent use.
type homes struct {
	mu   sync.Mutex // guards dirs
	dirs map[ids.Object]*pb.Attr
}

// of returns what is known of a directory: its object and its cues.
func (h *homes) of(ctx context.Context, c *calls.Sender, dir ids.Object) (*pb.Attr, error) {
	h.mu.Lock()
	known := h.dirs[dir]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	a, err := c.Attr(ctx, dir)
	if err != nil {
		return nil, err
	}
	known = &pb.Attr{Object: a.Object, Cues: a.Cues}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dirs == nil || len(h.dirs) >= maxHomes {
		h.dirs = map[ids.Object]*pb.Attr{}
	}
	h.dirs[dir] = known
	return known, nil
}

// held has the standbys of a slice keep a file while its active is far: then the file is
// made in one round trip. Nil: the log alone brings it to them.
func (k *Maker) held(ctx context.Context, m *Request) *route.Held {
	if k.opt.HoldFrom < 0 || m.level() != 0 || timeouts.Eventual(ctx) {
		return nil
	}
	return &route.Held{Others: func(row geoconfig.SliceRow) []ids.Node {
		if d := k.opt.Cluster.Distance(row.Active); d.How == contact.Unknown || d.RTT < k.opt.HoldFrom {
			return nil
		}
		normals := row.Normals()
		if !k.opt.Cluster.KeepCreates(normals) {
			return nil
		}
		return slices.DeleteFunc(normals, func(n ids.Node) bool { return n == row.Active })
	}}
}

// Whole makes a write-once file with all of its content, at most WholeLimit bytes, in
// one operation: others see it complete, or not at all. It makes nothing and returns
// false where the file belongs in another slice than its directory.
func (k *Maker) Whole(ctx context.Context, m Request, content []byte) (done bool, err error) {
	if err := CheckName(m.Name); err != nil {
		return false, err
	}
	out, cancel := k.opt.Remotely(ctx)
	defer cancel()
	dir, err := k.homes.of(out, k.opt.Calls, m.Dir)
	if err != nil {
		return false, err
	}
	own := m.Cues.Only(m.Call).Persistent()
	slice, err := k.opt.Destination.Choose(out, dir, own)
	if err != nil || slice != m.Dir.Slice() {
		return false, nil // the ordinary way says what is wrong, if anything is
	}
	m.Create.Cues, m.Create.Dir, m.Create.Name, m.Create.Umask = own, uint64(m.Dir), []byte(m.Name), m.Who.Umask
	m.Create.Exclusive, m.Create.Commit = true, &pb.Commit{Seal: true}
	if len(content) > 0 {
		m.Create.Commit.Extents = []*pb.Extent{{Length: uint64(len(content)), Source: &pb.Extent_BodyOffset{}}}
		m.Body = [][]byte{content}
	}
	m.held = k.held(ctx, &m)
	_, err = k.makeIn(out, m, dir, ids.Object(dir.Object).Slice())
	return true, err
}
