package creates

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/wire"
)

// world is what surrounds a table: a disk, a time, and an active that answers as it is
// told to.
type world struct {
	t      *testing.T
	files  *vfs.MemFS
	now    time.Duration
	row    geoconfig.SliceRow
	role   replica.RoleKind
	answer error
	asked  []*pb.OperateRequest
}

func newWorld(t *testing.T) *world {
	return &world{t: t, files: vfs.NewCrashableMem(), now: time.Hour, row: geoconfig.SliceRow{ID: 1, Epoch: 5, Active: "a"}, role: replica.RoleStandby}
}

// Call implements Caller.
func (w *world) Call(_ context.Context, peer string, _ wire.Class, _ wire.Method, req proto.Message, _ [][]byte, _ proto.Message) (*wire.Buffer, error) {
	if peer != "a" {
		w.t.Errorf("%s is asked, which is not the active", peer)
	}
	w.asked = append(w.asked, req.(*pb.OperateRequest))
	return nil, w.answer
}

// open opens a table over the files.
func (w *world) open(files vfs.FS) *Table {
	w.t.Helper()
	table, err := Open(Options{Self: "s", Dir: "pending", FS: files, Count: 4, Bytes: 4000, Caller: w,
		Published: func(id ids.Slice) *operate.Published { return operate.NewPublished(id, w.role, &w.row, 0) },
		Row:       func(ids.Slice) (geoconfig.SliceRow, bool) { return w.row, true },
		Clock:     func() time.Duration { return w.now }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := table.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return table
}

// request is a create of a client in a slice, of the row's epoch.
func request(slice ids.Slice, client, number uint64) *pb.OperateRequest {
	return &pb.OperateRequest{Slice: uint32(slice), Epoch: 5, Client: client, Number: number, Lowest: 1, User: "ann", Trusted: true,
		Principal: &pb.Principal{Uid: 7, Gid: 8, Groups: []uint32{9}},
		Operation: &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: 3, Name: []byte("name")}}}}
}

