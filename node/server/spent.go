package server

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
)

// far reports whether a peer, node or client, stands at another site, as far
// as that is known.
func (s *Server) far(peer string) bool {
	if n, ok := s.directory.Node(ids.Node(peer)); ok {
		return n.Site != ids.Site(s.config.Site)
	}
	w, err := s.who.Client(peer)
	return err == nil && w.Site != s.config.Site
}

// spent turns what an operation waited for into round trips: its entries go to
// as many members as its level asks for, and those of this site answer first.
// It is nil where nothing was waited for.
func (s *Server) spent(slice ids.Slice, c operate.Cost) *pb.Spent {
	out := pb.Spent{Wan: c.WAN, Local: c.Local, Bytes: c.Far}
	switch {
	case c.AskedFar:
		out.Wan++
	case c.Asked:
		out.Local++
	}
	if c.Commits > 0 {
		near, far := s.standbys(slice)
		need := near + far
		if c.Level > 0 {
			need = min(need, int(c.Level)-1)
		}
		switch {
		case need > near:
			out.Wan += uint32(c.Commits)
		case need > 0:
			out.Local += uint32(c.Commits)
		}
		out.Bytes += uint64(c.Bytes) * uint64(far)
	}
	if out.Wan == 0 && out.Local == 0 {
		return nil
	}
	return &out
}

// standbys counts a slice's other normal members at this site and elsewhere.
func (s *Server) standbys(slice ids.Slice) (near, far int) {
	p := s.loop.Published(slice)
	if p == nil || p.Row == nil {
		return 0, 0
	}
	for i := range p.Row.Members {
		m := &p.Row.Members[i]
		switch {
		case m.State != geoconfig.Normal || m.Node == s.id:
		case s.far(string(m.Node)):
			far++
		default:
			near++
		}
	}
	return near, far
}

// cost is spent as an operation's own cost has it.
func cost(p *pb.Spent) operate.Cost {
	return operate.Cost{WAN: p.GetWan(), Local: p.GetLocal(), Far: p.GetBytes()}
}

// then adds what came after; beside takes the longer of what ran side by side.
func then(a, b operate.Cost) operate.Cost {
	a.WAN, a.Local, a.Far = a.WAN+b.WAN, a.Local+b.Local, a.Far+b.Far
	return a
}

func beside(a, b operate.Cost) operate.Cost {
	a.WAN, a.Local, a.Far = max(a.WAN, b.WAN), max(a.Local, b.Local), a.Far+b.Far
	return a
}

// callCost is what a call to a node cost that answered with what it spent.
func (s *Server) callCost(peer string, spent *pb.Spent) operate.Cost {
	c := cost(spent)
	if s.far(peer) {
		c.WAN++
	} else {
		c.Local++
	}
	return c
}
