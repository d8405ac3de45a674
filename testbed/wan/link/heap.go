package link

// event is when a flight is to be looked at. Those of the same time keep the
// order in which they came in.
type event struct {
	at, order int64
	flight    uint32
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// heap is a heap of four branches: flatter than one of two, for few cache
// misses.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
}

func (h *heap) pop() {
	s := *h
	n := len(s) - 1
	s[0] = s[n]
	*h = s[:n]
	if n > 0 {
		h.down(0)
	}
}

// down moves an event to its place among those below it.
func (h *heap) down(i int) {
	s := *h
	e := s[i]
	for {
		first := 4*i + 1
		if first >= len(s) {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, len(s)); j++ {
			if s[j].before(s[least]) {
				least = j
			}
		}
		if !s[least].before(e) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = e
}

// order makes a heap of events in any order.
func (h *heap) order() {
	for i := len(*h) - 1; i >= 0; i-- {
		h.down(i)
	}
}
