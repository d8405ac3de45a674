package tree

import (
	"encoding/binary"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// rowsView is a view of rows in memory.
type rowsView map[string][]byte

func (v rowsView) Get(key []byte) ([]byte, bool, error) {
	value, ok := v[string(key)]
	return value, ok, nil
}

func (v rowsView) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	for key, value := range v {
		if key >= string(from) && key < string(to) && !fn([]byte(key), value) {
			break
		}
	}
	return nil
}

// TestAsOf_WaitsForIntentsThatMayBeOfThatTime reads a directory with a name that an
// intent holds, as of times before and after it took the lock.
func TestAsOf_WaitsForIntentsThatMayBeOfThatTime(t *testing.T) {
	const prepared = hlc.Time(100)
	dir, intent := ids.NewObject(2, 20), NewIntent(3, 7)
	lock := LockKey{Object: dir, Name: []byte("x")}
	record := appendLocks(binary.BigEndian.AppendUint64(nil, uint64(prepared)), []LockKey{lock})
	held := binary.BigEndian.AppendUint64(nil, uint64(intent))
	locked := rowsView{
		string(lock.key()):                        held,
		string(intentKey(keyPart, intent)):        record,
		string([]byte{keyState}):                  appendState(nil, &State{Next: 16, Locks: 1}),
		string(nameKey(keyEntry, dir, lock.Name)): appendEntries(nil, Entry{Object: dir, Creation: 1}),
	}
	then := rowsView{string(nameKey(keyEntry, dir, lock.Name)): appendEntries(nil, Entry{Object: 77, Creation: 1})}
	ended := rowsView{}
	for key, value := range locked {
		if key != string(intentKey(keyPart, intent)) {
			ended[key] = value
		}
	}
	for _, c := range []struct {
		what string
		now  rowsView
		at   hlc.Time
		held bool
	}{
		{"before the lock", locked, prepared - 1, false},
		{"at its time", locked, prepared, true},
		{"after it", locked, prepared + 1, true},
		{"where the intent has just ended", ended, prepared - 1, true},
	} {
		v := AsOf(c.now, then, c.at)
		if got, err := Locked(v, dir, lock.Name); err != nil || (got == intent) != c.held {
			t.Errorf("%s: the name is held by %v, %v, want held: %v", c.what, got, err, c.held)
		}
		if got, err := NamesLocked(v, dir); err != nil || (got == intent) != c.held {
			t.Errorf("%s: a name is held by %v, %v, want held: %v", c.what, got, err, c.held)
		}
		if e, err := Lookup(v, dir, lock.Name); !c.held && (err != nil || e.Object != 77) {
			t.Errorf("%s: the name means %v, %v, want what it meant then", c.what, e, err)
		}
	}
}

// TestWholeSince_RisesWithCollections wants the time to be that of the format, and then
// the horizon of the last collection that took something.
func TestWholeSince_RisesWithCollections(t *testing.T) {
	p := newPair(t, 1, 1)
	q := p.places[ids.RootSlice]
	since := func() hlc.Time {
		t.Helper()
		at, ok, err := WholeSince(q.over)
		if err != nil || !ok {
			t.Fatalf("got %v, %v", ok, err)
		}
		return at
	}
	formatted := since()
	if formatted == 0 {
		t.Error("a new slice does not say since when it has all versions")
	}
	collect := func(op *pb.Collect) {
		t.Helper()
		c := p.context(q, Principal{})
		op.Horizon = uint64(c.Time - 1)
		o := Evaluate(q.over, p, c, &pb.Operation{Op: &pb.Operation_Collect{Collect: op}}, nil)
		if o.Err != nil || o.Result.Kind != 0 {
			t.Fatalf("a collection: %v, %v", o.Result, o.Err)
		}
		if o.Done() {
			p.commit(q, c, o)
		}
	}
	collect(&pb.Collect{})
	if got := since(); got != formatted {
		t.Errorf("after a collection that took nothing: %v, want %v", got, formatted)
	}
	op := &pb.Collect{ForgetFrom: []byte{keyInode}, ForgetTo: []byte{keyInode + 1}}
	collect(op)
	if got := since(); got != hlc.Time(op.Horizon) || got <= formatted {
		t.Errorf("after one that forgot versions: %v, want its horizon %v", got, op.Horizon)
	}
}
