package content

import (
	"log/slog"
	"time"

	"cartwheel.dev/clients/trace"
)

// Options sets up an Engine. The zero value of a field takes its default.
type Options struct {
	// DirtyBytes bounds the bytes written and not yet committed, over all
	// files (64 MiB). A writer that meets the bound waits for commits. An eighth
	// is kept for files of which no more than 256 KiB are dirty.
	DirtyBytes int64
	// CacheBytes bounds the memory of cached content and range maps (64 MiB).
	// What was used least recently goes first, content before maps.
	CacheBytes int64
	// StreamBytes is after how many dirty bytes of one file a commit of them
	// begins in the background (8 MiB).
	StreamBytes int64
	// FlushAfter is the age at which dirty bytes are committed without being
	// asked for (5 s).
	FlushAfter time.Duration
	// Soft gives a write up, and tells its writer, when the nodes do not take it
	// within CommitTimeout. Otherwise it stays dirty and is sent again until they
	// do, or refuse it.
	Soft bool
	// CommitTimeout bounds one upload of about 2 MiB with all of Remote's retries,
	// and, where Soft is set, one commit (5 min).
	CommitTimeout time.Duration
	// RetryAfter is the first pause before what did not get through is sent again
	// (50 ms). It doubles up to 2 s.
	RetryAfter time.Duration
	// ReadAhead bounds the read-ahead window of one handle (8 MiB, and a quarter
	// of the cache); negative switches read-ahead off.
	ReadAhead int64
	// Order is a number of this client's own. It says in which order the chunks of
	// a file are fetched where any will do, so that clients ask for different ones.
	Order uint64
	// NoRangeMap switches the range map off: each read is resolved at the node.
	NoRangeMap bool
	// Disk is the disk cache of content, or nil.
	Disk DiskCache
	// Journal is the write journal, or nil.
	Journal Journal
	// Wall is the clock that stamps writes.
	Wall func() time.Time
	// Trace counts the engine's own work; nil: nobody does.
	Trace  *trace.Recorder
	Logger *slog.Logger
}

// DiskCache keeps immutable content on this machine's disk.
type DiskCache interface {
	// Get returns the content of a key, verified, or false.
	Get(key []byte) ([]byte, bool)
	// Has reports whether there is content of a key, without reading it.
	Has(key []byte) bool
	// Forget drops the content of a key.
	Forget(key []byte)
	// Put keeps content; it may decline and never blocks on the disk.
	Put(key, data []byte)
}

// Defaults of Options.
const (
	DefaultDirty   = 64 << 20
	DefaultCache   = 64 << 20
	defaultStream  = 8 << 20
	defaultAhead   = 8 << 20
	defaultAge     = 5 * time.Second
	defaultTimeout = 5 * time.Minute
	defaultRetry   = 50 * time.Millisecond
)

func (o Options) withDefaults() Options {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.DirtyBytes, DefaultDirty)
	set(&o.CacheBytes, DefaultCache)
	set(&o.StreamBytes, min(defaultStream, max(o.DirtyBytes/4, 1)))
	set(&o.ReadAhead, defaultAhead)
	set((*int64)(&o.FlushAfter), int64(defaultAge))
	set((*int64)(&o.CommitTimeout), int64(defaultTimeout))
	set((*int64)(&o.RetryAfter), int64(defaultRetry))
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
