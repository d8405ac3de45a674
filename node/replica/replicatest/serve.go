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
			m.leases.giveUp()
		}
	}
}

// inherit takes over the object leases that a hand-over left unanswered.
func (m *machine) inherit(r replica.Role) {
	now := m.clock()
	if r.Wait > 0 {
		for k := range keys {
			m.leases.grant(keyName(k), -1, now+r.Wait)
		}
	}
	for i := 0; i+2 < len(r.Leases); i += 3 {
		left := Time(r.Leases[i+2]) * tickEvery
		m.leases.grant(keyName(int(r.Leases[i])), int(r.Leases[i+1]), now+max(0, left-r.LeasesAge))
	}
}

func (m *machine) encodeLeases() []byte {
	var b []byte
	for k := range keys {
		for c := range m.caches {
			if end := m.leases.ends[keyName(k)][c]; end > m.clock() {
				b = append(b, byte(k), byte(c), byte((end-m.clock())/tickEvery+1))
			}
		}
	}
	return b
}

// endLeases lets go on what waited for leases that have ended.
func (m *machine) endLeases() {
	for k := range keys {
		key := keyName(k)
		if len(m.leases.blocked[key]) > 0 && !m.leases.any(key, m.clock()) {
			waiting := m.leases.blocked[key]
			delete(m.leases.blocked, key)
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
	if len(m.leases.blocked[key]) > 0 || m.leases.changing[key] > 0 {
		left = 0 // it is about to change
	} else {
		m.leases.grant(key, client, until)
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
	if m.leases.any(op.key, m.clock()) {
		for c := range m.caches {
			if m.leases.ends[op.key][c] > m.clock() {
				m.revoke(c, op.key)
			}
		}
		boot := m.boot
		m.leases.blocked[op.key] = append(m.leases.blocked[op.key], func() {
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
	m.leases.changing[op.key]++
	m.calls[m.tokens] = func(r replica.Reply) {
		m.leases.changing[op.key]--
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
	granted := m.leases.granted[to] // a later grant outlives a late answer
	m.after(d, func() {
		m.caches[client].forget(key, m.now)
		back, ok := m.pass(firstClient+client, m.index)
		if ok {
			m.later(back, func() {
				if m.leases.granted[to] == granted {
					delete(m.leases.ends[key], client)
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
