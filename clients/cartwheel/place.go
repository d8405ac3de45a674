package cartwheel

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// placedFor is how long an answer of where new objects go is believed;
// placeLimit is how long one is waited for.
const (
	placedFor  = 10 * time.Second
	placeLimit = 3 * time.Second
	// placeAgain is the pause before a slice is looked for again where the nodes
	// name one that is full.
	placeAgain = 200 * time.Millisecond
)

// placements remembers where objects of a policy went.
type placements struct {
	mu sync.Mutex // guards by
	by map[geoconfig.Policy]placement
}

type placement struct {
	slice ids.Slice // 0: there is none now, the directory's stands in
	until time.Duration
}

// place decides which slice a new object goes to (docs/design.md, 4.11): the
// directory's, where that is kept together, or active at the site where the
// object should be and of the same policy; else the one that the nearest node
// names. asked is false where the directory's slice stands in for one that
// cannot be had.
func (c *Client) place(ctx context.Context, dir *pb.Attr, own *pb.Cues) (ids.Slice, error) {
	parent := ids.Object(dir.Object).Slice()
	cues := cue.Inherit(dir.Cues, own)
	home := c.opt.Site
	if home == "" && cues.GetSite() == "" {
		if own == nil {
			return parent, nil
		}
		home = c.siteOfActive(ctx, parent)
	}
	row, err := c.router.Row(ctx, parent)
	if err != nil {
		return 0, err
	}
	if cues.GetKeepTogether() && !row.Closed && (own == nil || own.Site == "" && own.RepLevel == 0 && own.RepSites == 0) {
		return parent, nil
	}
	want := cue.Policy(cues, home)
	if !row.Closed && samePolicy(row.Policy, want) && c.siteOf(row.Active) == want.Home {
		return parent, nil
	}
	if s, ok := c.placed.get(want, c.boot()); ok {
		if s == 0 && !row.Closed {
			return parent, nil
		}
		if row, known := c.router.Known(s); known && !row.Closed {
			return s, nil
		}
	}
	s, err := c.askPlace(ctx, dir, cues, want.Home, row.Closed)
	switch {
	case err == nil:
		c.placed.put(want, s, c.boot()+placedFor)
		return s, nil
	case fault.Is(err, fault.Invalid):
		c.log.Warn("cues cannot be honoured", "cues", cue.Join(cue.Kept(cues)), "err", err)
		return 0, err
	case cues.GetSite() != "" && own != nil:
		return 0, err
	case row.Closed && mayComeLater(err): // nothing stands in for a slice that is full
		return 0, &fault.Error{Kind: fault.Again, Op: "cartwheel.place", Cause: err}
	case row.Closed:
		return 0, err
	}
	// No slice can be made now: the object goes where its directory is.
	c.placed.put(want, 0, c.boot()+placedFor)
	c.log.Warn("new objects go to their directory's slice for a while, because there is no better one now", "err", err)
	return parent, nil
}

func (p *placements) get(want geoconfig.Policy, now time.Duration) (ids.Slice, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.by[want]
	return x.slice, ok && x.until > now
}

func (p *placements) put(want geoconfig.Policy, s ids.Slice, until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) > 1000 {
		p.by = map[geoconfig.Policy]placement{}
	}
	p.by[want] = placement{s, until}
}

// drop forgets a slice that takes no more.
func (p *placements) drop(s ids.Slice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for want, x := range p.by {
		if x.slice == s {
			delete(p.by, want)
		}
	}
}

func (c *Client) siteOf(n ids.Node) ids.Site {
	row, _ := c.cluster.Node(n)
	return row.Site
}

func (c *Client) siteOfActive(ctx context.Context, s ids.Slice) ids.Site {
	row, err := c.router.Row(ctx, s)
	if err != nil {
		return ""
	}
	return c.siteOf(row.Active)
}

// samePolicy compares policies; 0 sites means as many as there are.
func samePolicy(a, b geoconfig.Policy) bool {
	for _, p := range []*geoconfig.Policy{&a, &b} {
		if p.Sites == 0 {
			p.Sites = p.Level
		}
		if p.Kind == 0 {
			p.Kind = geoconfig.Ordinary
		}
	}
	return a == b
}

// askPlace asks a node at the object's home, else the nearest ones. Where this
// client's own site is the home, it asks only nodes there, as to go to another
// site than the directory's helps nobody; with anywhere, because the directory's
// slice is full, it asks the others then.
func (c *Client) askPlace(ctx context.Context, dir *pb.Attr, cues *pb.Cues, home ids.Site, anywhere bool) (ids.Slice, error) {
	const op fault.Op = "cartwheel.place"
	var failed error = fault.E(fault.Unreachable, op, string(home), "no node of the site is known")
	var nodes, others []ids.Node
	for _, n := range c.cluster.Nearest() {
		if cues.GetSite() != "" || c.siteOf(n) == home {
			nodes = append(nodes, n)
		} else if anywhere {
			others = append(others, n)
		}
	}
	for _, n := range append(nodes, others...) {
		s, err := c.askPlaceOf(ctx, n, dir, cues)
		if row, known := c.router.Known(s); err == nil && known && row.Closed {
			// This node has yet to hear that the slice is full; another may know.
			err = fault.Errorf(fault.Again, op, string(n), "the node names slice %d, which takes no more", s)
		}
		if err == nil || fault.Is(err, fault.Invalid) || ctx.Err() != nil {
			return s, err
		}
		failed = err
	}
	return 0, failed
}

func (c *Client) askPlaceOf(ctx context.Context, n ids.Node, dir *pb.Attr, cues *pb.Cues) (ids.Slice, error) {
	const op fault.Op = "cartwheel.place"
	ctx, cancel := context.WithTimeout(ctx, placeLimit)
	defer cancel()
	var resp pb.PlaceResponse
	body, err := c.cluster.Call(ctx, n, wire.Operation, method.Place, &pb.PlaceRequest{Parent: dir.Object, Cues: cues}, nil, &resp)
	body.Release()
	if err == nil && resp.Refusal != nil {
		err = fault.E(fault.Kind(resp.Refusal.Kind), op, string(n), resp.Refusal.Message)
	}
	if err != nil {
		return 0, err
	}
	var row geoconfig.SliceRow
	if err := json.Unmarshal(resp.Row, &row); err != nil {
		return 0, fault.Wrap(fault.Corrupt, op, string(n), err)
	}
	c.router.Learn(row)
	return ids.Slice(resp.Slice), nil
}
