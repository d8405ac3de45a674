package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// transferLimit is how long a member may take that gets the slice's state:
// with one call for a few chunks after the other it took minutes.
const transferLimit = 15 * time.Second

// prepareLimit is how long all that comes before may take: how soon a machine
// makes a thousand files says nothing of a transfer.
const prepareLimit = time.Minute

// heard is a log that lets a test see when something happens.
type heard struct {
	slog.Handler
	what string
	then chan struct{}
	n    *atomic.Int32
	// tell gets the record; nil: nobody wants it.
	tell func(slog.Record)
}

func (h heard) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h heard) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.what {
		h.n.Add(1)
		if h.tell != nil {
			h.tell(r)
		}
		select {
		case h.then <- struct{}{}:
		default:
		}
	}
	return nil
}

// absence is a cluster of which a standby misses more than is kept.
type absence struct {
	t       *testing.T
	ctx     context.Context
	c       *servertest.Cluster
	junior  *servertest.Node
	began   heard // of state transfers
	every   int   // which files have chunks
	names   []string
	stop    context.CancelFunc // ends the writer
	written chan []string      // what it wrote
}

// leave kills a standby, makes files without it, and goes on making some.
func leave(t *testing.T) *absence {
	a := &absence{t: t, began: heard{what: "a slice's state is being copied", then: make(chan struct{}, 1), n: new(atomic.Int32)}, every: 10}
	a.start(512 << 10)
	a.junior.Kill()
	const writers, each = 8, 125
	lists := make([][]string, writers)
	limited, cancel := context.WithTimeout(a.ctx, prepareLimit)
	defer cancel()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() { lists[w] = a.files(limited, fmt.Sprintf("w%d-", w), each) })
	}
	all.Wait()
	if limited.Err() != nil {
		t.Fatalf("a thousand files were not made within %v", prepareLimit)
	}
	for _, l := range lists {
		a.names = append(a.names, l...)
	}
	a.write()
	return a
}

// start runs a cluster whose nodes keep so many bytes of operations, and
// chooses a standby.
func (a *absence) start(keep int) {
	t := a.t
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithCancel(context.Background())
	t.Cleanup(cancel)
	a.c = servertest.Start(t, servertest.Options{
		Configure: func(i int, c *server.Config) { quick(i, c); c.MissedBytes = keep },
		Depend:    func(_ int, d *server.Deps) { d.Logger = slog.New(a.began) },
	})
	limited, cancel := context.WithTimeout(a.ctx, prepareLimit)
	defer cancel()
	awaitWhole(limited, t, a.c)
	for _, n := range a.c.Nodes {
		if n != a.c.Active(ids.RootSlice) {
			a.junior = n
		}
	}
}

// write goes on making files.
func (a *absence) write() {
	var writing context.Context
	writing, a.stop = context.WithCancel(a.ctx)
	a.written = make(chan []string, 1)
	go func() { a.written <- a.files(writing, "late", 1<<20) }()
}

// files makes up to n files and returns the names of those acknowledged: most
// have content that travels with the operation, the others have chunks.
func (a *absence) files(ctx context.Context, prefix string, n int) (names []string) {
	cl := a.c.Connect("root")
	noise := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", prefix))))
	for i := range n {
		body := make([]byte, 2000+i%7000)
		_, _ = noise.Read(body)
		name := fmt.Sprintf("%s%04d", prefix, i)
		made, err := cl.Operate(ctx, ids.RootSlice, create(name), nil)
		if ctx.Err() != nil {
			return names
		}
		if err != nil || made.Kind != 0 {
			a.t.Errorf("create %s: %v %v", name, made, err)
			return names
		}
		op := commit(made.Attr.Object, len(body))
		if i%a.every == 0 {
			if op, body = a.upload(ctx, cl, made.Attr.Object, body), nil; op == nil {
				continue // nobody took it: the active was gone
			}
		}
		wrote, err := cl.Operate(ctx, ids.RootSlice, op, body)
		switch {
		case ctx.Err() != nil:
			return names
		case err != nil || wrote.Kind != 0 && fault.Kind(wrote.Kind) != fault.Missing:
			a.t.Errorf("commit %s: %v %v", name, wrote, err)
			return names
		case wrote.Kind == 0:
			names = append(names, name)
		}
	}
	return names
}

// upload sends content ahead, as chunks, to the active alone.
func (a *absence) upload(ctx context.Context, cl *servertest.Client, object uint64, body []byte) *pb.Operation {
	row, err := a.c.Row(ctx, ids.RootSlice)
	if err != nil {
		return nil
	}
	address := chunk.Sum(body)
	req := &pb.PutRequest{Slice: 1, Addresses: address[:], Sizes: []uint32{uint32(len(body))}}
	b, err := cl.Call(ctx, row.Active, wire.Chunk, method.Put, req, [][]byte{body}, &pb.PutResponse{})
	b.Release()
	if err != nil {
		return nil
	}
	op := commit(object, len(body))
	e := op.GetCommit().Extents[0]
	e.Source, e.ChunkSize = &pb.Extent_Chunk{Chunk: address[:]}, uint32(len(body))
	return op
}

// back starts the member again and waits until its transfer has begun.
func (a *absence) back() {
	a.t.Helper()
	a.junior.Start()
	a.begun()
}

func (a *absence) begun() {
	a.t.Helper()
	select {
	case <-a.began.then:
	case <-time.After(transferLimit):
		a.t.Fatal("no state transfer began")
	}
}

// whole waits until the member is normal, ends the writing and compares.
func (a *absence) whole() {
	a.t.Helper()
	limited, cancel := context.WithTimeout(a.ctx, transferLimit)
	defer cancel()
	began := time.Now()
	awaitState(limited, a.t, a.c, a.junior, geoconfig.Normal)
	a.t.Logf("normal after %v, %d transfers", time.Since(began), a.began.n.Load())
	a.stop()
	late := <-a.written
	a.t.Logf("%d files made meanwhile", len(late))
	applied, cancel := context.WithTimeout(a.ctx, transferLimit)
	defer cancel()
	checkCopy(applied, a.t, a.junior, append(a.names, late...))
}

func TestTransfer_MemberIsWholeBesideWrites(t *testing.T) {
	t.Parallel()
	a := leave(t)
	a.back()
	a.whole()
}

func TestTransfer_OutlivesItsSource(t *testing.T) {
	t.Parallel()
	a := leave(t)
	a.back()
	for _, n := range a.c.Nodes {
		if n != a.junior && n != a.c.Active(ids.RootSlice) {
			n.Kill() // a standby is the first to be asked
		}
	}
	a.whole()
}

func TestTransfer_GoesOnWhenTheJuniorComesBack(t *testing.T) {
	t.Parallel()
	a := leave(t)
	a.back()
	a.junior.Kill()
	a.junior.Start()
	a.begun()
	a.whole()
}

func TestTransfer_MemberKilledBeforeItsChunksIsWhole(t *testing.T) {
	t.Parallel()
	a := &absence{t: t, began: heard{then: make(chan struct{}, 1), n: new(atomic.Int32)}, every: 1}
	a.start(32 << 20)
	a.write()
	for range 2 {
		<-time.After(300 * time.Millisecond) // of writing
		a.junior.Kill()
		limited, cancel := context.WithTimeout(a.ctx, transferLimit)
		awaitState(limited, t, a.c, a.junior, geoconfig.Failed)
		a.junior.Start()
		awaitState(limited, t, a.c, a.junior, geoconfig.Normal)
		cancel()
	}
	a.whole()
}
