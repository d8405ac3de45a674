package operate

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// lackingPacks have no chunk.
type lackingPacks struct{ fragile }

func (*lackingPacks) Has(chunk.Address) bool { return false }

// fetcher notes what is to be fetched.
type fetcher struct {
	noHelpers
	asked *[]replica.EntryID
}

func (f fetcher) Fetch(_ ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) {
	if len(missing) == 1 {
		*f.asked = append(*f.asked, replica.EntryID{Serial: serial, Epoch: epoch})
	}
}

// standby is one life of a loop whose node follows m in a slice, and has no
// chunks.
type standby struct {
	single
	asked []replica.EntryID
}

func newStandby(t *testing.T, db *meta.DB, r *replica.Restored) *standby {
	t.Helper()
	s := &standby{single: single{t: t, now: time.Hour, disk: &slowDisk{}, meta: db}}
	core := replica.New(replica.Config{Self: "n", Incarnation: 1, Boot: 1, Start: s.now, Lease: 3 * time.Second})
	if err := core.Restore(s.now, *r); err != nil {
		t.Fatal(err)
	}
	s.Loop = New(Options{
		Self: "n", Core: core, Clock: func() time.Duration { return s.now }, HLC: hlc.New(time.Now), Disk: s.disk, Meta: db,
		Chunks: &lackingPacks{}, Leases: noLeases{}, Network: noNetwork{}, Helpers: fetcher{asked: &s.asked},
		Full:  func(ids.Slice) bool { return false },
		Fatal: func(err error) { t.Error(err) }, TickEvery: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err := s.Restored(r); err != nil {
		t.Fatal(err)
	}
	return s
}

// noted are the entries of which the metadata says that chunks are missing.
func noted(t *testing.T, db *meta.DB) (all []replica.EntryID) {
	t.Helper()
	if err := replog.EachUnheld(db, theSlice, func(e replica.EntryID, _ []byte) { all = append(all, e) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUnheld_NextLifeFetchesMissingChunks has a standby apply committed entries
// before it has their chunks. Its next life fetches them too, and counts as one
// that lacks them until then.
func TestUnheld_NextLifeFetchesMissingChunks(t *testing.T) {
	db, err := meta.Open("meta", meta.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	row := geoconfig.SliceRow{ID: theSlice, Epoch: 1, Active: "m", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "m", State: geoconfig.Normal, Incarnation: 1}, {Node: "n", State: geoconfig.Normal, Incarnation: 1}}}
	first := newStandby(t, db, &replica.Restored{Row: row})
	address := chunk.Sum([]byte("content"))
	e := &replica.Entry{Slice: theSlice, Serial: 1, Epoch: 1, Time: 1 << 16, Chunks: address[:],
		Data: tree.AppendData(nil, []tree.Mutation{{Key: []byte("\x7fkey"), Value: []byte("value")}}, nil)}
	first.Receive("m", []*replica.Message{{Kind: replica.Append, Slice: theSlice, Epoch: 1, Row: &row, Boot: 3, Entries: []*replica.Entry{e}, Commit: 1}})
	first.settle()
	want := []replica.EntryID{{Serial: 1, Epoch: 1}}
	if applied, err := db.Applied(theSlice); err != nil || applied != 1 {
		t.Fatalf("applied up to %d, %v", applied, err)
	}
	if !slices.Equal(first.asked, want) || !slices.Equal(noted(t, db), want) {
		t.Errorf("fetched: %v, noted: %v, want %v", first.asked, noted(t, db), want)
	}

	second := newStandby(t, db, &replica.Restored{Row: row, Base: 1, BaseEpoch: 1, BaseTime: 1 << 16, Applied: 1, ClientsAt: 1, Unheld: noted(t, db)})
	if !slices.Equal(second.asked, want) {
		t.Errorf("the next life has fetched: %v, want %v", second.asked, want)
	}
	if !second.o.Core.Awaits(theSlice, 1, 1) {
		t.Error("the next life does not await the chunks")
	}
	second.Held(theSlice, 1, 1)
	second.settle()
	if second.o.Core.Awaits(theSlice, 1, 1) || len(noted(t, db)) != 0 {
		t.Errorf("with the chunks here they are awaited still; noted: %v", noted(t, db))
	}
}
