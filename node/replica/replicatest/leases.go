package replicatest

// leases are the object leases that an active has granted. They are lost with it.
type leases struct {
	ends     map[string]map[int]Time // key -> client -> end, by the active's clock
	granted  map[grantee]uint64      // the last grant
	grants   uint64
	blocked  map[string][]func() // what waits for a key's leases to end
	changing map[string]int      // writes proposed and not answered
}

// grantee is a client that got a lease on a key.
type grantee struct {
	key    string
	client int
}

// begin forgets all but the number of grants.
func (l *leases) begin() {
	l.ends, l.blocked = map[string]map[int]Time{}, map[string][]func(){}
	l.changing, l.granted = map[string]int{}, map[grantee]uint64{}
}

// giveUp forgets the leases, and what waits for their ends.
func (l *leases) giveUp() {
	l.ends, l.blocked = map[string]map[int]Time{}, map[string][]func(){}
}

func (l *leases) grant(key string, client int, end Time) {
	if l.ends[key] == nil {
		l.ends[key] = map[int]Time{}
	}
	l.ends[key][client] = max(l.ends[key][client], end)
	l.grants++
	l.granted[grantee{key, client}] = l.grants
}

// any reports whether a client has a lease on a key.
func (l *leases) any(key string, now Time) bool {
	for _, end := range l.ends[key] {
		if end > now {
			return true
		}
	}
	return false
}
