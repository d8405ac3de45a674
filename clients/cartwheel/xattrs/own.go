package xattrs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

// The attributes that the client answers itself.
const (
	ownPrefix   = "user.cartwheel."
	whereName   = ownPrefix + "where"
	cuesName    = ownPrefix + "cues"
	receiptName = ownPrefix + "receipt"
	versionName = ownPrefix + "version"
	// DropCaches is the attribute whose setting empties the caches of the mount.
	DropCaches = ownPrefix + "drop-caches"
)

// IsOwn reports whether the client answers an attribute itself.
func IsOwn(name string) bool { return strings.HasPrefix(name, ownPrefix) }

// Own answers a question about an object. cues are those of the path by which it
// was reached.
func (s *Service) Own(ctx context.Context, o ids.Object, name string, cues cue.Set) ([]byte, error) {
	if name == whereName {
		return s.where(ctx, o)
	}
	a, err := s.opt.Calls.Attr(ctx, o)
	if err != nil {
		return nil, err
	}
	switch name {
	case cuesName:
		all, err := inForce(a, cues)
		return []byte(all.String()), err
	case versionName:
		return strconv.AppendUint(nil, a.Version, 10), nil
	case receiptName:
		return s.receipt(ctx, o)
	}
	return nil, fault.E(fault.NoAttribute, "xattrs.Own", name, "")
}

// inForce returns the cues of an object and those of the path that led to it.
func inForce(a *pb.Attr, path cue.Set) (cue.Set, error) {
	all, err := cue.ParsePath(cue.Join(cue.Kept(a.Cues)))
	for _, q := range path.All() {
		if q.Name.Persistent() && a.Mode&mount.TypeMask != mount.TypeDir {
			continue
		}
		if err == nil {
			all, err = all.With(q)
		}
	}
	return all, err
}

// Receipt is what user.cartwheel.receipt says: which nodes and sites hold the
// last operation that this client made on an object, at which serial and time. Read
// is the copy that the last read was answered from, where that was an eventual one and
// the active did not answer it.
type Receipt struct {
	Nodes  []string  `json:"nodes,omitempty"`
	Sites  []string  `json:"sites,omitempty"`
	Serial uint64    `json:"serial,omitempty"`
	HLC    uint64    `json:"hlc,omitempty"`
	Epoch  uint64    `json:"epoch,omitempty"`
	Read   *ReadCopy `json:"read,omitempty"`
}

// ReadCopy tells how new a copy was: it shows its slice up to the serial. Age is how
// long before the node had heard the active last. Unmerged: it may show writes of a
// side log.
type ReadCopy struct {
	Node   ids.Node  `json:"node"`
	Site   ids.Site  `json:"site"`
	Serial uint64    `json:"serial"`
	Epoch  uint64    `json:"epoch"`
	AgeMs  float64   `json:"age_ms"`
	At     time.Time `json:"at"`
	// Unmerged is left out where it is false.
	Unmerged bool `json:"unmerged,omitempty"`
}

func (s *Service) receipt(ctx context.Context, o ids.Object) ([]byte, error) {
	r := s.opt.Receipts.Get(o)
	read, copied := s.opt.Receipts.Copy(o)
	if _, _, current := s.opt.Names.Attr(o); current {
		copied = false // a lease covers what was read last
	}
	if r == nil && !copied {
		return nil, fault.E(fault.NoAttribute, "xattrs.receipt", o.String(), "nothing was written to it here")
	}
	var out Receipt
	if copied {
		out.Read = &ReadCopy{Node: read.By, Site: s.opt.Destination.SiteOf(read.By), Serial: read.Serial, Epoch: read.Epoch,
			AgeMs: float64(read.Age) / float64(time.Millisecond), At: read.Read, Unmerged: read.Unmerged}
	}
	if r == nil {
		return json.Marshal(out)
	}
	out.Nodes, out.Sites, out.Serial, out.HLC, out.Epoch = r.Nodes, r.Sites, r.Serial, r.Hlc, r.Epoch
	if len(out.Nodes) == 0 {
		row, err := s.opt.Router.Row(ctx, o.Slice())
		if err != nil {
			return nil, err
		}
		for _, n := range row.Normals() {
			out.Nodes = append(out.Nodes, string(n))
			if site := string(s.opt.Destination.SiteOf(n)); !slices.Contains(out.Sites, site) {
				out.Sites = append(out.Sites, site)
			}
		}
	}
	return json.Marshal(out)
}

// readFrom says which member's copy of content is read here, and why. Names and
// attributes are the active's to tell.
func (s *Service) readFrom(slice ids.Slice, active ids.Node) (ids.Node, string) {
	row, _ := s.opt.Router.Known(slice)
	near := s.opt.Cluster.Closest(active, row.Normals())
	if near == active {
		return active, "it is the slice's active, " + s.opt.Cluster.Why(active)
	}
	return near, s.opt.Cluster.Why(near) + "; the active is " + s.opt.Cluster.Distance(active).String()
}

// where asks the active about an object and adds which copy is read here.
func (s *Service) where(ctx context.Context, o ids.Object) ([]byte, error) {
	const op fault.Op = "xattrs.where"
	ctx, cancel := s.opt.Remotely(ctx)
	defer cancel()
	if err := s.opt.Deferred.Publish(ctx, o); err != nil {
		return nil, err
	}
	var resp *pb.WhereResponse
	var by ids.Node
	err := s.opt.Router.Active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		resp, by = &pb.WhereResponse{}, node
		body, err := s.opt.Cluster.Call(ctx, node, wire.Operation, method.Where, &pb.WhereRequest{Object: uint64(o), Ticket: s.opt.Tickets.Of(o).Reached}, nil, resp)
		body.Release()
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	var w status.Where
	if err := json.Unmarshal(resp.Where, &w); err != nil {
		return nil, fault.Wrap(fault.Corrupt, op, string(by), err)
	}
	w.Read, w.Why = s.readFrom(o.Slice(), by)
	if a, _, ok := s.opt.Names.Attr(o); ok && a.Version == w.Version && a.Content != nil && a.Mode&mount.TypeMask == mount.TypeRegular {
		w.Why += "; what this mount has in its cache is the current version, under a lease"
	}
	return json.Marshal(w)
}
