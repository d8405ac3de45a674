package past

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/history"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

func TestMoment_IsOfTheZoneAndIncludesItsTick(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	f := New(nil, Options{Clock: func() time.Duration { return 0 }, Wall: func() time.Time { return now }, Zone: time.FixedZone("", 3600)})
	for name, want := range map[string]time.Time{
		".Snapshot=-1h":                     now.Add(-time.Hour),
		".Snapshot=2026-01-31T12:00":        now.Add(-time.Hour),
		".Snapshot=2026-01-31T12:00:00Z":    now,
		".Snapshot=2026-01-31T12:00-01:00":  now.Add(time.Hour),
		".snapshot=2026-01-31T12:00:00.25Z": now.Add(time.Second / 4),
	} {
		q, is, err := isCue(name)
		if !is || err != nil {
			t.Fatalf("%s: %v, %v", name, is, err)
		}
		got, _, err := f.moment(t.Context(), q, 7, cue.Set{})
		if err != nil || got < hlc.FromWall(want) || got.Wall() != hlc.FromWall(want).Wall() || got.Logical() != logical {
			t.Errorf("%s is %v, %v, want the end of the tick of %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", ".Snapshots=x", ".Site=a", "Snapshot=x", ".Snap"} {
		if _, is, _ := isCue(name); is {
			t.Errorf("%q counts as the cue", name)
		}
	}
}

func TestAges_AreForgottenAfterARest(t *testing.T) {
	var g ages
	a := age{dir: 7, text: "-1h"}
	for _, c := range []struct {
		now  time.Duration
		at   hlc.Time
		want hlc.Time
	}{{0, 1, 1}, {ageLife - 1, 2, 1}, {2*ageLife - 2, 3, 1}, {3*ageLife - 2, 4, 4}} {
		if got := g.fix(a, c.at, c.now); got != c.want {
			t.Errorf("after %v it stands for %d, want %d", c.now, got, c.want)
		}
	}
	if got := g.fix(age{dir: 8, text: "-1h"}, 9, 0); got != 9 {
		t.Errorf("in another directory it stands for %d, want 9", got)
	}
	for i := range 3 * maxAges {
		g.fix(age{dir: ids.Object(i)}, 1, 0)
	}
	if len(g.by) > maxAges {
		t.Errorf("%d ages are remembered", len(g.by))
	}
}

// kernel takes what it is asked to give up.
type kernel struct {
	mount.Notifier
	released []mount.Inode
	drained  func()
}

func (k *kernel) Release(id, _ mount.Inode, _ string) { k.released = append(k.released, id) }
func (k *kernel) Drained(done func())                 { k.drained = done }

func TestTable_AsksTheKernelToGiveUpTheOldest(t *testing.T) {
	const limit = 8
	table, k := newTable(limit), &kernel{}
	table.notify(k)
	look := func(o ids.Object) *node { return table.look(place{object: o, at: 5}, mount.Root, "x") }
	first := look(1)
	if again := look(1); again != first || look(2) == first || !isPast(first.id) {
		t.Error("a place has several inodes, or two have one")
	}
	if other := table.look(place{object: 1, at: 6}, mount.Root, "x"); other == first {
		t.Error("an object is one inode at two times")
	}
	table.open(first.id, 1)
	for o := ids.Object(10); len(table.byID) <= limit; o++ {
		look(o)
	}
	if len(k.released) == 0 {
		t.Fatal("nothing is given up")
	}
	for _, id := range k.released {
		if id == first.id {
			t.Error("what is open is given up")
		}
		table.forget(id, 2)
	}
	k.drained()
	if n := len(table.byID); n > limit {
		t.Errorf("%d are known, want at most %d", n, limit)
	}
	table.forget(first.id, 2)
	if table.get(first.id) == nil {
		t.Error("what is open is forgotten")
	}
	table.open(first.id, -1)
	if table.get(first.id) != nil || len(table.byPlace) != len(table.byID) || table.order.Len() != len(table.byID) {
		t.Error("something is kept of what nobody needs")
	}
}

func TestBlocks_AreAskedForOnceAndBounded(t *testing.T) {
	b := newBlocks(100)
	ctx := context.Background()
	var asked int
	start, more := make(chan struct{}), make(chan struct{})
	fetch := func() ([]byte, error) {
		asked++
		close(start)
		<-more
		return make([]byte, 40), nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if data, err := b.get(ctx, blockKey{index: 1}, fetch); err != nil || len(data) != 40 {
				t.Errorf("got %d bytes, %v", len(data), err)
			}
		})
	}
	<-start
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.get(gone, blockKey{index: 1}, fetch); !fault.Is(err, fault.Canceled) {
		t.Errorf("an interrupted reader: got %v", err)
	}
	close(more)
	all.Wait()
	if asked != 1 {
		t.Errorf("it was asked for %d times", asked)
	}
	broken := errors.New("broken")
	if _, err := b.get(ctx, blockKey{index: 2}, func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the request's error", err)
	}
	if data, err := b.get(ctx, blockKey{index: 2}, func() ([]byte, error) { return make([]byte, 40), nil }); err != nil || len(data) != 40 {
		t.Errorf("after a failure: got %d bytes, %v", len(data), err)
	}
	b.put(blockKey{index: 3}, make([]byte, 40))
	if b.bytes > b.limit || len(b.byKey) != 2 || b.order.Len() != 2 {
		t.Errorf("%d bytes in %d blocks are kept, want at most %d", b.bytes, len(b.byKey), b.limit)
	}
	if _, kept := b.byKey[blockKey{index: 1}]; kept {
		t.Error("the oldest block is kept")
	}
}

