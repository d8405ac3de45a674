// Package cost says what an operation waited for: round trips to other sites,
// round trips within its own site, and bytes sent to other sites. Clients show
// these figures in their traces. The package measures nothing: it counts from
// what the loop reports and from where a slice's members stand. It has no state
// of its own, so all of it may be called from any goroutine.
package cost

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
)

// Counter turns what operations waited for into round trips. Its fields must
// not change while it is in use.
type Counter struct {
	// Self is this node.
	Self ids.Node
	// Far reports whether a peer, node or client, stands at another site, as far
	// as that is known.
	Far func(peer string) bool
	// Published returns what the loop says of a slice, or nil.
	Published func(ids.Slice) *operate.Published
}

// Count turns what an operation waited for into round trips: its entries go to
// as many members as its level asks for, and those of this site answer first.
// It returns nil where the operation waited for nothing.
func (c *Counter) Count(slice ids.Slice, waited operate.Cost) *pb.Spent {
	out := pb.Spent{Wan: waited.WAN, Local: waited.Local, Bytes: waited.Far}
	switch {
	case waited.AskedFar:
		out.Wan++
	case waited.Asked:
		out.Local++
	}
	if waited.Commits > 0 {
		near, far := c.standbys(slice)
		need := near + far
		if waited.Level > 0 {
			need = min(need, int(waited.Level)-1)
		}
		switch {
		case need > near:
			out.Wan += uint32(waited.Commits)
		case need > 0:
			out.Local += uint32(waited.Commits)
		}
		out.Bytes += uint64(waited.Bytes) * uint64(far)
	}
	if out.Wan == 0 && out.Local == 0 {
		return nil
	}
	return &out
}

// standbys counts a slice's other normal members at this site and elsewhere.
func (c *Counter) standbys(slice ids.Slice) (near, far int) {
	p := c.Published(slice)
	if p == nil || p.Row == nil {
		return 0, 0
	}
	for i := range p.Row.Members {
		m := &p.Row.Members[i]
		switch {
		case m.State != geoconfig.Normal || m.Node == c.Self:
		case c.Far(string(m.Node)):
			far++
		default:
			near++
		}
	}
	return near, far
}

// Call is the cost of a call to a node that answered with its own cost.
func (c *Counter) Call(peer string, answered *pb.Spent) operate.Cost {
	out := Of(answered)
	if c.Far(peer) {
		out.WAN++
	} else {
		out.Local++
	}
	return out
}

// Of is the cost that a node answered, as an operation's own cost has it.
func Of(p *pb.Spent) operate.Cost {
	return operate.Cost{WAN: p.GetWan(), Local: p.GetLocal(), Far: p.GetBytes()}
}

// Then adds the cost of a second step, which began after the first one ended.
func Then(first, second operate.Cost) operate.Cost {
	first.WAN, first.Local, first.Far = first.WAN+second.WAN, first.Local+second.Local, first.Far+second.Far
	return first
}

// Beside is the cost of steps that ran side by side: the longest counts, and
// the bytes of all.
func Beside(steps ...operate.Cost) (out operate.Cost) {
	for _, c := range steps {
		out.WAN, out.Local, out.Far = max(out.WAN, c.WAN), max(out.Local, c.Local), out.Far+c.Far
	}
	return out
}
