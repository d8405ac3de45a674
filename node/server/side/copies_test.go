package side

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const theSlice = ids.Slice(7)

// nothing is a slice without files.
type nothing struct{}

func (nothing) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

func (nothing) Scan(_, _ []byte, _ func(key, value []byte) bool) error { return nil }

// world is the logs of nodes that call each other.
type world struct {
	logs map[string]*Log
	// fails answers in the place of a node; nil: the node does.
	fails func(peer string, req *pb.SideCopyRequest) error
}

func (w *world) Connected(peer string, _ wire.Class) bool { return w.logs[peer] != nil }

func (w *world) Call(ctx context.Context, peer string, _ wire.Class, m wire.Method, request proto.Message, _ [][]byte, _ proto.Message) (*wire.Buffer, error) {
	req, ok := request.(*pb.SideCopyRequest)
	if !ok || m != method.SideCopy {
		return nil, fmt.Errorf("%s was called for %v", peer, m)
	}
	if w.fails != nil {
		if err := w.fails(peer, req); err != nil {
			return nil, err
		}
	}
	_, err := w.logs[peer].Copy(ctx, req)
	return nil, err
}

// rowOf is a slice of normal members, of which a is the active.
func rowOf(members ...ids.Node) func(ids.Slice) (geoconfig.SliceRow, bool) {
	row := geoconfig.SliceRow{ID: theSlice, Active: "a"}
	for _, n := range members {
		row.Members = append(row.Members, geoconfig.Member{Node: n, State: geoconfig.Normal})
	}
	return func(ids.Slice) (geoconfig.SliceRow, bool) { return row, true }
}

// open starts a node's log, with its copy of the slice as of a serial.
func (w *world) open(t *testing.T, self ids.Node, applied uint64) *Log {
	t.Helper()
	began := time.Now()
	row, _ := rowOf("a", "b", "c", "d")(theSlice)
	copied := operate.NewPublished(theSlice, replica.RoleStandby, &row, 0)
	copied.Applied.Store(applied)
	l, err := Open(Options{
		Self: self, Dir: "side", FS: vfs.NewMem(), Bytes: 64 << 20, Caller: w,
		Published: func(ids.Slice) *operate.Published { return copied },
		Committed: func(ids.Slice) tree.View { return nothing{} },
		Row:       rowOf("a", "b", "c", "d"),
		Distance:  func(ids.Node) (time.Duration, bool) { return time.Second, true }, // a busy machine is not away
		Feature:   func(ids.Node) int { return version.Feature },
		Clock:     func() time.Duration { return time.Since(began) }, HLC: hlc.New(time.Now), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.logs[string(self)] = l
	return l
}

// change is one of a key that no rule of the tree looks at.
func change(key, value string) tree.SideChange {
	return tree.SideChange{Key: []byte("x" + key), Value: []byte(value)}
}

func request(after, serial uint64, list ...tree.SideChange) *pb.SideCopyRequest {
	req := &pb.SideCopyRequest{Slice: uint32(theSlice), Owner: "b", Serial: serial, After: after}
	for i := range list {
		req.Changes = append(req.Changes, &pb.SideChange{Key: list[i].Key, Kept: tree.AppendSideChange(nil, &list[i])})
	}
	return req
}

// shows lists what a node's side logs say of keys.
func shows(t *testing.T, l *Log, keys ...string) (out []string) {
	t.Helper()
	v := l.View(theSlice)
	for _, key := range keys {
		value := []byte("-")
		if v != nil {
			got, ok, err := v.Get([]byte("x" + key))
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				value = got
			}
		}
		out = append(out, string(value))
	}
	return out
}

func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the node shows %v, want %v", got, want)
	}
}

// TestCopy_TakesChangesInTheirOrder brings a node the change of a name before that of
// the content, which was on another way.
func TestCopy_TakesChangesInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{logs: map[string]*Log{}}
		c := w.open(t, "c", 1)
		ctx := context.Background()
		if _, err := c.Copy(ctx, request(11, 12, change("name", "new"))); !fault.Is(err, fault.Again) {
			t.Errorf("a change without what was before it: %v, want Again", err)
		}
		wants(t, shows(t, c, "name"), "-")
		if _, err := c.Copy(ctx, request(0, 10, change("other", "1"))); err != nil {
			t.Fatal(err)
		}
		late := make(chan error)
		go func() {
			_, err := c.Copy(ctx, request(11, 12, change("name", "new")))
			late <- err
		}()
		synctest.Wait() // it waits for what comes before it
		wants(t, shows(t, c, "name", "content"), "-", "-")
		if _, err := c.Copy(ctx, request(10, 11, change("content", "all of it"))); err != nil {
			t.Fatal(err)
		}
		if err := <-late; err != nil {
			t.Fatal(err)
		}
		wants(t, shows(t, c, "name", "content"), "new", "all of it")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestCopy_ShowsAllPartsOrNone sends a log in parts, of which one is lost.
