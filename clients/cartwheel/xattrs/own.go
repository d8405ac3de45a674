package xattrs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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
// last operation that this client made on an object, at which serial and time.
type Receipt struct {
	Nodes  []string `json:"nodes"`
	Sites  []string `json:"sites"`
	Serial uint64   `json:"serial"`
	HLC    uint64   `json:"hlc"`
	Epoch  uint64   `json:"epoch"`
}

func (s *Service) receipt(ctx context.Context, o ids.Object) ([]byte, error) {
	r := s.opt.Receipts.Get(o)
	if r == nil {
		return nil, fault.E(fault.NoAttribute, "xattrs.receipt", o.String(), "nothing was written to it here")
	}
	out := Receipt{Nodes: r.Nodes, Sites: r.Sites, Serial: r.Serial, HLC: r.Hlc, Epoch: r.Epoch}
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
