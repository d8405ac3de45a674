package usage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

var chief = &identity.Who{User: "chief", Admin: true}

// newTeller is that of node a, with a copy of slice 1 in a DB.
func newTeller(t *testing.T, db *meta.DB, members ...ids.Node) *Teller {
	t.Helper()
	row := geoconfig.SliceRow{ID: 1, Active: "b"}
	for _, m := range members {
		row.Members = append(row.Members, geoconfig.Member{Node: m})
	}
	return New(Options{
		Self: "a", Row: func(id ids.Slice) (geoconfig.SliceRow, bool) { return row, id == 1 }, Has: func(ids.Slice) bool { return true },
		Committed: func(s ids.Slice) tree.View { return operate.Committed(db, s) }, Meta: db,
		Length: func(chunk.Address) (int, bool) { return 0, false }, Floor: func(*geoconfig.SliceRow) time.Duration { return time.Hour },
		HLC: hlc.New(time.Now),
	})
}

func openMeta(t *testing.T) *meta.DB {
	t.Helper()
	db, err := meta.Open("meta", meta.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSpace_IsForThoseWhoMaySeeWhatOthersStore(t *testing.T) {
	teller := newTeller(t, openMeta(t), "a", "b")
	for _, c := range []struct {
		who  identity.Who
		want fault.Kind
	}{
		{identity.Who{User: "ann"}, fault.Permission},
		{identity.Who{User: "chief", Admin: true}, fault.None},
		{identity.Who{User: "host", Trusted: true}, fault.None},
		{identity.Who{User: "node", Node: true}, fault.None},
	} {
		if _, err := teller.Space(t.Context(), &c.who, &pb.SpaceRequest{Slice: 1}); fault.KindOf(err) != c.want {
			t.Errorf("%+v: got %v, want %v", c.who, err, c.want)
		}
	}
	elsewhere := newTeller(t, openMeta(t), "b", "c")
	if _, err := elsewhere.Space(t.Context(), chief, &pb.SpaceRequest{Slice: 1}); !fault.Is(err, fault.NotActive) {
		t.Errorf("without a copy: got %v, want NotActive", err)
	}
}

// TestSpace_ReadsOnePageAtATime holds the turn: another request waits for it, and one that
// is given up waits no more.
func TestSpace_ReadsOnePageAtATime(t *testing.T) {
	db := openMeta(t)
	synctest.Test(t, func(t *testing.T) {
		teller := newTeller(t, db, "a")
		teller.turn = make(chan struct{}, 1) // of this bubble
		teller.turn <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				_, err := teller.Space(ctx, chief, &pb.SpaceRequest{Slice: 1})
				answers <- err
			}()
		}
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("a page was read beside another: %v", <-answers)
		}
		cancel()
		if err := <-answers; !fault.Is(err, fault.Canceled) {
			t.Errorf("given up: got %v, want Canceled", err)
		}
		<-teller.turn
		if err := <-answers; err != nil {
			t.Errorf("in its turn: %v", err)
		}
		if len(teller.turn) > 0 {
			t.Error("the turn was not given back")
		}
	})
}

func TestHorizonAt_IsNeverBelowZero(t *testing.T) {
	now := hlc.FromWall(time.Unix(7200, 0))
	if got := horizonAt(now, time.Hour); got != hlc.FromWall(time.Unix(3600, 0)) {
		t.Errorf("got %v, want an hour before", got)
	}
	if got := horizonAt(now, 3*time.Hour); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}