func TestCopy_ShowsAllPartsOrNone(t *testing.T) {
	w := &world{logs: map[string]*Log{}}
	b, c := w.open(t, "b", 1), w.open(t, "c", 1)
	long := strings.Repeat("z", copyBytes)
	all := part{serial: 9, changes: []tree.SideChange{change("a", long), change("b", long), change("c", long)}}
	parts := 0
	w.fails = func(_ string, req *pb.SideCopyRequest) error {
		if parts++; parts == 2 {
			return fault.E(fault.Unreachable, "test", "c", "the line is cut")
		}
		return nil
	}
	if err := b.copyOne(t.Context(), "c", theSlice, all); !fault.Is(err, fault.Unreachable) {
		t.Fatalf("got %v, want what the line says", err)
	}
	wants(t, shows(t, c, "a", "b", "c"), "-", "-", "-")
	last := request(0, 9, change("c", long))
	last.Part = 2
	if _, err := c.Copy(t.Context(), last); !fault.Is(err, fault.Again) {
		t.Errorf("the last part without the one before it: %v, want Again", err)
	}
	wants(t, shows(t, c, "a", "b", "c"), "-", "-", "-")
	if err := b.copyOne(t.Context(), "c", theSlice, all); err != nil || parts < 5 {
		t.Fatalf("%d parts went, with %v", parts, err)
	}
	wants(t, shows(t, c, "a", "b", "c"), long, long, long)
	if _, err := c.Copy(t.Context(), request(9, 10, change("a", "new"))); err != nil {
		t.Error("what comes behind all parts is not taken:", err)
	}
}

// TestCopyTo_BringsEverythingToAMemberThatLacksSome starts a member anew, which does not
// know then what it has.
func TestCopyTo_BringsEverythingToAMemberThatLacksSome(t *testing.T) {
	w := &world{logs: map[string]*Log{}}
	b := w.open(t, "b", 1)
	w.open(t, "c", 1)
	s, _, err := b.of(theSlice)
	if err != nil {
		t.Fatal(err)
	}
	var sent []uint64 // behind which operation the changes of each call are
	w.fails = func(_ string, req *pb.SideCopyRequest) error { sent = append(sent, req.After); return nil }
	does := func(c tree.SideChange) {
		s.mu.Lock()
		did := part{s.serial, s.next(0), []tree.SideChange{c}}
		did.changes[0].Serial, s.serial = did.serial, did.serial
		b.side(s, logID{theSlice, "b"}).Apply(did.changes)
		s.mu.Unlock()
		b.copyTo(t.Context(), theSlice, s, did)
	}
	does(change("a", "1"))
	does(change("b", "1"))
	if len(sent) != 2 || sent[0] != 0 || sent[1] == 0 {
		t.Errorf("changes were sent behind %v, want everything first and then what is new", sent)
	}
	c := w.open(t, "c", 1) // in the place of the former one
	does(change("a", "2"))
	wants(t, shows(t, c, "a", "b"), "2", "1")
	if !s.has["c"] {
		t.Error("the member has everything, and does not count as having it")
	}
}

// TestEnd_WaitsForTheCopy forgets a log only once the slice's copy at that node shows
// what was merged, so that nobody there sees less than before.
func TestEnd_WaitsForTheCopy(t *testing.T) {
	w := &world{logs: map[string]*Log{}}
	c := w.open(t, "c", 41)
	if _, err := c.Copy(t.Context(), request(0, 9, change("a", "1"))); err != nil {
		t.Fatal(err)
	}
	ends := &pb.SideCopyRequest{Slice: uint32(theSlice), Owner: "b", Ends: true, Serial: 42}
	if _, err := c.Copy(t.Context(), ends); !fault.Is(err, fault.Again) {
		t.Errorf("the copy does not show it yet: %v, want Again", err)
	}
	wants(t, shows(t, c, "a"), "1")
	c.o.Published(theSlice).Applied.Store(42)
	if _, err := c.Copy(t.Context(), ends); err != nil {
		t.Error(err)
	}
	wants(t, shows(t, c, "a"), "-")
}
