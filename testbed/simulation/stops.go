package simulation

import (
	"fmt"
	"slices"
	"time"
)

// stopping are the faults that end a process.
func (f *faults) stopping(kind Kind, m *machine, length time.Duration) harm {
	power := f.chance.IntN(2) == 0
	which := []*machine{m}
	switch kind {
	case CrashAll:
		which = slices.Clone(f.machines())
	case LongCrash:
		length = f.limits.FailedAfter + 2*f.limits.Lease + length
	case Leave:
		return harm{about: m.name, length: length, begin: m.leave, lift: m.start}
	}
	return harm{about: fmt.Sprintf("%s, power lost: %v", m.name, power), length: length,
		begin: func() {
			for _, m := range which {
				m.crash(power)
			}
		},
		lift: func() {
			for _, m := range which {
				m.start()
			}
		}}
}

// crashing is the fault that a client's process dies.
func (f *faults) crashing() harm {
	c := f.clients[f.chance.IntN(len(f.clients))]
	if mounted, _ := c.now(); mounted == nil {
		return harm{}
	}
	began := false
	return harm{about: c.name, length: time.Duration(10_000_000 + f.chance.IntN(3_000_000_000)),
		begin: func() { began = c.crash() },
		lift: func() {
			if began {
				c.start()
			}
		}}
}
