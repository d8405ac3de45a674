package cartwheel

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

// placedFor is how long an answer of where new objects go is believed;
// placeLimit is how long one is waited for.
const (
	placedFor  = 10 * time.Second
	placeLimit = 10 * time.Second
)

// placements remembers where objects of a policy went.
type placements struct {
	mu sync.Mutex // guards by
	by map[geoconfig.Policy]placement
}

type placement struct {
	slice geoconfig.SliceID
	until time.Duration
}

// place decides which slice a new object goes to (DESIGN section 4): the
// directory's, where that is kept together, or active at the site where the
// object should be and of the same policy; else the one that the nearest node
// names. asked is false where the directory's slice stands in for one that
// cannot be had.
func (c *Client) place(ctx context.Context, dir *pb.Attr, own *pb.Cues) (geoconfig.SliceID, error) {
	parent := geoconfig.ObjectID(dir.Object).Slice()
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
		if row, known := c.router.Known(s); known && !row.Closed {
			return s, nil
		}
	}
	s, err := c.askPlace(ctx, dir, cues)
	switch {
	case err == nil:
		c.placed.put(want, s, c.boot()+placedFor)
		return s, nil
	case fault.Is(err, fault.Invalid):
		c.log.Warn("cues cannot be honoured", "cues", cue.Join(cue.Kept(cues)), "err", err)
		return 0, err
	case row.Closed:
		return 0, err
	}
	// No slice can be made now: the object goes where its directory is.
	c.log.Warn("an object goes to its directory's slice, because there is no better one now", "err", err)
	return parent, nil
}

func (p *placements) get(want geoconfig.Policy, now time.Duration) (geoconfig.SliceID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.by[want]
	return x.slice, ok && x.until > now
}

func (p *placements) put(want geoconfig.Policy, s geoconfig.SliceID, until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) > 1000 {
		p.by = map[geoconfig.Policy]placement{}
	}
	p.by[want] = placement{s, until}
}

// drop forgets a slice that takes no more.
func (p *placements) drop(s geoconfig.SliceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for want, x := range p.by {
		if x.slice == s {
			delete(p.by, want)
		}
	}
}

func (c *Client) siteOf(n geoconfig.NodeID) geoconfig.SiteName {
	row, _ := c.cluster.Node(n)
	return row.Site
}

func (c *Client) siteOfActive(ctx context.Context, s geoconfig.SliceID) geoconfig.SiteName {
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

// askPlace asks the nearest node that answers.
func (c *Client) askPlace(ctx context.Context, dir *pb.Attr, cues *pb.Cues) (geoconfig.SliceID, error) {
	ctx, cancel := context.WithTimeout(ctx, placeLimit)
	defer cancel()
	var failed error
	for _, n := range c.cluster.Nearest() {
		var resp pb.PlaceResponse
		_, err := c.cluster.Call(ctx, n, wire.Operation, method.Place, &pb.PlaceRequest{Parent: dir.Object, Cues: cues}, nil, &resp)
		if err == nil && resp.Refusal == nil {
			var row geoconfig.SliceRow
			if err := json.Unmarshal(resp.Row, &row); err != nil {
				return 0, fault.Wrap(fault.Corrupt, "cartwheel.place", string(n), err)
			}
			c.router.Learn(row)
			return geoconfig.SliceID(resp.Slice), nil
		}
		if fault.Is(err, fault.Invalid) {
			return 0, err
		}
		if failed = err; ctx.Err() != nil {
			break
		}
	}
	if failed == nil {
		failed = fault.E(fault.Unreachable, "cartwheel.place", "", "no node can take it")
	}
	return 0, failed
}
