package snapshot

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/wire"
)

// members records which members are called. Every call fails.
type members struct {
	mu    sync.Mutex // guards asked
	asked []string
}

func (m *members) Call(_ context.Context, peer string, _ wire.Class, _ wire.Method, _ proto.Message, _ [][]byte, _ proto.Message) (*wire.Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, peer)
	return nil, fault.E(fault.Unreachable, "test", peer, "it is away")
}

// emptyPacks never have a chunk.
type emptyPacks struct{}

func (emptyPacks) Missing(to, addresses []chunk.Address) []chunk.Address {
	return append(to, addresses...)
}

func (emptyPacks) Put(context.Context, []chunk.Address, [][]byte) error { return nil }

func newFetcher(m *members) *Fetcher {
	began := time.Now()
	row := geoconfig.SliceRow{ID: 1, Active: "b"}
	for _, n := range []ids.Node{"a", "c", "self", "gone", "b"} {
		member := geoconfig.Member{Node: n, State: geoconfig.Normal}
		if n == "gone" {
			member.State = geoconfig.Failed
		}
		row.Members = append(row.Members, member)
	}
	return NewFetcher(FetcherOptions{Self: "self", Host: m, Packs: emptyPacks{}, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Duration { return time.Since(began) },
		Patient: func(ctx context.Context, _ string, stall, _ time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, stall)
		},
		Row: func(ids.Slice) (geoconfig.SliceRow, bool) { return row, true }})
}

func TestSources_BeginWithTheFirstThenTheActive(t *testing.T) {
	f := newFetcher(&members{})
	if got, want := f.sources(1, ""), []string{"b", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("of an entry: got %v, want %v", got, want)
	}
	if got, want := f.sources(1, "c"), []string{"c", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("of a copy: got %v, want %v", got, want)
	}
}

func TestFetch_EndsWhereNothingArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		f := newFetcher(m)
		began := time.Now()
		run := fetch{s: f, slice: 1, gate: f.bulk, timeout: 10 * time.Second, got: &fetched{}}
		err := run.run(t.Context(), []chunk.Address{chunk.Sum([]byte("x"))})
		if took := time.Since(began); !fault.Is(err, fault.Missing) || took < 10*time.Second || took > 13*time.Second {
			t.Errorf("got %v after %v, want Missing after some 10s", err, took)
		}
		if !slices.Equal(m.asked[:3], []string{"b", "a", "c"}) {
			t.Errorf("asked %v, want every member", m.asked[:3])
		}
	})
}

func TestFetchEntry_EndsOnceNoLongerWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, asks := newFetcher(&members{}), 0
		err := f.FetchEntry(t.Context(), 1, []chunk.Address{chunk.Sum([]byte("x"))}, func(context.Context) (bool, error) {
			asks++
			return asks < 30, nil
		})
		if !fault.Is(err, fault.Canceled) || asks != 30 {
			t.Errorf("got %v after %d questions, want Canceled after 30", err, asks)
		}
	})
}

// TestFetchEntry_AsksLessOftenForWhatIsAway looks for chunks that no member has. Many
// such entries would keep the members busy otherwise.
func TestFetchEntry_AsksLessOftenForWhatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		ctx, cancel := context.WithCancel(t.Context())
		asked := func(d time.Duration) int {
			m.mu.Lock()
			before := len(m.asked)
			m.mu.Unlock()
			time.Sleep(d)
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.asked) - before
		}
		ended := make(chan error)
		go func() {
			ended <- newFetcher(m).FetchEntry(ctx, 1, []chunk.Address{chunk.Sum([]byte("x"))}, func(context.Context) (bool, error) { return true, nil })
		}()
		if got := asked(awayAfter); got < 3*50 {
			t.Errorf("three members were asked %d times in the first minute, want about once a second each", got)
		}
		asked(time.Minute)
		if got := asked(10 * time.Minute); got < 3*15 || got > 3*22 {
			t.Errorf("three members were asked %d times in ten minutes, want about twice a minute each", got)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("it found what nobody has")
		}
	})
}