func keep(t *testing.T, table *Table, req *pb.OperateRequest, body string) {
	t.Helper()
	if err := table.Keep(req, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// TestKeep_SurvivesACrash keeps creates, loses what the disk has not synced, and opens
// the table again.
func TestKeep_SurvivesACrash(t *testing.T) {
	w := newWorld(t)
	table := w.open(w.files)
	keep(t, table, request(1, 2, 10), "ten")
	keep(t, table, request(1, 2, 9), "nine")
	keep(t, table, request(1, 1, 30), "thirty")
	keep(t, table, request(2, 1, 1), "of another slice")
	again := w.open(w.files.CrashClone(vfs.CrashCloneCfg{}))
	got := again.Of(1)
	if len(got) != 3 {
		t.Fatalf("%d creates are there, want 3", len(got))
	}
	for i, want := range []struct {
		client, number uint64
		body           string
	}{{1, 30, "thirty"}, {2, 9, "nine"}, {2, 10, "ten"}} { // a later one of a client would make the earlier look settled
		op := got[i]
		if op.Client != want.client || op.Number != want.number || !bytes.Equal(op.Body, []byte(want.body)) {
			t.Errorf("create %d is %d of client %d with %q, want %+v", i, op.Number, op.Client, op.Body, want)
		}
		if op.Slice != 1 || op.Lowest != 1 || !op.Trusted || op.OnlyMade || op.User != "ann" || op.Principal.UID != 7 || op.Principal.GID != 8 ||
			len(op.Principal.Groups) != 1 || !op.Held || !op.Kept || op.Op.GetCreate().GetDir() != 3 {
			t.Errorf("create %d is %+v", i, op)
		}
	}
}

// TestSettled_StaysForgotten settles a create, and opens the table again.
func TestSettled_StaysForgotten(t *testing.T) {
	w := newWorld(t)
	table := w.open(w.files)
	keep(t, table, request(1, 2, 10), "ten")
	keep(t, table, request(1, 2, 11), "eleven")
	table.Settled(1, 2, 10)
	table.Settled(1, 2, 99) // is not there
	if left := table.sweep(t.Context()); !left || table.Len() != 1 {
		t.Errorf("%d creates are there, and something is left: %v; want one", table.Len(), left)
	}
	keep(t, table, request(1, 2, 12), "twelve") // syncs what is before it
	if got := w.open(w.files.CrashClone(vfs.CrashCloneCfg{})).Of(1); len(got) != 2 || got[0].Number != 11 {
		t.Errorf("%d creates are there after a start, want 11 and 12", len(got))
	}
}

func TestKeep_IsBounded(t *testing.T) {
	w := newWorld(t)
	table := w.open(w.files)
	if err := table.Keep(request(1, 1, 1), make([]byte, 4000)); !fault.Is(err, fault.Overloaded) {
		t.Errorf("more bytes than the limit: got %v, want Overloaded", err)
	}
	for n := range uint64(4) {
		keep(t, table, request(1, 1, n+1), "x")
	}
	if err := table.Keep(request(1, 1, 5), nil); !fault.Is(err, fault.Overloaded) {
		t.Errorf("more than the limit: got %v, want Overloaded", err)
	}
	if err := table.Keep(request(1, 1, 4), nil); !fault.Is(err, fault.Again) {
		t.Errorf("one that is kept: got %v, want Again", err)
	}
	table.Settled(1, 1, 1)
	table.sweep(t.Context())
	keep(t, table, request(1, 1, 5), "x")
}

// TestKeep_OnlyAsAStandbyOfTheEpoch refuses creates in other roles and epochs, and keeps
// none of them.
func TestKeep_OnlyAsAStandbyOfTheEpoch(t *testing.T) {
	w := newWorld(t)
	table := w.open(w.files)
	for _, role := range []replica.RoleKind{replica.RoleNone, replica.RoleJunior, replica.RoleActive, replica.RoleLeading, replica.RoleYielding} {
		w.role = role
		if err := table.Keep(request(1, 1, 1), nil); !fault.Is(err, fault.WrongEpoch) {
			t.Errorf("as %v: got %v, want WrongEpoch", role, err)
		}
	}
	w.role, w.row.Epoch = replica.RoleStandby, 6
	if err := table.Keep(request(1, 1, 1), nil); !fault.Is(err, fault.WrongEpoch) {
		t.Errorf("in another epoch: got %v, want WrongEpoch", err)
	}
	if table.Len() != 0 || len(w.open(w.files.CrashClone(vfs.CrashCloneCfg{})).Of(1)) != 0 {
		t.Error("something is kept")
	}
}

// TestSweep_AsksTheActive keeps a create for long. The active is asked until it has
// decided.
func TestSweep_AsksTheActive(t *testing.T) {
	for answer, decides := range map[fault.Kind]bool{fault.None: true, fault.Expired: true, fault.Overloaded: false, fault.Unreachable: false, fault.NotActive: false} {
		w := newWorld(t)
		table := w.open(w.files)
		keep(t, table, request(1, 2, 10), "ten")
		if answer != fault.None {
			w.answer = fault.E(answer, "test", "", "")
		}
		table.sweep(t.Context())
		if len(w.asked) != 0 {
			t.Errorf("%v: the active is asked at once", answer)
		}
		w.now += settleAfter
		table.sweep(t.Context())
		if len(w.asked) != 1 || w.asked[0].Number != 10 || w.asked[0].Client != 2 {
			t.Errorf("%v: asked were %v, want number 10 of client 2", answer, w.asked)
		}
		if is := table.Len() == 0; is != decides {
			t.Errorf("%v: the create is forgotten: %v, want %v", answer, is, decides)
		}
		table.sweep(t.Context())
		if len(w.asked) != 1 {
			t.Errorf("%v: the active is asked again at once", answer)
		}
	}
}

func TestOpen_ReportsWhatItCannotRead(t *testing.T) {
	for _, c := range []struct{ key, value []byte }{{make([]byte, keyBytes-1), []byte{0}}, {make([]byte, keyBytes), nil}, {make([]byte, keyBytes), []byte{9, 1}}, {make([]byte, keyBytes), []byte{1, 0xff}}} {
		if err := decode(map[id]*create{}, c.key, c.value); !fault.Is(err, fault.Corrupt) {
			t.Errorf("key of %d bytes, value %v: got %v, want Corrupt", len(c.key), c.value, err)
		}
	}
}
