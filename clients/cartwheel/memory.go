package cartwheel

import (
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/names"
)

// DefaultMemory is the default of Options.Memory. Its parts: what the kernel
// knows of 65,536 files takes 25 MB, names and attributes under leases take up to
// 110 MB, the content of recent files 64 MiB, and unsent writes 64 MiB while
// there are any.
const DefaultMemory = 300 << 20

// leastPart is which part of a default a small Options.Memory leaves at least.
const leastPart = 16

// sized fills in the limits that Options.Memory stands for.
func (o Options) sized() Options {
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
