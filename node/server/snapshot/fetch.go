package snapshot

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

const (
	// fetchBatch is how many chunks one call asks for; its answer holds as many
	// of them as fit into 4 MiB.
	fetchBatch = 512
	// fetchFlight is how many calls are in flight at once for one fetch, and
	// bulkFlight and entryFlight for all those of state transfers and of
	// entries: each holds one answer in memory.
	fetchFlight = 4
	bulkFlight  = 6
	entryFlight = 6
	// getStall is for how long nothing may come of one call, and getMost bounds it.
	getStall = 30 * time.Second
	getMost  = 10 * time.Minute
	// awayAfter is how long nothing may come until chunks are asked for less often.
	awayAfter = time.Minute
)

// opFetch is the operation in the errors of every fetch.
const opFetch fault.Op = "snapshot.fetch"

// Caller calls other nodes.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, method wire.Method,
		request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Packs keep the node's chunks.
type Packs interface {
	// Missing appends those of the addresses whose chunks are not here.
	Missing(to, addresses []chunk.Address) []chunk.Address
	Put(ctx context.Context, addresses []chunk.Address, bodies [][]byte) error
}

// FetcherOptions are what a Fetcher is made of. Every field is needed.
type FetcherOptions struct {
	Self ids.Node
	Row  func(ids.Slice) (geoconfig.SliceRow, bool)
	Host Caller
	// Patient returns a context for one call, which ends when nothing comes for
	// stall, after most, or with ctx.
	Patient func(ctx context.Context, peer string, stall, most time.Duration) (context.Context, context.CancelFunc)
	Packs   Packs
	Clock   func() time.Duration
	Logger  *slog.Logger
}

// Fetcher brings chunks from the other members of a slice. It owns the bounds of
// the calls in flight. It is safe for concurrent use.
type Fetcher struct {
	o       FetcherOptions
	bulk    chan struct{} // bounds the calls for chunks of state transfers
	entries chan struct{} // bounds the calls for chunks of entries
}

// NewFetcher returns a fetcher with nothing in flight.
func NewFetcher(o FetcherOptions) *Fetcher {
	return &Fetcher{o: o, bulk: make(chan struct{}, bulkFlight), entries: make(chan struct{}, entryFlight)}
}

// FetchEntry brings an entry's chunks, from the slice's active first. It returns
// nil once all are here, Canceled once wanted says that they are not needed, or
// the error of ctx or of wanted. It may wait for ever.
func (f *Fetcher) FetchEntry(ctx context.Context, slice ids.Slice, missing []chunk.Address, wanted func(context.Context) (bool, error)) error {
	return (&fetch{s: f, slice: slice, gate: f.entries, wanted: wanted, got: &fetched{}}).run(ctx, missing)
}

// fetched counts what a fetch brought.
type fetched struct{ chunks, bytes atomic.Int64 }

// fetch brings chunks from other members.
type fetch struct {
	s       *Fetcher
	slice   ids.Slice
	first   string        // whom to ask first; "": the active
	gate    chan struct{} // bounds the calls under way
	timeout time.Duration // how long nothing may arrive; 0: for ever
	// wanted says whether the chunks are still needed; nil: they are.
	wanted func(context.Context) (bool, error)
	// without returns those of the chunks that some member may have; nil: all.
	without func([]chunk.Address) []chunk.Address
	got     *fetched
}

// missing returns those of the chunks that are not here and may come.
func (f *fetch) missing(addresses []chunk.Address) []chunk.Address {
	out := f.s.o.Packs.Missing(nil, addresses)
	if f.without != nil {
		out = f.without(out)
	}
	return out
}

