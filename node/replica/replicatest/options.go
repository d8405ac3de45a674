package replicatest

import (
	"fmt"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/replica/internal/bug"
)

// Time is virtual: what a perfect clock would show.
type Time = time.Duration

// Lease is the simulated lease; shorter than a real one, so that more happens.
const Lease = 300 * time.Millisecond

const tickEvery = 15 * time.Millisecond

// Options shape a World.
type Options struct {
	Seed    uint64
	Nodes   int // machines; those beyond Level are spare
	Level   int
	Members int // of the slice at first; 0 is Level
	Clients int
	Flight  int  // operations that each has under way at once, 1 if 0
	Faults  Time // how long faults and load go on
	// LevelTwo is the share of writes, of 256, that ask for two replicas only.
	LevelTwo int
	// Coherence is the slice's time to coherence, in which chunks come late.
	Coherence Time
	Loss      int // messages of 1000 that are lost while faults go on
	// Slow messages come late by up to SlowBy, SlowShare of 1000 of them.
	Slow      replica.MessageKind
	SlowShare int
	SlowBy    Time
	// Late is how many messages of 1000 come late, by up to LateBy.
	Late   int
	LateBy Time
	// CandidateCrashes is how many of 1000 candidates crash as soon as they have
	// sent their takeover's swap, 60 if 0.
	CandidateCrashes int
	// Moves is how many of 1000 faults, more than usual, change the members.
	Moves int
	// Lies is how many of 1000 faults make a disk lose what was synced, 80 if 0.
	Lies int
	// Keep is how many bytes of entries a core keeps in memory, 8 KiB if 0.
	Keep int
	// NoReads: drivers give nothing back from their journals, so that who
	// misses more than is in memory gets the state.
	NoReads bool
	Bugs    Bugs
	Trace   func(format string, args ...any)
}

// Slice is the slice that the simulated cluster has.
const Slice ids.Slice = 1

func nodeName(i int) ids.Node { return ids.Node(fmt.Sprintf("n%d", i)) }

// Bugs are mistakes planted to show that the checkers find them.
type Bugs struct {
	Core bug.Set
	// LeaseOutlivesActive: clients honour an object lease for a fixed time,
	// even if its active was replaced meanwhile.
	LeaseOutlivesActive bool
}

// breaksCore reports whether a planted mistake is in the core itself, whose
// invariants it may break before a promise is.
func (b Bugs) breaksCore() bool { return b.Core != bug.Set{} }

// keys is how many keys the clients use.
const keys = 8

func keyName(i int) string { return "k" + strconv.Itoa(i) }

// Numbers in the network: machines count from 0.
const (
	configIndex = 99
	firstClient = 100
)
