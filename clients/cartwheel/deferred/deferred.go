// Package deferred publishes the files that a client made by itself. In a
// directory that is exclusively its own, a client makes files with an ID that the
// slice's active gave in advance. The active hears of them with their first
// content, in one operation, at the latest when they are closed, when the
// directory stops being exclusive, or after publishAfter. Whatever else is asked
// of their active about them or their directory publishes them first. The package
// makes no files and decides nothing about leases. A Publisher is safe for use by
// many goroutines; its mutex is held over no call.
package deferred

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/pb"
)

const (
	// publishAfter is how long a file that stays open is kept from its active.
	publishAfter = time.Second
	// publishAtOnce bounds the files that are published at the same time.
	publishAtOnce = 64
	// reserve is how many IDs are asked for where fewer than reserveBelow are
	// left; the operations under way meanwhile use those.
	reserve, reserveBelow = 4096, 2048
	// soberFor is for how long files are made at their active, so that programs
	// hear of it when they open them, after one was refused.
	soberFor = 5 * time.Second
)

// Options set up a Publisher. Only Limit may be missing.
type Options struct {
	Limit    int             // files; 0: pending.MaxFiles
	Context  context.Context // ends with the client
	Names    *names.Cache
	Stream   *stream.Stream // of what else this client did by itself
	Receipts *receipts.Table
	Logger   *slog.Logger
	Clock    boottime.Func
	// Told notes in the write journal that the active has a file, whose create has a
	// number there, in a version; 0: the active refused the file.
	Told func(o ids.Object, number, version uint64)
	// Send sends an operation that publishes a file.
	Send func(context.Context, calls.Operation) (*pb.OperateResponse, ids.Node, error)
	// SendContent begins to commit what is written to a file, and FlushContent returns
	// when that is done.
	SendContent  func(ids.Object)
	FlushContent func(context.Context, ids.Object) error
	// AdvancePages moves the version of the kernel's pages of a file on.
	AdvancePages func(o ids.Object, from, to uint64)
	// Doubt forgets objects whose state is not known.
	Doubt func(...ids.Object)
	// Spawn and Background run a function, unless the client ends: then they
	// return false. UntilKnown is the context of what no caller waits for.
	Spawn      func(func()) bool
	Background func(func(context.Context)) bool
	UntilKnown func(context.Context) (context.Context, context.CancelFunc)
}

// Publisher keeps the files that their actives have not heard of, and publishes
// them.
type Publisher struct {
	*pending.Table
	opt     Options
	sober   atomic.Int64  // boot time until which no file is made here
	arrived atomic.Uint64 // files that were published

	mu      sync.Mutex // guards refused
	refused map[ids.Object]error
}

// New returns a Publisher without files.
func New(o Options) *Publisher {
	return &Publisher{Table: pending.New(o.Limit), opt: o, refused: map[ids.Object]error{}}
}

// Published is how many files were published.
func (p *Publisher) Published() uint64 { return p.arrived.Load() }

// IsSober reports whether files are to be made at their actives, because one was
// refused a moment ago.
func (p *Publisher) IsSober(now time.Duration) bool { return p.sober.Load() > int64(now) }

// Refusal returns why an object's active refused it, once.
func (p *Publisher) Refusal(o ids.Object) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.refused[o]
	delete(p.refused, o)
	return err
}

// Want has a create ask for what later ones need to be made here.
func (p *Publisher) Want(create *pb.Create, s ids.Slice) {
	create.Alone, create.Reserve = true, max(create.Reserve, p.Reserve(s))
}

// Reserve is how many IDs of a slice are to be asked for.
func (p *Publisher) Reserve(s ids.Slice) uint32 {
	if p.Left(s) < reserveBelow {
		return reserve
	}
	return 0
}

// Got takes the IDs that came with an answer.
func (p *Publisher) Got(r *pb.Result) { p.Give(ids.Object(r.First), r.Numbers) }
