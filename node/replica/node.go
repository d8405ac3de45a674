package replica

import (
	"cartwheel.dev/geo-config/ids"
)

// Node is this node's part in all its replica groups. See the package
// documentation for how to drive it.
type Node struct {
	c   Config
	now Time
	// two takes turns: one is being filled, the other is with the driver.
	two    [2]Outputs
	out    *Outputs
	groups map[ids.Slice]*group
	// order holds the groups whose rows list this node, in the order in which they
	// came: no output may depend on a map's order. lined holds the peers likewise.
	order []*group
	lined []*peer
	peers map[ids.Node]*peer
	dirty []*common // what Flush looks at

	position  Position
	persisted Position
	pending   fifo[pendingRecord]
	kept      fifo[keptEntry] // committed entries in memory, oldest first
	keptBytes int

	stuck      bool // the driver says so
	leaving    bool // likewise
	ticked     Time
	nextBeacon Time
}

type pendingRecord struct {
	position Position
	at       Time
	slice    ids.Slice
	serial   ids.Serial // 0: not an entry
	epoch    ids.Epoch
}

type keptEntry struct {
	group  *common
	serial ids.Serial
	cost   int
}

// New makes a Node without slices.
func New(c Config) *Node {
	n := &Node{c: c.withDefaults(), groups: map[ids.Slice]*group{}, peers: map[ids.Node]*peer{}}
	n.out = &n.two[0]
	n.now, n.ticked = c.Start, c.Start
	return n
}

func (n *Node) step(now Time) { n.now = max(n.now, now) }

// quiet reports whether the node started so recently that it takes nothing
// over and changes nothing in what it was active for.
func (n *Node) quiet() bool { return n.now < n.c.Start+n.c.Wait }

// halted reports whether the node makes no progress, by its driver's word or
// because its journal does not follow.
func (n *Node) halted() bool {
	if n.stuck {
		return true
	}
	oldest := n.pending.front()
	return oldest != nil && n.now-oldest.at > n.c.StuckAfter
}

// fifo is a queue that does not give its memory back.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) push(v T) {
	if f.head > 256 && f.head*2 > len(f.items) {
		k := copy(f.items, f.items[f.head:])
		clear(f.items[k:])
		f.items, f.head = f.items[:k], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) front() *T {
	if f.head == len(f.items) {
		return nil
	}
	return &f.items[f.head]
}

func (f *fifo[T]) pop() {
	var zero T
	f.items[f.head] = zero
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
}

func (n *Node) event(g *common, what string, node ids.Node) {
	n.out.Events = append(n.out.Events, Event{Slice: g.id, What: what, Node: node, Epoch: g.row.Epoch})
}

func (n *Node) keep(g *common, e *Entry) {
	c := e.cost()
	n.kept.push(keptEntry{g, e.Serial, c})
	n.keptBytes += c
}

// record journals something for a group.
func (n *Node) record(g *common, r Record) Position {
	n.position++
	r.Position, r.Slice = n.position, g.id
	p := pendingRecord{position: n.position, at: n.now, slice: g.id}
	if r.Entry != nil {
		p.serial, p.epoch = r.Entry.Serial, r.Entry.Epoch
	}
	n.pending.push(p)
	n.out.Records = append(n.out.Records, r)
	return n.position
}
