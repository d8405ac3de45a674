// Package meta keeps a node's versioned metadata in Pebble: for each slice, keys
// whose values carry the hybrid time at which they came to be, the newest under
// the key itself and the older ones beside it, and a plain area without
// versions. It keeps no log of its own: what was committed since the last Flush
// is lost in a crash, always as a whole suffix of the batches, and the node's
// journal is applied again behind the applied serial that every batch carries.
// A DB may be used by any number of goroutines; batches are committed by one.
package meta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const format = 1

// Options configure a DB; zero values take the defaults.
type Options struct {
	// FS is the file system that Pebble uses; nil is the operating system's.
	FS vfs.FS
	// BlockCacheBytes bounds Pebble's cache of blocks, 32 MiB. While three
	// memtables exist, the third takes its room.
	BlockCacheBytes int64
	// ValueCacheBytes bounds the cache of values in front of it, 24 MiB;
	// negative means none.
	ValueCacheBytes int64
	// MemtableBytes is the size of one memtable, 16 MiB; at most two and a
	// half of them exist before writers wait.
	MemtableBytes uint64
	// Relieve is called where the disk is full; it may give space back. nil does
	// nothing.
	Relieve func()
	// Logger hears what Pebble has to say; nil is silence.
	Logger *slog.Logger
	// Fatal is called when Pebble cannot go on: the process must end, for
	// what Pebble promised may not hold. It must not return; if it does, the
	// calling goroutine panics.
	Fatal func(error)
}

// DB is the open metadata.
type DB struct {
	p       *pebble.DB
	cache   *valueCache
	trouble *trouble
	patient *patient
	// memtable is the size of one memtable.
	memtable uint64
	spare    sync.Pool // of *rows
}

// Open opens the metadata in a directory, or makes it.
func Open(dir string, o Options) (*DB, error) {
	const op fault.Op = "meta.Open"
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.ValueCacheBytes == 0 {
		o.ValueCacheBytes = 24 << 20
	}
	if o.MemtableBytes == 0 {
		o.MemtableBytes = 16 << 20
	}
	// Pebble takes its memtables out of the cache's size: the one that is written
	// to, and the one that is flushed, or kept to be used again.
	blocks := pebble.NewCache(orDefault(o.BlockCacheBytes, 32<<20) + 2*int64(o.MemtableBytes))
	defer blocks.Unref()
	t := newTrouble()
	full := newPatient(o.FS, dir, o.Relieve)
	o.FS = vfs.OnDiskFull(o.FS, full.onFull)
	p, err := pebble.Open(dir, pebbleOptions(o, blocks, t, full))
	if err != nil {
		return nil, fault.Wrap(kindOf(err), op, dir, err)
	}
	full.opened()
	db := &DB{p: p, cache: newValueCache(o.ValueCacheBytes), trouble: t, patient: full, memtable: o.MemtableBytes}
	if err := db.checkFormat(dir); err != nil {
		return nil, joinClose(err, p)
	}
	return db, nil
}

func orDefault(v, d int64) int64 {
	if v == 0 {
		return d
	}
	return v
}

func joinClose(err error, p *pebble.DB) error {
	// The first error is the one to act on.
	_ = p.Close()
	return err
}

func pebbleOptions(o Options, blocks *pebble.Cache, t *trouble, full *patient) *pebble.Options {
	p := &pebble.Options{
		FS:                          o.FS,
		Cache:                       blocks,
		DisableWAL:                  true,
		MemTableSize:                o.MemtableBytes,
		MemTableStopWritesThreshold: 3,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                512,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      newLogger(o.Logger, o.Fatal, full.closed),
		EventListener:               &pebble.EventListener{BackgroundError: t.note},
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	for i := range p.Levels {
		p.Levels[i].BlockSize = 8 << 10
		// Large enough that a table has one index: a Get looks up one block less.
		p.Levels[i].IndexBlockSize = 512 << 10
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		p.Levels[i].FilterType = pebble.TableFilter
		if i < 2 {
			p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		}
	}
	return p
}

func (db *DB) checkFormat(dir string) error {
	key := []byte{areaFormat}
	v, closer, err := db.p.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		v := binary.LittleEndian.AppendUint32(nil, format)
		return fault.Wrap(fault.IO, "meta.Open", dir, db.p.Set(key, v, pebble.NoSync))
	}
	if err != nil {
		return fault.Wrap(fault.IO, "meta.Open", dir, err)
	}
	defer closer.Close()
	if got := binary.LittleEndian.Uint32(v); got != format {
		return fault.Errorf(fault.NewerVersion, "meta.Open", dir, "metadata of format %d, this program knows %d", got, format)
	}
	return nil
}

// Flush makes everything committed before it durable. With a full disk it
// returns NoSpace at once, and Pebble flushes when there is room again. A failed flush is tried
// again by the next one; until then Pebble holds the changes in memory.
func (db *DB) Flush(ctx context.Context) error {
	const op fault.Op = "meta.Flush"
	failed, full := db.trouble.watch(), db.patient.full()
	flushed, err := db.p.AsyncFlush()
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	// Pebble tries again by itself. The first error may be of a try that
	// began before this call; the second is not.
	for errors := 0; ; {
		select {
		case <-flushed:
			return nil
		case <-full:
			return fault.E(fault.NoSpace, op, "", "the disk is full")
		case <-failed:
			if errors++; errors == 2 {
				return fault.Wrap(kindOf(db.trouble.last()), op, "", db.trouble.last())
			}
			failed = db.trouble.watch()
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, op, "", ctx.Err())
		}
	}
}

// Applied returns the serial of the last entry of a slice that was applied, 0
// for none.
func (db *DB) Applied(s ids.Slice) (ids.Serial, error) {
	v, closer, err := db.p.Get(appendPrefix(nil, areaApplied, s))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fault.Wrap(fault.IO, "meta.Applied", fmt.Sprint(s), err)
	}
	defer closer.Close()
	return ids.Serial(binary.LittleEndian.Uint64(v)), nil
}

// Slices returns the slices that have an applied serial, ascending.
func (db *DB) Slices() ([]ids.Slice, error) {
	it, err := db.p.NewIter(&pebble.IterOptions{LowerBound: []byte{areaApplied}, UpperBound: []byte{areaApplied + 1}})
	if err != nil {
		return nil, fault.Wrap(fault.IO, "meta.Slices", "", err)
	}
	var out []ids.Slice
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		out = append(out, ids.Slice(k[1])<<16|ids.Slice(k[2])<<8|ids.Slice(k[3]))
	}
	return out, fault.Wrap(fault.IO, "meta.Slices", "", it.Close())
}

// Bytes returns how much disk the metadata takes.
func (db *DB) Bytes() int64 { return int64(db.p.Metrics().DiskSpaceUsage()) }

// closePatience bounds a close on a full disk.
const closePatience = 5 * time.Second

// Close flushes and closes. While the disk is full it does not flush: what was
// not flushed is in the journal.
func (db *DB) Close() error {
	if !db.patient.close() {
		flushed, err := db.p.AsyncFlush()
		full := false
		if err == nil {
			select {
			case <-flushed:
			case <-db.patient.refused: // Pebble would try again for ever
				full = true
			}
		}
		if !full {
			if e := db.p.Close(); err == nil {
				err = e
			}
			return fault.Wrap(fault.IO, "meta.Close", "", err)
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = db.p.Close() // what it could not write is in the journal
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C: // Pebble stands where its manifest finds no room: the process ends
	}
	return nil
}
