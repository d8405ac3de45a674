package serve_test

import (
	"context"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire/wiretest"
)

// arrivals is an Allow that says when a follower holds its place.
func arrivals() (func(string, bool) error, <-chan bool) {
	came := make(chan bool, 16)
	return func(string, bool) error {
		came <- true
		return nil
	}, came
}

// hold is as long as a follower may ask to be held.
const hold = int64(serve.MaxHold)

func TestFollow_AnswersWithWhatIsThere(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	b.apply(geoconfig.Batch{Key: "rome", Sites: []geoconfig.Site{{Name: "rome"}}})
	rows := b.rows(method.GeoFollow, &pb.GeoFollowRequest{}) // the hold of 0 cuts nothing off
	if rows.Revision != 2 || len(rows.Sites) != 2 || rows.Cluster == nil || rows.More {
		t.Errorf("got %+v, want all of revision 2", rows)
	}
	rows = b.rows(method.GeoFollow, &pb.GeoFollowRequest{Since: 1})
	if rows.Revision != 2 || len(rows.Sites) != 1 || rows.Sites[0].Name != "rome" {
		t.Errorf("since 1: got %+v, want rome alone", rows)
	}
}

func TestFollow_AnswersNoRowsAfterTheHold(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	for _, ns := range []int64{0, 1, -1} {
		rows := b.rows(method.GeoFollow, &pb.GeoFollowRequest{Since: 1, HoldNs: ns})
		if rows.Revision != 1 || len(rows.Sites) != 0 || rows.Cluster != nil {
			t.Errorf("a hold of %d ns: got %+v, want nothing since revision 1", ns, rows)
		}
	}
}

// TestFollow_RefusesWhoHasComeFurther: the store is an empty one, or an old copy.
func TestFollow_RefusesWhoHasComeFurther(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	for _, ns := range []int64{0, hold} {
		_, err := b.call(method.GeoFollow, &pb.GeoFollowRequest{Since: 9, HoldNs: ns}, nil, nil)
		if !fault.Is(err, fault.WrongCluster) || !strings.Contains(err.Error(), "geo-config rebuild") {
			t.Errorf("since 9 with a hold of %d ns: got %v, want kind %v", ns, err, fault.WrongCluster)
		}
	}
}

func TestFollow_WaitsForAChange(t *testing.T) {
	allow, came := arrivals()
	b := newBench(t, serve.Options{Allow: allow})
	b.founded()
	done := b.follow(b.ctx, &pb.GeoFollowRequest{Since: 1, HoldNs: hold})
	<-came
	b.apply(geoconfig.Batch{Key: "rome", Sites: []geoconfig.Site{{Name: "rome"}}})
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	if rows := decoded[geoconfig.Rows](t, got.body); rows.Revision != 2 || len(rows.Sites) != 1 {
		t.Errorf("got %+v, want one site at revision 2", rows)
	}
}

func TestFollow_KeepsTheLimit(t *testing.T) {
	b := newBench(t, serve.Options{})
	b.founded()
	for _, name := range []string{"a", "b", "c"} {
		b.apply(geoconfig.Batch{Key: name, Sites: []geoconfig.Site{{Name: ids.Site(name)}}})
	}
	for _, c := range []struct {
		limit uint32
		rows  int
		more  bool
	}{{1, 1, true}, {2, 2, true}, {3, 3, false}, {0, 3, false}, {geoconfig.MaxBatchRows + 1, 3, false}, {1 << 31, 3, false}} {
		rows := b.rows(method.GeoFollow, &pb.GeoFollowRequest{Since: 1, Limit: c.limit})
		if len(rows.Sites) != c.rows || rows.More != c.more || rows.Revision != ids.Revision(1+c.rows) {
			t.Errorf("limit %d: got %d rows to %d, more %v; want %d, more %v", c.limit, len(rows.Sites), rows.Revision, rows.More, c.rows, c.more)
		}
	}
}

func TestFollow_SplitsWhatDoesNotFit(t *testing.T) {
	b := newBench(t, serve.Options{}, small)
	b.founded()
	for _, name := range []string{"a", "b", "c", "d"} {
		b.apply(big(name, 2))
	}
	pages, sites := 0, 0
	since := ids.Revision(1)
	for more := true; more; pages++ {
		rows := b.rows(method.GeoFollow, &pb.GeoFollowRequest{Since: uint64(since)})
		if rows.Revision <= since {
			t.Fatalf("the page since %d ends at %d", since, rows.Revision)
		}
		sites += len(rows.Sites)
		since, more = rows.Revision, rows.More
	}
	if sites != 8 || since != 5 || pages < 2 {
		t.Errorf("got %d sites to revision %d in %d pages, want 8 to 5 in several", sites, since, pages)
	}
}

func TestFollow_RefusesABatchBeyondAFrame(t *testing.T) {
	b := newBench(t, serve.Options{}, small)
	b.founded()
	b.apply(big("a", 6))
	if _, err := b.call(method.GeoFollow, &pb.GeoFollowRequest{Since: 1}, nil, nil); !fault.Is(err, fault.TooLarge) {
		t.Errorf("got %v, want kind %v", err, fault.TooLarge)
	}
}

func TestFollow_BoundsTheFollowers(t *testing.T) {
	allow, came := arrivals()
	b := newBench(t, serve.Options{Allow: allow, Followers: 2})
	b.founded()
	m := &pb.GeoFollowRequest{Since: 1, HoldNs: hold}
	ctx, leave := context.WithCancel(b.ctx)
	first, second := b.follow(ctx, m), b.follow(b.ctx, m)
	<-came
	<-came
	if _, err := b.call(method.GeoFollow, m, nil, nil); !fault.Is(err, fault.Overloaded) {
		t.Fatalf("a third follower: got %v, want kind %v", err, fault.Overloaded)
	}
	leave() // its place is free once the cancellation has come over
	if got := <-first; !fault.Is(got.err, fault.Canceled) {
		t.Errorf("the one that left: got %v, want kind %v", got.err, fault.Canceled)
	}
	wiretest.Wait(t, "the place of the one that left", func() bool {
		_, err := b.call(method.GeoFollow, &pb.GeoFollowRequest{Since: 1}, nil, nil)
		return err == nil
	})
	b.apply(geoconfig.Batch{Key: "rome", Sites: []geoconfig.Site{{Name: "rome"}}})
	if got := <-second; got.err != nil {
		t.Errorf("the one that stayed: %v", got.err)
	}
}

func TestFollow_EndsWithTheServer(t *testing.T) {
	allow, came := arrivals()
	b := newBench(t, serve.Options{Allow: allow})
	b.founded()
	const followers = 3
	var waiting []<-chan answer
	for range followers {
		waiting = append(waiting, b.follow(b.ctx, &pb.GeoFollowRequest{Since: 1, HoldNs: hold}))
		<-came
	}
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, done := range waiting {
		if got := <-done; !fault.Is(got.err, fault.Closed) {
			t.Errorf("got %v, want kind %v", got.err, fault.Closed)
		}
	}
}
