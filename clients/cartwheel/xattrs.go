package cartwheel

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

// The attributes that the client answers itself. They are not listed, so that
// copies do not carry them on.
const (
	ownPrefix   = "user.cartwheel."
	whereName   = ownPrefix + "where"
	cuesName    = ownPrefix + "cues"
	receiptName = ownPrefix + "receipt"
	versionName = ownPrefix + "version"
	dropName    = ownPrefix + "drop-caches"
)

// fill copies a value by the rule that an empty buf asks for the size.
func fill(buf, value []byte) (int, error) {
	if len(buf) == 0 {
		return len(value), nil
	}
	if len(buf) < len(value) {
		return len(value), fault.E(fault.TooSmall, "cartwheel.Xattr", "", "")
	}
	return copy(buf, value), nil
}

func isACL(name string) bool { return name == mount.AccessACL || name == mount.DefaultACL }

// GetXattr implements mount.Xattrs.
func (c *Client) GetXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string, buf []byte) (int, error) {
	const op fault.Op = "cartwheel.GetXattr"
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return 0, staleNode
	}
	if strings.HasPrefix(name, ownPrefix) {
		value, err := c.ownXattr(ctx, who, o, cues, name)
		if err != nil {
			return 0, err
		}
		return fill(buf, value)
	}
	var a *pb.Attr
	var err error
	if isACL(name) {
		if a, err = c.calls.Attr(ctx, o); err == nil && !a.HasAcl {
			return 0, fault.E(fault.NoAttribute, op, name, "")
		}
	} else {
		a, err = c.calls.Xattrs(ctx, o)
	}
	if err != nil {
		return 0, err
	}
	for _, x := range a.Xattrs {
		if x.Name == name {
			return fill(buf, x.Value)
		}
	}
	return 0, fault.E(fault.NoAttribute, op, name, "")
}

// ListXattr implements mount.Xattrs.
func (c *Client) ListXattr(ctx context.Context, _ mount.Caller, id mount.Inode, buf []byte) (int, error) {
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return 0, staleNode
	}
	a, err := c.calls.Xattrs(ctx, o)
	if err != nil {
		return 0, err
	}
	list := make([]string, 0, len(a.Xattrs))
	for _, x := range a.Xattrs {
		list = append(list, x.Name)
	}
	slices.Sort(list)
	var out []byte
	for _, name := range slices.Compact(list) {
		out = append(append(out, name...), 0)
	}
	return fill(buf, out)
}

// SetXattr implements mount.Xattrs.
func (c *Client) SetXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string, value []byte, flags mount.XattrFlags) error {
	if name == dropName {
		if !mayDropCaches(who) {
			return fault.E(fault.Permission, "cartwheel.SetXattr", name, "only root and the mount's own user may drop its caches")
		}
		c.DropCaches(ctx)
		return nil
	}
	return c.setXattr(ctx, who, id, &pb.SetXattr{Name: name, Value: slices.Clone(value),
		Create: flags&mount.XattrCreate != 0, Replace: flags&mount.XattrReplace != 0})
}

// RemoveXattr implements mount.Xattrs.
func (c *Client) RemoveXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string) error {
	return c.setXattr(ctx, who, id, &pb.SetXattr{Name: name, Remove: true})
}

func (c *Client) setXattr(ctx context.Context, who mount.Caller, id mount.Inode, set *pb.SetXattr) error {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	set.Object = uint64(o)
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	p := calls.Principal(who)
	if isACL(set.Name) { // whether set-gid is cleared depends on the groups
		p = calls.WithGroups(who)
	}
	run := func(p *pb.Principal) error {
		_, err := c.calls.Change(out, o, calls.Operation{Principal: p, Level: cues.Only(cue.Chmod).Sync(), Op: &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: set}}})
		return err
	}
	err := run(p)
	if err != nil && who.UID != 0 && len(p.Groups) == 0 && calls.IsDenied(err) {
		if p = calls.WithGroups(who); len(p.Groups) > 0 {
			err = run(p)
		}
	}
	return err
}

// ownXattr answers the questions about an object.
func (c *Client) ownXattr(ctx context.Context, who mount.Caller, o ids.Object, cues cue.Set, name string) ([]byte, error) {
	if name == whereName {
		return c.where(ctx, o)
	}
	a, err := c.calls.Attr(ctx, o)
	if err != nil {
		return nil, err
	}
	switch name {
	case cuesName:
		all, err := cue.ParsePath(cue.Join(cue.Kept(a.Cues)))
		if cues.Empty() {
			cues = c.nodes.HintedCues(o, who.PID, c.opt.BootTime())
		}
		for _, q := range cues.All() { // those of the path are in force too
			if q.Name.Persistent() && a.Mode&mount.TypeMask != mount.TypeDir {
				continue
			}
			if err == nil {
				all, err = all.With(q)
			}
		}
		return []byte(all.String()), err
	case versionName:
		return strconv.AppendUint(nil, a.Version, 10), nil
	case receiptName:
		return c.receipt(ctx, o)
	}
	return nil, fault.E(fault.NoAttribute, "cartwheel.GetXattr", name, "")
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

func (c *Client) receipt(ctx context.Context, o ids.Object) ([]byte, error) {
	r := c.receipts.Get(o)
	if r == nil {
		return nil, fault.E(fault.NoAttribute, "cartwheel.receipt", o.String(), "nothing was written to it here")
	}
	out := Receipt{Nodes: r.Nodes, Sites: r.Sites, Serial: r.Serial, HLC: r.Hlc, Epoch: r.Epoch}
	if len(out.Nodes) == 0 {
		row, err := c.router.Row(ctx, o.Slice())
		if err != nil {
			return nil, err
		}
		for _, n := range row.Normals() {
			out.Nodes = append(out.Nodes, string(n))
			if site := string(c.destination.SiteOf(n)); !slices.Contains(out.Sites, site) {
				out.Sites = append(out.Sites, site)
			}
		}
	}
	return json.Marshal(out)
}

// readFrom says which member's copy of content is read here, and why. Names and
// attributes are the active's to tell.
func (c *Client) readFrom(slice ids.Slice, active ids.Node) (ids.Node, string) {
	row, _ := c.router.Known(slice)
	near := c.cluster.Closest(active, row.Normals())
	if near == active {
		return active, "it is the slice's active, " + c.cluster.Why(active)
	}
	return near, c.cluster.Why(near) + "; the active is " + c.cluster.Distance(active).String()
}

// where asks the active about an object and adds which copy is read here.
func (c *Client) where(ctx context.Context, o ids.Object) ([]byte, error) {
	const op fault.Op = "cartwheel.where"
	ctx, cancel := c.limits.Remotely(ctx)
	defer cancel()
	if err := c.deferred.Publish(ctx, o); err != nil {
		return nil, err
	}
	var resp *pb.WhereResponse
	var by ids.Node
	err := c.router.Active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		resp, by = &pb.WhereResponse{}, node
		body, err := c.cluster.Call(ctx, node, wire.Operation, method.Where, &pb.WhereRequest{Object: uint64(o), Ticket: c.tickets.Of(o).Reached}, nil, resp)
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
	w.Read, w.Why = c.readFrom(o.Slice(), by)
	if a, _, ok := c.names.Attr(o); ok && a.Version == w.Version && a.Content != nil && a.Mode&mount.TypeMask == mount.TypeRegular {
		w.Why += "; what this mount has in its cache is the current version, under a lease"
	}
	return json.Marshal(w)
}
