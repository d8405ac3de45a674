package replicatest

import (
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
)

// takeRole does what a server does when its part in the slice changes.
func (m *machine) takeRole(r replica.Role) {
	serving := m.role == replica.RoleLeading || m.role == replica.RoleYielding
	m.role = r.Kind
	switch r.Kind {
	case replica.RoleLeading:
		m.inherit(r)
	case replica.RoleYielding:
		m.later(m.between(0, tickEvery), func() { m.core.Yield(m.clock(), Slice, m.encodeLeases()) })
	default:
		if serving {
			m.leases, m.blocked = map[string]map[int]Time{}, map[string][]func(){}
		}
	}
}

// inherit takes over the object leases that a hand-over left unanswered.
func (m *machine) inherit(r replica.Role) {
	now := m.clock()
	if r.Wait > 0 {
		for k := range keys {
			m.lease(keyName(k), -1, now+r.Wait)
		}
	}
	for i := 0; i+2 < len(r.Leases); i += 3 {
		left := Time(r.Leases[i+2]) * tickEvery
		m.lease(keyName(int(r.Leases[i])), int(r.Leases[i+1]), now+max(0, left-r.LeasesAge))
	}
}

func (m *machine) encodeLeases() []byte {
	var b []byte
	for k := range keys {
		for c := range m.caches {
			if end := m.leases[keyName(k)][c]; end > m.clock() {
				b = append(b, byte(k), byte(c), byte((end-m.clock())/tickEvery+1))
			}
		}
	}
	return b
}

// grantee is a client that got a lease on a key.
type grantee struct {
	key    string
	client int
}

func (m *machine) lease(key string, client int, end Time) {
	if m.leases[key] == nil {
		m.leases[key] = map[int]Time{}
	}
	m.leases[key][client] = max(m.leases[key][client], end)
	m.grants++
	m.granted[grantee{key, client}] = m.grants
}

func (m *machine) leased(key string) bool {
	for _, end := range m.leases[key] {
		if end > m.clock() {
			return true
		}
	}
	return false
}

// endLeases lets go on what waited for leases that have ended.
func (m *machine) endLeases() {
	for k := range keys {
		key := keyName(k)
		if len(m.blocked[key]) > 0 && !m.leased(key) {
			waiting := m.blocked[key]
			delete(m.blocked, key)
			for _, f := range waiting {
				m.do(f)
			}
		}
	}
}

// answer is what a client hears.
type answer struct {
	kind   fault.Kind
	value  string
	serial uint64
	left   Time // of the object lease
}

// read serves the current value to who asks, under the active's lease, and
// grants an object lease that ends with it.
func (m *machine) read(client int, key string, reply func(answer)) {
	until, now := m.core.Until(Slice), m.clock()
	if m.role != replica.RoleLeading || until <= now {
		reply(answer{kind: fault.NotActive})
		return
	}
	left := until - now
	if len(m.blocked[key]) > 0 || m.changing[key] > 0 {
		left = 0 // it is about to change
	} else {
		m.lease(key, client, until)
	}
	reply(answer{value: m.state[key], left: left})
}

// write revokes the key's object leases, then proposes; a client's first write
// is proposed right behind its registration, which nobody waits for.
func (m *machine) write(op *operation, number, lowest uint64, reply func(answer)) {
	if m.role != replica.RoleLeading || m.core.Until(Slice) <= m.clock() {
		reply(answer{kind: fault.NotActive})
		return
	}
	if m.leased(op.key) {
		for c := range m.caches {
			if m.leases[op.key][c] > m.clock() {
				m.revoke(c, op.key)
			}
		}
		boot := m.boot
		m.blocked[op.key] = append(m.blocked[op.key], func() {
			if m.boot == boot {
				m.write(op, number, lowest, reply)
			}
		})
		return
	}
	if known, _ := m.core.Lookup(Slice, op.id, number, m.timestamp()); known == replica.Unregistered {
		m.core.Propose(m.clock(), replica.Proposal{Entry: replica.Entry{Slice: Slice, Time: m.timestamp(), Client: op.id}})
	}
	m.tokens++
	m.changing[op.key]++
	m.calls[m.tokens] = func(r replica.Reply) {
		m.changing[op.key]--
		reply(answer{kind: r.Kind, serial: uint64(r.Serial), value: string(r.Result)})
	}
	e := replica.Entry{Slice: Slice, Time: m.timestamp(), Client: op.id, Number: number, Lowest: lowest, Level: op.level}
	e.Data = fmt.Appendf(nil, "%s=%s", op.key, op.value)
	e.Result = []byte(op.value)
	if m.chance(200) {
		e.Chunks = make([]byte, replica.AddressSize)
	}
	m.core.Propose(m.clock(), replica.Proposal{Token: m.tokens, Entry: e})
}

// revoke tells a client to forget a key; its answer frees the key.
func (m *machine) revoke(client int, key string) {
	d, ok := m.pass(m.index, firstClient+client)
	if !ok {
		return
	}
	to := grantee{key, client}
	granted := m.granted[to] // a later grant outlives a late answer
	m.after(d, func() {
		m.caches[client].forget(key, m.now)
		back, ok := m.pass(firstClient+client, m.index)
		if ok {
			m.later(back, func() {
				if m.granted[to] == granted {
					delete(m.leases[key], client)
				}
				m.endLeases()
			})
		}
	})
}

func (m *machine) timestamp() hlc.Time {
	_, last := m.core.Next(Slice)
	return max(last+1, hlc.Time(m.now))
}
