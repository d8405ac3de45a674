package sharing

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

const (
	// sourceStall is for how long nothing may come from a node until another one is
	// asked; sourceMost bounds one question.
	sourceStall = 5 * time.Second
	sourceMost  = time.Minute
	// shunFor is for how long a node is left out that did not answer, or sent other
	// bytes than were asked for.
	shunFor = 15 * time.Second
	// mostAvoid bounds the nodes of which a member is told that they are of no use.
	mostAvoid = 16
	// unknown stands for the distance of a node of which nothing is known.
	unknown = time.Hour
	// Members that are not farther than the nearest by evenly, and by half of its
	// distance, take turns.
	evenly = 5 * time.Millisecond
)

// fetch gets a chunk from a member of its slice, or from a node that the member
// names; where that one is of no use, from the member after all.
func (c *Cache) fetch(ctx context.Context, f *flight, slice ids.Slice, a chunk.Address) ([]byte, error) {
	var err error = fault.E(fault.Missing, "sharing.fetch", a.String(), "no member of the slice is known here")
	avoid := c.shunnedNow()
	for _, member := range c.members(slice, a) {
		data, holders, failed := c.ask(ctx, member, slice, a, pb.Sharing_SOURCE, avoid)
		if failed == nil && len(holders) > 0 {
			f.turn.Do(func() { close(f.turned) })
			if data = c.fromHolder(ctx, slice, a, holders); data != nil {
				return data, nil
			}
			avoid = append(avoid[:min(len(avoid), mostAvoid-len(holders))], holders...)
			data, _, failed = c.ask(ctx, member, slice, a, pb.Sharing_SOURCE, avoid)
		}
		if failed == nil && data != nil {
			return data, nil
		}
		if failed != nil {
			err = failed
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// fromHolder asks the nearest of the nodes that may have a chunk; nil: it is of no
// use.
func (c *Cache) fromHolder(ctx context.Context, slice ids.Slice, a chunk.Address, holders []string) []byte {
	var near ids.Node
	best := 2 * unknown
	for _, h := range holders {
		if _, known := c.o.Roster.Node(ids.Node(h)); !known || h == string(c.o.Self) || c.isShunned(ids.Node(h)) {
			continue
		}
		if d := c.distance(ids.Node(h)); d < best {
			near, best = ids.Node(h), d
		}
	}
	if near == "" {
		return nil
	}
	data, _, err := c.ask(ctx, near, slice, a, pb.Sharing_HELD, nil)
	if err != nil {
		return nil
	}
	return data
}

// ask asks one node for a chunk. It answers with the bytes, with the nodes that have
// them, or with an error; Missing says that the node has not got it.
func (c *Cache) ask(ctx context.Context, node ids.Node, slice ids.Slice, a chunk.Address, how pb.Sharing, avoid []string) ([]byte, []string, error) {
	const op fault.Op = "sharing.ask"
	short, cancel := c.o.Patient(ctx, string(node), sourceStall, sourceMost)
	defer cancel()
	answer := &pb.GetResponse{}
	buffer, err := c.o.Caller.Call(short, string(node), wire.Chunk, method.Get,
		&pb.GetRequest{Slice: uint32(slice), Addresses: a[:], Sharing: how, Avoid: avoid}, nil, answer)
	if err != nil {
		if ctx.Err() == nil && !wire.Answered(err) {
			c.shun(node)
		}
		return nil, nil, err
	}
	defer buffer.Release()
	body := buffer.Bytes()
	switch {
	case len(body) > 0:
		if len(body) > chunk.MaxSize || chunk.Verify(a, body) != nil {
			c.shun(node)
			return nil, nil, fault.E(fault.Corrupt, op, a.String(), "the node sent other bytes than the chunk's")
		}
		return slices.Clip(slices.Clone(body)), nil, nil
	case len(answer.Holders) > 0 && how == pb.Sharing_SOURCE:
		nodes := answer.Holders[0].Nodes
		return nil, nodes[:min(len(nodes), mostHolders)], nil
	}
	return nil, nil, fault.E(fault.Missing, op, a.String(), "the node has not got this chunk")
}

// members returns the normal members of a slice in the order in which to ask them
// for a chunk. Those that are about as near as the nearest take turns, by chunk and
// by site, so that sites that read one file together use the ways of all of them.
func (c *Cache) members(slice ids.Slice, a chunk.Address) []ids.Node {
	row, _ := c.o.Roster.Slice(slice)
	nodes := slices.DeleteFunc(row.Normals(), func(n ids.Node) bool { return n == c.o.Self })
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(nodes)
	slices.SortStableFunc(nodes, func(a, b ids.Node) int { return cmp.Compare(c.distance(a), c.distance(b)) })
	limit := c.distance(nodes[0])
	limit += max(limit/2, evenly)
	even := 0
	for even < len(nodes) && c.distance(nodes[even]) <= limit {
		even++
	}
	if c.distance(nodes[0]) > 0 { // it is at another site
		slices.Sort(nodes[:even])
		turn := (uint64(binary.LittleEndian.Uint32(a[:4])) + uint64(c.siteTurn(nodes))) % uint64(even)
		nodes = slices.Concat(nodes[turn:even], nodes[:turn], nodes[even:])
	}
	slices.SortStableFunc(nodes, func(a, b ids.Node) int { return boolInt(c.isShunned(a)) - boolInt(c.isShunned(b)) })
	return nodes
}

// siteTurn numbers this site among those without one of the members.
func (c *Cache) siteTurn(members []ids.Node) int {
	with := map[ids.Site]bool{}
	for _, m := range members {
		n, _ := c.o.Roster.Node(m)
		with[n.Site] = true
	}
	turn := 0
	for _, s := range c.o.Roster.Sites() {
		if s.Name < c.o.Site && !with[s.Name] {
			turn++
		}
	}
	return turn
}

// distance is the round trip to a node: 0 at this site.
func (c *Cache) distance(id ids.Node) time.Duration {
	if n, ok := c.o.Roster.Node(id); ok && n.Site == c.o.Site {
		return 0
	}
	if d, ok := c.o.Distance(id); ok {
		return d
	}
	return unknown
}

// shun leaves a node out for a while.
func (c *Cache) shun(id ids.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shunned[id] = c.o.Clock() + shunFor
}

func (c *Cache) isShunned(id ids.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shunned[id] > c.o.Clock()
}

// shunnedNow lists the nodes that are left out, and forgets those that are not any
// more.
func (c *Cache) shunnedNow() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for id, until := range c.shunned {
		if until <= c.o.Clock() {
			delete(c.shunned, id)
		} else if len(out) < mostAvoid/2 {
			out = append(out, string(id))
		}
	}
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
