package cartwheel

import (
	"time"

	"cartwheel.dev/clients/cartwheel/remembered"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// connection is what reaches the nodes. Open makes it, and nothing changes it.
type connection struct {
	cluster  *contact.Cluster
	router   *route.Router
	sessions *session.Manager
	tickets  *tickets.Table
	hlc      *hlc.Clock // of all nodes that were heard of
	// remembered is what is taken where no node answers in time.
	remembered *remembered.Table
	// aheadFrom is Options.AheadFrom.
	aheadFrom time.Duration
}

// siteKnown reports whether a node has said that there is such a site.
func (c *connection) siteKnown(site ids.Site) bool {
	for _, s := range c.cluster.Sites() {
		if s.Name == site {
			return true
		}
	}
	return false
}

// far reports whether the active of a slice is so far away that what may be
// asked of it next is worth having in advance.
func (c *connection) far(slice ids.Slice) bool {
	row, ok := c.router.Known(slice)
	if !ok || c.aheadFrom < 0 {
		return false
	}
	return c.beyond(row.Active, c.aheadFrom)
}

// nearContent reports whether the node that is asked for a slice's content is
// near.
func (c *connection) nearContent(slice ids.Slice) bool {
	row, ok := c.router.Known(slice)
	limit := c.aheadFrom
	if limit < 0 {
		limit = DefaultAheadFrom
	}
	return ok && !c.beyond(c.cluster.Closest(row.Active, row.Normals()), limit)
}

// beyond reports whether a round trip to a node takes so long, or more.
func (c *connection) beyond(node ids.Node, limit time.Duration) bool {
	switch d := c.cluster.Distance(node); d.How {
	case contact.Local:
		return false
	case contact.Unknown:
		return !c.cluster.Near(node)
	default:
		return d.RTT >= limit
	}
}

// observe moves this client's clock up to that of a node. It ignores a clock that
// is far ahead; the other nodes report that one.
func (c *connection) observe(_ string, t uint64) { _ = c.hlc.Observe(hlc.Time(t)) }
