package command

import (
	"errors"
	"fmt"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
)

// limitFlags are the limits of a mount that its user may meet. Zero leaves one to
// --memory, or to its default.
type limitFlags struct {
	DirtyBytes  int64         `name:"dirty-bytes" help:"Bytes written and not yet at the nodes that the mount holds in memory; beyond that writers wait (0: by --memory)." default:"0"`
	CacheBytes  int64         `name:"memory-cache" help:"Bytes of content and range maps that the mount keeps in memory (0: by --memory)." default:"0"`
	ReadAhead   int64         `name:"read-ahead" help:"Bytes that the mount reads ahead in one open file." default:"8388608"`
	FlushAfter  time.Duration `name:"flush-after" help:"Age at which the mount sends written bytes without a program's request." default:"5s"`
	KnownFiles  int           `name:"known-files" help:"Files that the kernel may know at a time before it is asked to forget some (0: by --memory)." default:"0"`
	CachedNames int           `name:"cached-names" help:"Names kept under leases, and as many attributes (0: by --memory)." default:"0"`
	InlineBytes int           `name:"inline-bytes" help:"Bytes of small files kept with their attributes (0: by --memory)." default:"0"`
	UntoldFiles int           `name:"untold-files" help:"New files that the mount has not published; beyond that it makes each at its node at once. Calls wait where eight times as many other operations on names are not sent." default:"1024"`
	InFlight    int           `name:"in-flight" help:"Operations in flight at a time on one slice; further ones wait." default:"512"`
}

// The bounds of what a limit may be.
const (
	leastBytes = 1 << 20
	mostBytes  = 1 << 40
)

// check reports all limits that make no sense.
func (l *limitFlags) check() error {
	var bad []error
	between := func(flag string, n, least, most int64, zero bool) {
		if (n != 0 || !zero) && (n < least || n > most) {
			bad = append(bad, fault.E(fault.Usage, "", flag, fmt.Sprintf("%d is not between %d and %d", n, least, most)))
		}
	}
	between("--dirty-bytes", l.DirtyBytes, leastBytes, mostBytes, true)
	between("--memory-cache", l.CacheBytes, leastBytes, mostBytes, true)
	between("--read-ahead", l.ReadAhead, leastBytes/4, mostBytes, false)
	between("--known-files", int64(l.KnownFiles), 1024, 1<<31, true)
	between("--cached-names", int64(l.CachedNames), 1024, 1<<31, true)
	between("--inline-bytes", int64(l.InlineBytes), leastBytes, mostBytes, true)
	between("--untold-files", int64(l.UntoldFiles), 1, 1<<20, false)
	between("--in-flight", int64(l.InFlight), 1, route.MaxInFlight, false)
	if l.FlushAfter < 10*time.Millisecond || l.FlushAfter > time.Hour {
		bad = append(bad, fault.E(fault.Usage, "", "--flush-after", fmt.Sprintf("%v is not between 10ms and 1h", l.FlushAfter)))
	}
	return fault.Wrap(fault.Usage, "command.mount", "", errors.Join(bad...))
}

// apply sets the limits.
func (l *limitFlags) apply(o *cartwheel.Options) {
	o.DirtyBytes, o.MemoryCache, o.ReadAhead, o.FlushAfter = l.DirtyBytes, l.CacheBytes, l.ReadAhead, l.FlushAfter
	o.KnownFiles, o.UntoldFiles, o.InFlight = l.KnownFiles, l.UntoldFiles, l.InFlight
	o.Names.Objects, o.Names.Entries, o.Names.Inline = l.CachedNames, l.CachedNames, l.InlineBytes
}