func TestNumber_DiffersAtEachTime(t *testing.T) {
	seen := map[uint64]bool{7: true}
	for at := range hlc.Time(100) {
		n := number(7, at<<16|logical)
		if seen[n] {
			t.Fatalf("the inode number %d comes twice", n)
		}
		seen[n] = true
	}
}

func TestNode_KeepsTheTicketBesideAttributes(t *testing.T) {
	table := newTable(0)
	n := table.look(place{object: 7, at: 5}, mount.Root, "x")
	a := &pb.Attr{Object: 7, Size: 3}
	n.learn(a)
	n.note([]byte("ticket"))
	n.learn(a)
	if got, ticket := n.known(); got != a || string(ticket) != "ticket" {
		t.Errorf("got %v and %q, want both kept", got, ticket)
	}
}

// TestLines_TellWhatBecameOfAnObject reads records as actives list them.
func TestLines_TellWhatBecameOfAnObject(t *testing.T) {
	const tick = 1 << 16
	record := func(at, size, version uint64) *pb.HistoryResponse_Version {
		return &pb.HistoryResponse_Version{Hlc: at * tick, Object: 9, Mode: mount.TypeRegular, Size: size, Version: version}
	}
	gone := &pb.HistoryResponse_Version{Hlc: 90 * tick}
	for what, c := range map[string]struct {
		records           []*pb.HistoryResponse_Version
		start, end, since uint64
		want              string
	}{
		"made, written, touched": {[]*pb.HistoryResponse_Version{record(40, 7, 2), record(30, 7, 2), record(20, 3, 1), record(10, 0, 0)}, 10, 0, 1,
			"30 written 7, 20 written 3, 10 created 0"},
		"made apart, then named":   {[]*pb.HistoryResponse_Version{record(20, 3, 1), record(9, 0, 0)}, 10, 0, 1, "20 written 3, 10 created 0"},
		"renamed here":             {[]*pb.HistoryResponse_Version{record(20, 3, 1), record(10, 3, 1)}, 20, 0, 1, "20 renamed here 3"},
		"until it was removed":     {[]*pb.HistoryResponse_Version{gone, record(20, 3, 1), record(10, 0, 0)}, 10, 90, 1, "20 written 3, 10 created 0"},
		"until it was renamed":     {[]*pb.HistoryResponse_Version{record(30, 8, 2), record(25, 3, 1), record(10, 0, 0)}, 10, 25, 1, "10 created 0"},
		"from before":              {[]*pb.HistoryResponse_Version{record(40, 5, 2), record(10, 3, 1)}, 10, 0, 20, "40 written 5, 10 from earlier 3"},
		"of which nothing is left": {nil, 10, 50, 1, "10 created 0"},
	} {
		v := &pb.HistoryResponse_Version{Hlc: c.start * tick, Object: 9, Mode: mount.TypeRegular}
		var got []string
		for _, x := range lines(c.records, v, c.end*tick, c.since*tick) {
			got = append(got, fmt.Sprintf("%d %s %d", hlc.FromWall(x.Time)/tick, x.What, x.Size))
			q, _, err := cue.Parse(x.Snapshot)
			if at, _ := q.Moment(time.UTC); err != nil || at.Before(x.Time) || x.What != history.Earlier && !at.Equal(x.Time) {
				t.Errorf("%s: a version of %v is below %s, %v", what, x.Time, x.Snapshot, err)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}

// TestEchoes_RefusesThePresent has a node answer that knows no earlier times.
func TestEchoes_RefusesThePresent(t *testing.T) {
	n := &node{place: place{object: 7, at: 5}}
	if err := echoes(&pb.GetAttrResponse{}, n); !fault.Is(err, fault.NotSupported) {
		t.Errorf("an answer without the time: got %v, want NotSupported", err)
	}
	if err := echoes(&pb.ListResponse{AsOf: 5}, n); err != nil {
		t.Errorf("an answer of the time: got %v", err)
	}
}
