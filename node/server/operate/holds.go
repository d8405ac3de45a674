package operate

import (
	"maps"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// holds counts for each user the holds in the slices that this node acts for: the
// files that its clients have open and that may have no name. A slice is counted
// once an operation asks, and forgotten when the node acts for it no more. It is
// the loop's own.
type holds struct {
	limit   int
	slices  map[ids.Slice]map[uint64]int // holds of each client
	clients map[uint64]*clientHolds
	users   map[string]int
}

// clientHolds are the holds of one client over all slices that are counted.
type clientHolds struct {
	user string // empty: no operation has told it yet
	n    int
}

func newHolds(limit int) *holds {
	return &holds{limit: limit, slices: map[ids.Slice]map[uint64]int{}, clients: map[uint64]*clientHolds{}, users: map[string]int{}}
}

// change notes that a client has so many more holds in a slice.
func (h *holds) change(id ids.Slice, client uint64, by int) {
	counted := h.slices[id]
	if counted == nil {
		return
	}
	if counted[client] += by; counted[client] == 0 {
		delete(counted, client)
	}
	c := h.clients[client]
	if c == nil {
		c = &clientHolds{}
		h.clients[client] = c
	}
	c.n += by
	h.charge(c.user, by)
	if c.n == 0 {
		delete(h.clients, client)
	}
}

func (h *holds) charge(user string, by int) {
	if user == "" || by == 0 {
		return
	}
	if h.users[user] += by; h.users[user] == 0 {
		delete(h.users, user)
	}
}

// applied notes what a committed entry does to holds.
func (h *holds) applied(id ids.Slice, mutations []tree.Mutation) {
	if h.slices[id] == nil {
		return
	}
	for i := range mutations {
		if client, by := tree.HoldChange(&mutations[i]); by != 0 {
			h.change(id, client, by)
		}
	}
}

// drop forgets a slice.
func (h *holds) drop(id ids.Slice) {
	for client, n := range h.slices[id] {
		h.change(id, client, -n)
	}
	delete(h.slices, id)
	maps.DeleteFunc(h.clients, func(_ uint64, c *clientHolds) bool { return c.n == 0 }) // whose operation came to nothing
}

// count counts the holds in a slice, unless it is counted already.
func (h *holds) count(id ids.Slice, v tree.View) error {
	if h.slices[id] != nil {
		return nil
	}
	h.slices[id] = map[uint64]int{}
	err := tree.EachHold(v, func(client uint64) { h.change(id, client, 1) })
	if err != nil {
		h.drop(id)
	}
	return err
}

// belongs notes whose a client is.
func (h *holds) belongs(client uint64, user string) {
	c := h.clients[client]
	if c == nil {
		c = &clientHolds{}
		h.clients[client] = c
	}
	if c.user != user {
		h.charge(c.user, -c.n)
		c.user = user
		h.charge(user, c.n)
	}
}

// takesHold reports whether an operation is refused where its user has too many
// holds: it makes a file that is held from the start, or says of a file that it
// is open before the file loses its name. Never refused are the removal of a name
// and the holds of those who had the object open by then: without them, a
// program would lose a file that it has open already. Those holds count.
func takesHold(o *pb.Operation) bool {
	switch o := o.Op.(type) {
	case *pb.Operation_Create:
		return o.Create.Nameless
	case *pb.Operation_MakeObject:
		return o.MakeObject.Open
	case *pb.Operation_Hold:
		return !o.Hold.Release
	}
	return false
}