// run goes on until all chunks are here, ctx ends, nothing came for too long, or
// they are not wanted any more.
func (f *fetch) run(ctx context.Context, missing []chunk.Address) error {
	const shortest = 10 * time.Millisecond
	came := f.s.o.Clock()
	for wait := shortest; len(missing) > 0; wait = min(2*wait, f.longest(came)) {
		before := len(missing)
		for _, source := range f.s.sources(f.slice, f.first) {
			f.from(ctx, source, missing)
			if missing = f.missing(missing); len(missing) == 0 {
				return nil
			}
		}
		if len(missing) < before {
			wait, came = shortest, f.s.o.Clock()
		} else if f.timeout > 0 && f.s.o.Clock()-came > f.timeout {
			return fault.Errorf(fault.Missing, opFetch, missing[0].String(), "%d chunks that no member gives", len(missing))
		} else if err := f.needless(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		missing = f.missing(missing)
	}
	return nil
}

// longest bounds the pause between two rounds over the members. Chunks that none has
// for a while are with a node that is away, and there may be many.
func (f *fetch) longest(came time.Duration) time.Duration {
	if f.s.o.Clock()-came > awayAfter {
		return 30 * time.Second
	}
	return time.Second
}

// needless returns an error once the chunks are not wanted any more.
func (f *fetch) needless(ctx context.Context) error {
	if f.wanted == nil {
		return nil
	}
	wanted, err := f.wanted(ctx)
	if err == nil && !wanted {
		err = fault.E(fault.Canceled, opFetch, "", "the entry that names the chunks is not in the log any more")
	}
	return err
}

// sources lists the other members: the first one, then the active, then the
// others.
func (f *Fetcher) sources(slice ids.Slice, first string) []string {
	row, _ := f.o.Row(slice)
	if first == "" {
		first = string(row.Active)
	}
	var out []string
	for _, m := range row.Members {
		if m.Node != f.o.Self && m.State != geoconfig.Failed {
			out = append(out, string(m.Node))
		}
	}
	order := func(peer string) int {
		switch peer {
		case first:
			return 0
		case string(row.Active):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b string) int { return order(a) - order(b) })
	return out
}

// from asks one node for chunks, several batches at a time, until it gave all
// that it has or fails.
func (f *fetch) from(ctx context.Context, peer string, missing []chunk.Address) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	flight := make(chan struct{}, fetchFlight)
	var all sync.WaitGroup
	for batch := range slices.Chunk(missing, fetchBatch) {
		flight <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-flight }()
			if err := f.batch(ctx, peer, batch); err != nil {
				f.s.o.Logger.Debug("chunks could not be fetched", logattr.Peer(peer), logattr.Err(err))
				cancel()
			}
		})
	}
	all.Wait()
}

// batch asks for chunks until each was given or is missing there.
func (f *fetch) batch(ctx context.Context, peer string, batch []chunk.Address) error {
	for len(batch) > 0 {
		select {
		case f.gate <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		left, err := f.call(ctx, peer, batch)
		<-f.gate
		if err != nil {
			return err
		}
		if len(left) == len(batch) {
			return fault.E(fault.Corrupt, opFetch, peer, "the answer holds nothing")
		}
		batch = left
	}
	return nil
}

// call asks once, checks what comes and stores it. left is what the answer had
// no room for.
func (f *fetch) call(ctx context.Context, peer string, batch []chunk.Address) (left []chunk.Address, err error) {
	call, cancel := f.s.o.Patient(ctx, peer, getStall, getMost)
	defer cancel()
	req := &pb.GetRequest{Slice: uint32(f.slice), Addresses: chunk.AppendAddresses(nil, batch...), Some: true}
	var answer pb.GetResponse
	buffer, err := f.s.o.Host.Call(call, peer, wire.Chunk, method.Get, req, nil, &answer)
	if err != nil {
		return nil, err
	}
	defer buffer.Release()
	body := buffer.Bytes()
	if len(answer.Sizes) != len(batch) || len(answer.Missing) != 0 && len(answer.Missing) != (len(batch)+7)/8 {
		return nil, fault.E(fault.Corrupt, opFetch, peer, "the answer does not fit the question")
	}
	var found []chunk.Address
	var bodies [][]byte
	for i, n := range answer.Sizes {
		if int64(n) > int64(len(body)) {
			return nil, fault.E(fault.Corrupt, opFetch, peer, "the answer is shorter than it says")
		}
		if n == 0 {
			if len(answer.Missing) == 0 || answer.Missing[i/8]>>(i%8)&1 == 0 {
				left = append(left, batch[i])
			}
			continue
		}
		data := body[:n]
		body = body[n:]
		if err := chunk.Verify(batch[i], data); err != nil {
			return nil, fault.Wrap(fault.Corrupt, opFetch, peer, err)
		}
		found, bodies = append(found, batch[i]), append(bodies, data)
		f.got.bytes.Add(int64(n))
	}
	f.got.chunks.Add(int64(len(found)))
	if len(found) == 0 {
		return left, nil
	}
	return left, f.s.o.Packs.Put(ctx, found, bodies)
}
