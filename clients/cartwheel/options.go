package cartwheel

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/telemetry"
	"cartwheel.dev/node/wire"
)

// Options set up a Client.
type Options struct {
	Contact contact.File
	// Site is where this machine stands; empty: unknown, then what is made goes
	// to its parent's slice.
	Site ids.Site
	// Name is shown to people: host and mount point.
	Name string
	// CacheDir is the folder of the disk cache and the write journal; empty:
	// none. One process a folder.
	CacheDir   string
	CacheBytes int64
	// OpTimeout bounds one operation with all of its retries (60 s). What was
	// written is sent for longer: until the nodes take it, unless Soft is set.
	OpTimeout time.Duration
	// Soft gives a write up that no node took within OpTimeout. A program is told.
	Soft bool
	// FlushTimeout is for how long Close goes on while nothing that is unsent gets
	// to the nodes (OpTimeout).
	FlushTimeout time.Duration
	// RetryAfter is the first pause before a write that did not get through is
	// sent again (50 ms). It doubles up to 2 s.
	RetryAfter time.Duration
	Far
	// Memory is what the process aims to stay under, in bytes (DefaultMemory): the
	// limits below and the engine's are sized by it where they are zero.
	Memory int64
	// KnownFiles is how many files and folders the kernel may know at a time;
	// beyond that it is asked to give up those that it looked up the longest time
	// ago. Negative: as many as it likes. What is in use is not bounded.
	KnownFiles int
	// DirtyBytes bounds what is written and not at the nodes: then writers wait.
	// MemoryCache bounds the content and range maps in memory. Zero: by Memory.
	DirtyBytes, MemoryCache int64
	// ReadAhead bounds what one open file is read ahead (8 MiB), FlushAfter is the
	// age at which written bytes are sent though no program asked (5 s).
	ReadAhead  int64
	FlushAfter time.Duration
	// UntoldFiles bounds the new files that their active has not heard of (1,024):
	// beyond that each is made there at once. Of other operations on names and
	// attributes, eight times as many: beyond that calls wait.
	UntoldFiles int
	// InFlight bounds the operations under way on one slice (route.DefaultInFlight):
	// beyond that they wait here.
	InFlight int
	// Names bound the names and attributes that are kept under leases.
	Names names.Limits
	Measured
	Logger *slog.Logger
	// Telemetry follows operations; nil: none are followed. Its owner closes it
	// behind the Client.
	Telemetry *telemetry.Telemetry
	// Wall is the time of day, Clock the clock of leases; nil: the system's.
	Wall  func() time.Time
	Clock boottime.Func
	Simulated
}

// Far says from which round trips on the client spends bytes to spare trips.
type Far struct {
	// AheadFrom is the round trip to the active of a slice from which on answers
	// bring names along that may be asked for next (DefaultAheadFrom); negative:
	// none ever do.
	AheadFrom time.Duration
	// HoldFrom is the round trip to the active of a slice from which on a small file that
	// CreateOnce makes is sent to all normal members at once (DefaultHoldFrom);
	// negative: it never is.
	HoldFrom time.Duration
}

// Measured leaves out a part of the client, to measure what it is good for.
type Measured struct{ NoReadAhead, NoRangeMap bool }

// Simulated is what a simulation puts in the place of the system. It is zero
// elsewhere.
type Simulated struct {
	// Network makes the connections, Key is the process's identity, and Random its
	// chance.
	Network wire.Network
	Key     wire.Key
	Random  *rand.Rand
	// JournalFileBytes is behind how many bytes the write journal begins a new file.
	JournalFileBytes int64
}

const (
	// DefaultHoldFrom is the default of Options.HoldFrom. Below it the second trip to the
	// standbys costs more in bytes than the first one does in time.
	DefaultHoldFrom = 5 * time.Millisecond
	// DefaultAheadFrom is the default of Options.AheadFrom.
	DefaultAheadFrom = 2 * time.Millisecond
	// DefaultKnownFiles is Options.KnownFiles with DefaultMemory.
	DefaultKnownFiles = 1 << 16
)

func (o Options) withDefaults() Options {
	if o.OpTimeout == 0 {
		o.OpTimeout = route.DefaultLimit
	}
	if o.FlushTimeout == 0 {
		o.FlushTimeout = o.OpTimeout
	}
	if o.HoldFrom == 0 {
		o.HoldFrom = DefaultHoldFrom
	}
	if o.AheadFrom == 0 {
		o.AheadFrom = DefaultAheadFrom
	}
	o = o.withSizes()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Clock == nil {
		o.Clock = boottime.Default()
	}
	return o
}

// DefaultMemory is the default of Options.Memory. Its parts: what the kernel
// knows of 65,536 files takes 25 MB, names and attributes under leases take up to
// 110 MB, the content of recent files 64 MiB, and unsent writes 64 MiB while
// there are any.
const DefaultMemory = 300 << 20

// leastPart is which part of a default a small Options.Memory leaves at least.
const leastPart = 16

// withSizes fills in the limits that Options.Memory stands for.
func (o Options) withSizes() Options {
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	switch {
	case o.KnownFiles == 0:
		o.KnownFiles = o.part(DefaultKnownFiles)
	case o.KnownFiles < 0:
		o.KnownFiles = 0
	}
	set := func(v *int, d int) {
		if *v == 0 {
			*v = o.part(d)
		}
	}
	set(&o.Names.Objects, names.DefaultObjects)
	set(&o.Names.Entries, names.DefaultEntries)
	set(&o.Names.Inline, names.DefaultInline)
	return o
}

// part is the share of a default that Options.Memory leaves.
func (o *Options) part(n int) int {
	return max(n/leastPart, int(float64(n)*float64(o.Memory)/DefaultMemory))
}

// engine sizes the content engine.
func (o *Options) engine(e *content.Options) {
	if e.CacheBytes = o.MemoryCache; e.CacheBytes == 0 {
		e.CacheBytes = int64(o.part(content.DefaultCache))
	}
	if e.DirtyBytes = o.DirtyBytes; e.DirtyBytes == 0 {
		e.DirtyBytes = int64(o.part(content.DefaultDirty))
	}
	if e.ReadAhead == 0 {
		e.ReadAhead = o.ReadAhead
	}
	e.FlushAfter = o.FlushAfter
}
