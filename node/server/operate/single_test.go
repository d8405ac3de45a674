package operate

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// single is a loop that a test turns by hand: one slice with one member, whose
// disk answers when the test says so.
type single struct {
	*Loop
	t     *testing.T
	now   replica.Time
	disk  *slowDisk
	store *fragile
	meta  *meta.DB
	fatal []error
}

const theSlice = ids.RootSlice

// newSingle returns a loop that leads its slice, formatted.
func newSingle(t *testing.T) *single {
	t.Helper()
	s := newEmptySingle(t)
	s.format()
	return s
}

// newEmptySingle returns a loop that leads a slice without an entry.
func newEmptySingle(t *testing.T) *single {
	t.Helper()
	db, err := meta.Open("meta", meta.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &single{t: t, now: time.Hour, disk: &slowDisk{}, store: &fragile{}, meta: db}
	core := replica.New(replica.Config{Self: "n", Incarnation: 1, Boot: 1, Start: s.now, Lease: 3 * time.Second})
	s.Loop = New(Options{
		Self: "n", Core: core, Clock: func() time.Duration { return s.now }, HLC: hlc.New(time.Now), Disk: s.disk, Meta: db,
		Chunks: s.store, Leases: noLeases{}, Network: noNetwork{}, Helpers: noHelpers{}, Full: func(ids.Slice) bool { return false },
		Fatal: func(err error) { s.fatal = append(s.fatal, err) }, TickEvery: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	s.Learn([]geoconfig.SliceRow{{ID: theSlice, Epoch: 1, Active: "n", Policy: geoconfig.Policy{Level: 1},
		Members: []geoconfig.Member{{Node: "n", State: geoconfig.Normal, Incarnation: 1}}}})
	for range 100 {
		s.wait(50 * time.Millisecond)
		s.disk.finish(nil)
		if s.Published(theSlice).Role == replica.RoleLeading {
			return s
		}
	}
	t.Fatal("the loop does not lead its slice")
	return nil
}

// format gives the slice its first entry, and lets the disk take it.
func (s *single) format() {
	s.t.Helper()
	formatted := false
	s.Format(theSlice, 1, func(err error) {
		if err != nil {
			s.t.Error(err)
		}
		formatted = true
	})
	s.settle()
	if !formatted {
		s.t.Fatal("the slice was not formatted")
	}
}

// wait lets time pass and turns the loop once.
func (s *single) wait(d time.Duration) {
	s.now += d
	s.turn(true)
}

// contentBytes is the length of the files' content, enough for chunks.
const contentBytes = 9000

// create hands in an operation that makes a file, and returns its answer once
// there is one.
func (s *single) create(name string, number uint64) *Answer {
	return s.hand(number, nil, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{
		Dir: uint64(ids.RootObject), Name: []byte(name), Mode: 0o100644}}})
}

// write hands in an operation that gives a file content.
func (s *single) write(object, number uint64) *Answer {
	return s.hand(number, make([]byte, contentBytes), &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: object,
		Extents: []*pb.Extent{{Length: contentBytes, Source: &pb.Extent_BodyOffset{}}}}}})
}

func (s *single) hand(number uint64, body []byte, op *pb.Operation) *Answer {
	op.TimeNs = 2
	a := &Answer{Err: fault.E(fault.Again, "test", "", "not answered yet")}
	s.Operate(&Operation{Slice: theSlice, Client: 9, Number: number, Lowest: number, Trusted: true, Op: op, Body: body,
		Done: func(_ *Operation, answer Answer) { *a = answer }})
	return a
}

// settle lets the disk answer until nothing waits for it.
func (s *single) settle() {
	for s.wait(0); len(s.disk.finish(nil)) > 0; s.wait(0) {
	}
}

// slowDisk is a journal that answers when it is told to.
type slowDisk struct {
	mu     sync.Mutex // guards below
	refuse error      // of the next append
	room   error
	queue  []pendingAppend
}

type pendingAppend struct {
	records []replica.Record
	done    func(error)
}

func (d *slowDisk) Append(records []replica.Record, done func(error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refuse; err != nil {
		d.refuse = nil
		return err
	}
	d.queue = append(d.queue, pendingAppend{append([]replica.Record(nil), records...), done})
	return nil
}

func (d *slowDisk) Room(int) error { return d.room }

// finish answers all appends that wait, and returns their records.
func (d *slowDisk) finish(err error) (all []replica.Record) {
	d.mu.Lock()
	queue := d.queue
	d.queue = nil
	d.mu.Unlock()
	for _, p := range queue {
		all = append(all, p.records...)
		p.done(err)
	}
	return all
}

// fragile has every chunk, and fails to keep the next where it is told to.
type fragile struct {
	fail error
	puts int
}

func (f *fragile) Node(a chunk.Address) ([]byte, error) {
	return nil, fault.E(fault.Missing, "test", a.String(), "")
}
func (f *fragile) Has(chunk.Address) bool { return true }
func (f *fragile) PutInline([]tree.Chunk) error {
	f.puts++
	err := f.fail
	f.fail = nil
	return err
}

type noLeases struct{}

func (noLeases) Change(ids.Slice, uint64, []tree.Touch, func([]tree.Holder)) (uint64, bool, bool) {
	return 1, true, false
}
func (noLeases) Changed(uint64)                                   {}
func (noLeases) Born(uint64, ids.Epoch, []ids.Object) []*pb.Grant { return nil }
func (noLeases) Unborn([]*pb.Grant)                               {}
func (noLeases) Void(ids.Slice)                                   {}

type noNetwork struct{}

func (noNetwork) Send(string, wire.Class, wire.Method, ...[]byte) error { return nil }
func (noNetwork) MaxPayload(wire.Class) int                             { return 1 << 20 }

type noHelpers struct{}

func (noHelpers) Swap(replica.Swap) {}
func (noHelpers) Fetch(ids.Slice, ids.Serial, ids.Epoch, []chunk.Address) {
}
func (noHelpers) Read(replica.Read)         {}
func (noHelpers) Transfer(replica.Transfer) {}
func (noHelpers) Yield(ids.Slice)           {}
func (noHelpers) Role(replica.Role, bool)   {}
func (noHelpers) Removed(ids.Slice)         {}
