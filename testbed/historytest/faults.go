package historytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// kind is a fault.
type kind uint8

const (
	crash      kind = iota // a node dies, and starts again at the end
	crashAll               // all of them
	isolate                // a node and the other nodes lose what they send each other
	cutOff                 // a node and everybody else do
	oneWay                 // what a node sends another is lost
	deaf                   // what a client sends a node is lost
	mute                   // what a node sends a client is lost
	stall                  // what a node sends arrives at the end
	lag                    // what a node sends is slow
	lostAnswer             // a node's answers to operations are lost
	away                   // geo-config cannot be reached
	handOver               // a node is told to pass its slices on
	kinds
)

var kindNames = [...]string{"crash", "crash-all", "isolate", "cut-off", "one-way", "deaf", "mute", "stall", "lag", "lost-answer", "away", "hand-over"}

// aFault is one fault of a schedule.
type aFault struct {
	kind  kind
	a, b  int // a node; another node, or a client
	from  time.Duration
	until time.Duration
}

func (f aFault) String() string {
	return fmt.Sprintf("%s(%d,%d)@%d-%dms", kindNames[f.kind], f.a, f.b, f.from.Milliseconds(), f.until.Milliseconds())
}

// schedule draws the faults of a run of a length.
func schedule(r *rand.Rand, nodes, clients int, length time.Duration) []aFault {
	var out []aFault
	share := func(of time.Duration) time.Duration { return time.Duration(r.Int64N(int64(of))) }
	for range 2 + r.IntN(3) {
		f := aFault{kind: kind(r.IntN(int(kinds))), a: r.IntN(nodes)}
		if f.kind == crashAll && r.IntN(3) > 0 {
			f.kind = crash
		}
		f.b = (f.a + 1 + r.IntN(nodes-1)) % nodes
		if f.kind == deaf || f.kind == mute {
			f.b = r.IntN(clients)
		}
		f.from = length/20 + share(length/2)
		f.until = min(f.from+length/10+share(length/2), length)
		if f.kind == lostAnswer {
			f.until = f.from + share(length/8)
		}
		crashes := f.kind == crash || f.kind == crashAll
		if crashes && slices.ContainsFunc(out, func(o aFault) bool { return o.kind == crash || o.kind == crashAll }) {
			f.kind = isolate // one node at a time starts and stops
		}
		out = append(out, f)
	}
	return out
}

func describe(faults []aFault) string {
	parts := make([]string, len(faults))
	for i, f := range faults {
		parts[i] = f.String()
	}
	return strings.Join(parts, " ")
}

// harm puts faults on a cluster.
type harm struct {
	c       *servertest.Cluster
	net     *network
	clients []string // their hosts
	order   *servertest.Client
}

// both returns two directions.
func both(a, b string) []pair { return []pair{{a, b}, {b, a}} }

func (h *harm) node(i int) string { return string(h.c.Nodes[i].ID()) }

// others are the pairs of a node with the other nodes, and with the clients.
func (h *harm) others(i int, clients bool) []pair {
	var out []pair
	for k := range h.c.Nodes {
		if k != i {
			out = append(out, both(h.node(i), h.node(k))...)
		}
	}
	if clients {
		for _, c := range h.clients {
			out = append(out, both(h.node(i), c)...)
		}
	}
	return out
}

// sent are the directions away from a node.
func (h *harm) sent(i int, nodes bool) []pair {
	var out []pair
	for _, p := range h.others(i, true) {
		if p.from == h.node(i) && (nodes || slices.Contains(h.clients, p.to)) {
			out = append(out, p)
		}
	}
	return out
}

// start starts a node again, under the network's rules.
func (h *harm) start(nodes ...*servertest.Node) {
	for _, n := range nodes {
		n.Start()
		h.net.join(n.Server().Host())
	}
}

// begin puts a fault in force and returns what lifts it.
func (h *harm) begin(ctx context.Context, f aFault) (lift func()) {
	n := h.c.Nodes[f.a]
	left := f.until - f.from
	switch f.kind {
	case crash:
		n.Kill()
		return func() { h.start(n) }
	case crashAll:
		for _, n := range h.c.Nodes {
			n.Kill()
		}
		return func() { h.start(h.c.Nodes...) }
	case isolate:
		return h.net.disturb(h.others(f.a, false), rule{how: lose})
	case cutOff:
		return h.net.disturb(h.others(f.a, true), rule{how: lose})
	case oneWay:
		return h.net.disturb([]pair{{h.node(f.a), h.node(f.b)}}, rule{how: lose})
	case deaf:
		return h.net.disturb([]pair{{h.clients[f.b], h.node(f.a)}}, rule{how: lose})
	case mute:
		return h.net.disturb([]pair{{h.node(f.a), h.clients[f.b]}}, rule{how: lose})
	case stall:
		return h.net.disturb(h.sent(f.a, true), rule{how: hold, until: time.Now().Add(left)})
	case lag:
		return h.net.disturb(h.sent(f.a, true), rule{how: slow, delay: 2*time.Millisecond + left/40})
	case lostAnswer:
		return h.net.disturb(h.sent(f.a, false), rule{how: answers})
	case away:
		h.c.Away(true)
		return func() { h.c.Away(false) }
	case handOver:
		h.handOver(ctx, n)
	}
	return func() {}
}

// handOver tells a node to pass the slices on that it is active for.
func (h *harm) handOver(ctx context.Context, n *servertest.Node) {
	rows, err := h.c.Store.Read(ctx, geoconfig.Query{Slices: maxSlices})
	if err != nil {
		return // the store is in memory: only ctx can have ended
	}
	for _, row := range rows.Slices {
		if row.Active == n.ID() {
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			// Refused or late: it is one more fault that came to nothing.
			_, _ = h.order.Call(short, n.ID(), wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: uint32(row.ID)}, nil, &pb.HandOverResponse{})
			cancel()
		}
	}
}

// inflict runs a schedule to its end, after which everything is healed.
func (h *harm) inflict(ctx context.Context, faults []aFault, length time.Duration) {
	type moment struct {
		at  time.Duration
		run func()
	}
	var moments []moment
	for _, f := range faults {
		var lift func()
		moments = append(moments,
			moment{f.from, func() { lift = h.begin(ctx, f) }},
			moment{f.until, func() { lift() }})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return int(a.at - b.at) })
	began := time.Now()
	for _, m := range append(moments, moment{length, func() {}}) {
		t := time.NewTimer(m.at - time.Since(began))
		<-t.C
		m.run()
	}
}
