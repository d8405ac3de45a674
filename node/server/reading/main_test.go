package reading

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/leases"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The slices of a bench: this node acts for the first two, another node for the
// third.
const (
	rootSlice  = ids.RootSlice
	nearSlice  = ids.Slice(2)
	otherSlice = ids.Slice(3)
	epoch      = ids.Epoch(4)
	until      = time.Hour // of the right to act, by the bench's clock
)

// bench is a Server over real metadata on a disk in memory, with real leases.
type bench struct {
	*testing.T
	*Server
	planter
	sessions *leases.Sessions
	revoked  chan struct{} // one for each revocation that was sent
	now      atomic.Int64  // of the clock that leases are measured by
	wall     atomic.Int64  // of the clock that ends tickets, nanoseconds

	mu    sync.Mutex // guards below
	parts map[ids.Slice]*operate.Published
	rows  map[ids.Slice]geoconfig.SliceRow
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := meta.Open("meta", meta.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatalf("opening the metadata: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the metadata: %v", err)
		}
	})
	b := &bench{T: t, planter: planter{T: t, db: db, clock: 1000, serials: map[ids.Slice]ids.Serial{}, chunks: chunks{}},
		revoked: make(chan struct{}, 64), parts: map[ids.Slice]*operate.Published{}, rows: map[ids.Slice]geoconfig.SliceRow{}}
	b.now.Store(int64(time.Second))
	b.wall.Store(time.Unix(1_000_000, 0).UnixNano())
	for _, id := range []ids.Slice{rootSlice, nearSlice, otherSlice} {
		b.rows[id] = geoconfig.SliceRow{ID: id, Epoch: epoch, Active: "n1"}
		b.act(id, until)
		b.format(id)
	}
	b.lose(otherSlice)
	clock := func() time.Duration { return time.Duration(b.now.Load()) }
	b.sessions = leases.New(leases.Options{
		Config: lease.Config{Length: int64(time.Minute), MaxSessions: 100, MaxLeases: 10_000, MaxOpen: 100}, First: 1, Clock: clock, Caller: b,
		Each: func(f func(*operate.Published) bool) { f(b.part(rootSlice)) }, Published: b.part,
		Ended: func(uint64, uint64) {}, Logger: slog.New(slog.DiscardHandler),
	})
	secret := ticket.NewSecret([32]byte{1})
	b.Server = &Server{
		Published: b.part, Row: b.row, Clock: clock, HLC: hlc.New(time.Now), Leases: b.sessions,
		Committed: func(id ids.Slice) tree.View { return operate.Committed(db, id) }, Side: func(ids.Slice) tree.View { return nil }, Unmerged: func(ids.Object, [][]byte) bool { return false },
		Tickets: &ticket.Sealer{Secret: func() string { return secret }, Wall: func() time.Time { return time.Unix(0, b.wall.Load()) }},
		Elsewhere: func(_ context.Context, o ids.Object, _ hlc.Time) (*pb.Attr, error) {
			if o.Slice() != otherSlice {
				return nil, fault.E(fault.Unreachable, "test.Elsewhere", o.String(), "no node acts for it")
			}
			return tree.GetAttr(operate.Committed(db, o.Slice()), o, false, false)
		},
	}
	b.HLC.Now()
	return b
}

// Start implements leases.Caller: no client answers.
func (b *bench) Start(string, wire.Class, wire.Method, proto.Message, [][]byte, time.Duration, func(*wire.Answer)) error {
	b.revoked <- struct{}{}
	return nil
}

func (b *bench) part(id ids.Slice) *operate.Published {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[id]
}

func (b *bench) row(id ids.Slice) (geoconfig.SliceRow, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.rows[id]
	return r, ok
}

// act lets the node act for a slice until a time.
func (b *bench) act(id ids.Slice, until time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.rows[id]
	b.parts[id] = operate.NewPublished(id, replica.RoleLeading, &row, until)
}

// lose ends the node's right to act for a slice.
func (b *bench) lose(id ids.Slice) { b.act(id, 0) }

// learn gives the node a slice's row that is newer than the one it acts under.
func (b *bench) learn(row geoconfig.SliceRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[row.ID] = row
}

// session opens a session of a client.
func (b *bench) session(client uint64) uint64 {
	b.Helper()
	r, err := b.sessions.KeepAlive("peer", "user", client, &pb.KeepAliveRequest{})
	if err != nil {
		b.Fatalf("opening a session: %v", err)
	}
	return r.Session
}

// endSession closes a client's session.
func (b *bench) endSession(client, session uint64) {
	b.Helper()
	if _, err := b.sessions.KeepAlive("peer", "user", client, &pb.KeepAliveRequest{Session: session, Close: true}); err != nil {
		b.Fatalf("closing a session: %v", err)
	}
}

// Who asks. A node asks as root and needs no tickets; ann and bob are users.
var (
	root = tree.Principal{}
	ann  = tree.Principal{UID: 1000, GID: 100}
	bob  = tree.Principal{UID: 1001, GID: 101}
)

func node() Asker { return Asker{Principal: root} }

func asAnn() Asker {
	return Asker{Principal: ann, Client: 11, Holder: &ticket.Holder{User: "ann", UID: ann.UID}}
}

func asBob() Asker {
	return Asker{Principal: bob, Client: 12, Holder: &ticket.Holder{User: "bob", UID: bob.UID}}
}

// within gives an asker a session.
func (b *bench) within(who Asker) Asker {
	b.Helper()
	if who.Client == 0 {
		who.Client = 13
	}
	who.Session = b.session(who.Client)
	return who
}

// fails wants an error of a kind.
func (b *bench) fails(what string, err error, want fault.Kind) {
	b.Helper()
	if fault.KindOf(err) != want {
		b.Errorf("%s: got %v of kind %v, want kind %v", what, err, fault.KindOf(err), want)
	}
}
