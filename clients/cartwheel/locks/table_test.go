package locks

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

var silent = slog.New(slog.DiscardHandler)

var file = ids.NewObject(2, 7)

func write(owner mount.LockOwner, start, end uint64) mount.Lock {
	return mount.Lock{Type: mount.WriteLock, Owner: owner, Start: start, End: end}
}

// ranges lists what an owner holds of the file.
func ranges(t *table, owner mount.LockOwner) (out [][2]uint64) {
	for _, h := range t.which(file, func(h *holding) bool { return h.lock.Owner == owner }) {
		out = append(out, [2]uint64{h.lock.Start, h.lock.End})
	}
	return out
}

func TestTable_CutsRanges(t *testing.T) {
	table := newTable()
	table.set(file, 1, write(5, 0, 99), lockSession{"n", 1})
	table.set(file, 1, write(6, 10, 19), lockSession{"n", 1})
	undo := write(5, 10, 19)
	undo.Type = mount.Unlock
	table.set(file, 0, undo, lockSession{})
	if got := ranges(&table, 5); len(got) != 2 || got[0] != [2]uint64{0, 9} || got[1] != [2]uint64{20, 99} {
		t.Errorf("after a hole owner 5 holds %v", got)
	}
	if got := ranges(&table, 6); len(got) != 1 {
		t.Errorf("another owner holds %v", got)
	}
	for _, owner := range []mount.LockOwner{5, 6} {
		undo.Owner, undo.Start, undo.End = owner, 0, mount.LockEnd
		table.set(file, 0, undo, lockSession{})
	}
	if len(table.held) != 0 || table.slices() != nil {
		t.Errorf("after all is given up, %v is held", table.held)
	}
}

func TestTable_WaitsForReleases(t *testing.T) {
	table := newTable()
	done := table.giving(file)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := table.settled(ctx, file); !fault.Is(err, fault.Interrupted) {
		t.Errorf("a release under way: %v, want Interrupted", err)
	}
	done()
	if err := table.settled(t.Context(), file); err != nil {
		t.Error(err)
	}
	if len(table.going) != 0 {
		t.Error("a release that is over is kept")
	}
}

func TestMayCommit_WaitsWhileLocksAreInDoubt(t *testing.T) {
	k := New(Options{})
	k.table.set(file, 1, write(5, 0, 99), lockSession{"n", 1})
	known := k.table.doubt(file.Slice())
	if known == nil || k.table.doubt(file.Slice()) != nil {
		t.Fatal("a slice is not in doubt exactly once")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := k.MayCommit(ctx, file); !fault.Is(err, fault.TimedOut) {
		t.Errorf("in doubt: %v, want TimedOut", err)
	}
	if err := k.MayCommit(t.Context(), file+1); err != nil {
		t.Errorf("a file without locks waits: %v", err)
	}
	known()
	if err := k.MayCommit(t.Context(), file); err != nil {
		t.Errorf("after the doubt: %v", err)
	}
}

func TestLost_FailsTheHandleAndOneCommit(t *testing.T) {
	k := New(Options{IsDirty: func(ids.Object) bool { return true }, Logger: silent})
	k.table.set(file, 3, write(5, 0, 99), lockSession{"n", 1})
	k.lose(func(o ids.Object, _ *holding) bool { return o == file })
	if err := k.Check(3, file); !fault.Is(err, fault.LostLock) {
		t.Errorf("a write: %v, want LostLock", err)
	}
	if err := k.Check(4, file); err != nil {
		t.Errorf("a write through another handle: %v", err)
	}
	if err := k.MayCommit(t.Context(), file); !fault.Is(err, fault.LostLock) {
		t.Errorf("a commit: %v, want LostLock", err)
	}
	if err := k.MayCommit(t.Context(), file); err != nil {
		t.Errorf("the next commit: %v", err)
	}
	if k.table.closed(3); k.Lost() != 0 {
		t.Error("a closed handle is kept")
	}
}

func TestWire_KeepsWholeAndRange(t *testing.T) {
	for _, l := range []mount.Lock{
		write(5, 3, 9),
		{Type: mount.ReadLock, Owner: 6, Start: 1, End: mount.LockEnd, PID: 4},
		{Type: mount.WriteLock, Owner: 7, Whole: true, Start: 0, End: mount.LockEnd},
	} {
		if got := fromWire(toWire(file, l)); got != l {
			t.Errorf("got %+v, want %+v", got, l)
		}
	}
}
