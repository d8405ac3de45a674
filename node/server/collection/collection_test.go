package collection

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
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
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// world is what a collector sees, as a test sets it.
type world struct {
	clock     time.Duration
	wall      time.Time
	vouched   hlc.Time
	aside     bool
	old       bool // a member's program cannot forget
	short     bool // of space
	failing   bool // proposals do
	snapshots []hlc.Time
	heard     time.Duration // when the list of those was read, before now
	unheard   bool          // it was never
	done      []*pb.Collect
	db        *meta.DB
}

func (w *world) Ask(_ context.Context, f func(*replica.Node, replica.Time)) error {
	f(replica.New(replica.Config{Self: "a", Start: w.clock}), w.clock)
	return nil
}

func newCollector(t *testing.T) (*world, *Collector) {
	t.Helper()
	db, err := meta.Open("meta", meta.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w := &world{clock: time.Hour, wall: time.Unix(1_000_000_000, 0), db: db}
	return w, New(Options{
		Self: "a", Loop: w, Meta: db, Committed: func(s ids.Slice) tree.View { return operate.Committed(db, s) },
		Propose: func(_ context.Context, _ ids.Slice, op *pb.Operation) error {
			if w.failing {
				return fault.E(fault.TimedOut, "", "", "")
			}
			w.done = append(w.done, op.GetCollect())
			return nil
		},
		Snapshots: func() Snapshots {
			if w.unheard {
				return Snapshots{}
			}
			return Snapshots{Times: w.snapshots, Heard: w.clock - w.heard, Known: true}
		},
		Forgets: func(*geoconfig.SliceRow) bool { return !w.old },
		Aside:   func() bool { return w.aside }, Vouched: func() hlc.Time { return w.vouched }, Short: func() bool { return w.short }, ShortFor: func(ids.Slice) bool { return w.short },
		HLC: hlc.New(func() time.Time { return w.wall }), Terms: Terms{Retention: 24 * time.Hour, UploadGrace: time.Hour, Lease: 3 * time.Second},
		Clock: func() time.Duration { return w.clock }, Logger: slog.New(slog.DiscardHandler),
	})
}

// put keeps a row of references.
func (w *world) put(t *testing.T, s ids.Slice, a chunk.Address, count byte, at hlc.Time) {
	t.Helper()
	b := w.db.NewBatch()
	err := b.Set(s, tree.RefsKey(a), binary.BigEndian.AppendUint64([]byte{count}, uint64(at)))
	if err == nil {
		err = b.SetApplied(s, 1)
	}
	if err == nil {
		err = b.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func rowOf(states ...geoconfig.MemberState) *geoconfig.SliceRow {
	r := &geoconfig.SliceRow{ID: 1, Active: "a"}
	for i, s := range states {
		r.Members = append(r.Members, geoconfig.Member{Node: ids.Node([]string{"a", "b", "c"}[i]), State: s})
	}
	return r
}

// TestHorizon_GoesByNoWallClockAlone sets this machine's clock an hour ahead: nothing is
// collected early, neither at once nor an hour later.
func TestHorizon_GoesByNoWallClockAlone(t *testing.T) {
	w, c := newCollector(t)
	row := rowOf(geoconfig.Normal)
	true0 := w.wall
	if h := c.horizon(t.Context(), row); h != 0 {
		t.Fatalf("with nothing to go by the horizon is %v", h)
	}
	c.horizons.slices[1] = anchor{hlc.FromWall(true0.Add(-time.Minute)), w.clock}
	want := func(what string, at time.Time) {
		t.Helper()
		got := c.horizon(t.Context(), row).Wall().Add(24 * time.Hour)
		if off := got.Sub(at).Abs(); off > time.Millisecond {
			t.Errorf("%s: the horizon is that of %v, want %v", what, got, at)
		}
	}
	w.wall = true0.Add(time.Hour)
	want("a clock an hour ahead", true0.Add(-time.Minute))
	w.clock += 2 * time.Hour
	w.wall = w.wall.Add(2 * time.Hour)
	want("two hours later", true0.Add(2*time.Hour-time.Minute))
	w.vouched = hlc.FromWall(true0.Add(2*time.Hour + time.Second))
	want("another machine knows the time", true0.Add(2*time.Hour+time.Second))
	w.clock += time.Minute
	w.wall = true0.Add(time.Hour) // set back, but the hybrid clock has been further
	want("a clock set back", true0.Add(2*time.Hour+time.Minute+time.Second))
}

// TestHorizon_StandsBehindTheListOfSnapshots lets the list get old.
func TestHorizon_StandsBehindTheListOfSnapshots(t *testing.T) {
	w, c := newCollector(t)
	w.vouched = hlc.FromWall(w.wall)
	row := rowOf(geoconfig.Normal)
	want := func(what string, age time.Duration) {
		t.Helper()
		if got := w.wall.Sub(c.horizon(t.Context(), row).Wall()).Round(time.Millisecond); got != age {
			t.Errorf("%s: the horizon is %v ago, want %v", what, got, age)
		}
	}
	want("heard just now", 24*time.Hour)
	w.heard = 30 * time.Hour
	w.clock += 40 * time.Hour
	w.vouched = hlc.FromWall(w.wall)
	want("heard 30 hours ago", 30*time.Hour+12*time.Second)
	w.short = true
	want("with disks short of space", 30*time.Hour+12*time.Second)
	w.unheard = true
	if h := c.horizon(t.Context(), row); h != 0 {
		t.Errorf("never heard: the horizon is %v, want none", h)
	}
}

// TestStep_KeepsWhatSnapshotsNeed has rows of chunks that snapshots need and do not.
func TestStep_KeepsWhatSnapshotsNeed(t *testing.T) {
	w, c := newCollector(t)
	w.vouched = hlc.FromWall(w.wall)
	ago := func(h int) hlc.Time { return hlc.FromWall(w.wall.Add(-time.Duration(h) * time.Hour)) }
	before, seen, after := chunk.Sum([]byte("before")), chunk.Sum([]byte("seen")), chunk.Sum([]byte("after"))
	w.snapshots = []hlc.Time{ago(50)}
	row := rowOf(geoconfig.Normal, geoconfig.Normal)
	for a, span := range map[chunk.Address][2]hlc.Time{before: {ago(70), ago(60)}, seen: {ago(55), ago(45)}, after: {ago(40), ago(30)}} {
		w.putSince(t, a, span[0], span[1])
	}
	c.step(t.Context(), row)
	if len(w.done) != 1 || len(w.done[0].Unused) > 0 || !w.done[0].Kept {
		t.Fatalf("got %v, want the list of kept times first", w.done)
	}
	w.done = nil
	w.set(t, []byte{'y'}, []byte{1})
	c.step(t.Context(), row)
	if len(w.done) != 1 || len(w.done[0].Unused) != 2*chunk.AddressSize || bytes.Contains(w.done[0].Unused, seen[:]) ||
		!w.done[0].Kept || len(w.done[0].Keeps) != 1 || hlc.Time(w.done[0].Keeps[0]) != w.snapshots[0] {
		t.Fatalf("got %v, want all but what the snapshot needs", w.done)
	}
	w.done, w.snapshots = nil, nil
	c.step(t.Context(), row)
	if len(w.done) != 1 || !bytes.Contains(w.done[0].Unused, seen[:]) {
		t.Errorf("without the snapshot: got %v, want the rest at once", w.done)
	}
}

// putSince keeps a row of references whose count was above zero for a time.
func (w *world) putSince(t *testing.T, a chunk.Address, since, until hlc.Time) {
	t.Helper()
	w.set(t, tree.RefsKey(a), binary.AppendUvarint(binary.BigEndian.AppendUint64([]byte{0}, uint64(until)), uint64(until-since)))
}

// set writes a row without versions.
func (w *world) set(t *testing.T, key, value []byte) {
	t.Helper()
	b := w.db.NewBatch()
	if err := b.Set(1, key, value); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestFloor_RetainsLongEnoughForMembersThatLag(t *testing.T) {
	_, c := newCollector(t)
	row := rowOf(geoconfig.Normal)
	for _, x := range []struct {
		retention, grace, lease, coherence, want time.Duration
	}{
		{24 * time.Hour, time.Hour, 3 * time.Second, 0, 24 * time.Hour},
		{0, time.Hour, 3 * time.Second, 0, time.Hour},
		{0, time.Second, 3 * time.Second, 0, 12 * time.Second},
		{0, time.Second, 3 * time.Second, 10 * time.Minute, 20 * time.Minute},
	} {
		c.o.Retention, c.o.UploadGrace, c.o.Lease, row.Policy.Coherence = x.retention, x.grace, x.lease, x.coherence
		if got := c.o.Floor(row); got != x.want {
			t.Errorf("%+v: got %v", x, got)
		}
	}
}

func TestLeast_IsWhatStaysWhereSpaceIsShort(t *testing.T) {
	row := rowOf(geoconfig.Normal)
	for _, x := range []struct{ retention, least, grace, want time.Duration }{
		{24 * time.Hour, 0, time.Hour, time.Hour},
		{24 * time.Hour, 5 * time.Hour, time.Hour, 5 * time.Hour},
		{24 * time.Hour, 24 * time.Hour, time.Hour, 24 * time.Hour},
		{2 * time.Hour, 5 * time.Hour, time.Hour, 2 * time.Hour},
		{24 * time.Hour, 5 * time.Hour, 7 * time.Hour, 7 * time.Hour},
	} {
		terms := Terms{Retention: x.retention, RetentionLeast: x.least, UploadGrace: x.grace, Lease: time.Second}
		if got := terms.Least(row); got != x.want {
			t.Errorf("%+v: got %v", x, got)
		}
	}
}

// TestStep_CollectsOnlyWhileAllMembersAreNormal offers an unused row in each state of a
// member.
func TestStep_CollectsOnlyWhileAllMembersAreNormal(t *testing.T) {
	w, c := newCollector(t)
	old := hlc.FromWall(w.wall.Add(-25 * time.Hour))
	unused, young, used := chunk.Sum([]byte("unused")), chunk.Sum([]byte("young")), chunk.Sum([]byte("used"))
	w.put(t, 1, unused, 0, old)
	w.put(t, 1, young, 0, hlc.FromWall(w.wall.Add(-23*time.Hour)))
	w.put(t, 1, used, 1, old)
	w.vouched = hlc.FromWall(w.wall)
	for _, state := range []geoconfig.MemberState{geoconfig.Failed, geoconfig.Recovering, geoconfig.Migrating} {
		if c.step(t.Context(), rowOf(geoconfig.Normal, state)) || len(w.done) > 0 {
			t.Fatalf("with a member in state %v: %v", state, w.done)
		}
	}
	c.step(t.Context(), rowOf(geoconfig.Normal, geoconfig.Normal))
	if len(w.done) != 1 || string(w.done[0].Unused) != string(unused[:]) || len(w.done[0].Dead) > 0 {
		t.Fatalf("got %v, want the unused row alone", w.done)
	}
	if h := hlc.Time(w.done[0].Horizon); h < old || h > hlc.FromWall(w.wall.Add(-24*time.Hour)) {
		t.Errorf("the horizon is %v", h)
	}
}

// TestStep_ForgetsVersions has versions of a key, some of which nothing retains, and a
// member whose program is too old to be told.
func TestStep_ForgetsVersions(t *testing.T) {
	w, c := newCollector(t)
	w.vouched = hlc.FromWall(w.wall)
	for i := range 5 {
		b := w.db.NewBatch()
		at := hlc.FromWall(w.wall.Add(time.Duration(i-28) * time.Hour))
		err := b.Put(1, []byte("ikey"), []byte{byte(i)}, uint64(at))
		if err == nil {
			err = b.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	row := rowOf(geoconfig.Normal, geoconfig.Normal)
	w.old = true
	for range 3 {
		c.step(t.Context(), row)
	}
	if len(w.done) > 0 {
		t.Fatalf("a program that is too old is told %v", w.done)
	}
	w.old = false
	for range 3 {
		c.step(t.Context(), row)
	}
	if len(w.done) != 1 || string(w.done[0].ForgetFrom) > "ikey" || string(w.done[0].ForgetTo) <= "ikey" {
		t.Fatalf("got %v, want one collection of versions", w.done)
	}
}

// TestNeeded_AsksEverythingThatMayNameAChunk has chunks named by rows of two slices.
func TestNeeded_AsksEverythingThatMayNameAChunk(t *testing.T) {
	w, c := newCollector(t)
	list := []chunk.Address{chunk.Sum([]byte("1")), chunk.Sum([]byte("2")), chunk.Sum([]byte("none")), chunk.Sum([]byte("zero"))}
	w.put(t, 1, list[0], 1, 5)
	w.put(t, 7, list[1], 3, 5)
	w.put(t, 7, list[3], 0, 5) // it may be of use to a version that is retained
	needed, err := c.needed(t.Context(), list)
	if err != nil || !needed[0] || !needed[1] || needed[2] || !needed[3] {
		t.Errorf("got %v, %v", needed, err)
	}
	w.aside = true
	if _, err := c.needed(t.Context(), list); !fault.Is(err, fault.Again) {
		t.Errorf("with operations beside the log: got %v, want Again", err)
	}
	named := map[chunk.Address]bool{}
	noteNamed(named, &replica.Entry{Chunks: chunk.AppendAddresses(nil, list[1], list[2])})
	if len(named) != 2 || !named[list[1]] || !named[list[2]] {
		t.Errorf("an entry names %v", named)
	}
}
