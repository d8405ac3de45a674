package cartwheel

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Who opens one small file after the other of a directory that was listed far
// from its active, as grep does, is run ahead of: the next ones come in batches,
// each file with a lease and its content. A batch is twice as large as the one
// before while at least half of that one was opened, and asked for when half of
// it is left.
const (
	firstBatch, lastBatch = 4, 64 // files
	// provenBatch is the first batch of a directory after others were opened
	// whole, without waiting for a second file of it.
	provenBatch = 16
	// aheadFile bounds the bytes of a file that is brought along, aheadData those
	// of a batch.
	aheadFile = 64 << 10
	aheadData = 512 << 10
	// maxUnused bounds the files that were brought and not opened yet; when it
	// is met, what was learned of directories is forgotten, and with it whether
	// running ahead is worth it.
	maxUnused = 512
	// maxBatches bounds the batches on their way.
	maxBatches = 8
)

// ahead is what is known of files opened in a row.
type ahead struct {
	busy atomic.Bool // there is something in unused or coming

	mu      sync.Mutex // guards below
	rows    map[ids.Object]*row
	unused  map[ids.Object]*row
	coming  map[ids.Object]*batch
	batches int
	proven  bool // the last batch that was decided on was worth it
}

// row is the files of one directory that are opened in a row.
type row struct {
	dir    ids.Object
	opened int // before the first batch
	size   int // of the last batch
	left   int // of it, not opened yet
	asking bool
}

// batch is files on their way.
type batch struct {
	row   *row
	files []ids.Object
	done  chan struct{}
	work  *trace.Operation
}

// await waits for a file that is on its way.
func (a *ahead) await(ctx context.Context, o ids.Object) {
	if !a.busy.Load() {
		return
	}
	a.mu.Lock()
	b := a.coming[o]
	a.mu.Unlock()
	if b == nil {
		return
	}
	op := trace.From(ctx)
	mark, claimed := op.Begin(), op.Claim(b.work)
	defer func() { op.Waited(mark, b.work, claimed) }()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

// openedUnknown notes that a file is opened of which only the attributes may be
// known, and runs ahead of the next ones where that is worth it.
func (c *Client) openedUnknown(o ids.Object) {
	attr, _, listed := c.names.Attr(o)
	if !listed || !c.far(o.Slice()) {
		return
	}
	dir := ids.Object(attr.Parent)
	a := &c.ahead
	a.mu.Lock()
	r := a.rows[dir]
	if r == nil {
		if a.rows == nil || len(a.rows) >= maxUnused {
			a.rows = map[ids.Object]*row{}
		}
		r = &row{dir: dir}
		a.rows[dir] = r
	}
	r.opened++
	if was := a.unused[o]; was != nil { // its lease was lost
		delete(a.unused, o)
		was.left--
	}
	switch {
	case r.size > 0 && 2*r.left > r.size: // others than those that came are opened
		a.proven = false
		r.size = max(r.size/2, firstBatch)
	case r.size > 0:
		r.size = min(2*r.size, lastBatch)
	case a.proven:
		r.size = provenBatch
	case r.opened > 1:
		r.size = firstBatch
	}
	a.mu.Unlock()
	c.bring(r, o)
}

// openedAhead notes that a file is opened that may have been brought, and brings
// the next ones when few are left.
func (c *Client) openedAhead(o ids.Object) {
	a := &c.ahead
	if !a.busy.Load() {
		return
	}
	a.mu.Lock()
	r := a.unused[o]
	if r == nil {
		a.mu.Unlock()
		return
	}
	delete(a.unused, o)
	a.settle()
	r.left--
	low := !r.asking && 2*r.left <= r.size
	if low {
		a.proven = true
		r.size = min(2*r.size, lastBatch)
	}
	a.mu.Unlock()
	if low {
		c.bring(r, o)
	}
}

// settle notes whether anything is there to be looked for; the mutex is held.
func (a *ahead) settle() { a.busy.Store(len(a.unused) > 0 || len(a.coming) > 0) }

// bring asks for the next files of a row behind one of them.
func (c *Client) bring(r *row, o ids.Object) {
	a := &c.ahead
	a.mu.Lock()
	if r.size == 0 || r.asking || a.batches >= maxBatches {
		a.mu.Unlock()
		return
	}
	r.asking = true
	a.batches++
	if len(a.unused)+r.size > maxUnused {
		a.rows, a.unused, a.proven = nil, nil, false
	}
	size := r.size
	a.mu.Unlock()
	b := &batch{row: r, done: make(chan struct{})}
	for _, next := range c.names.Unheld(r.dir, o, size, aheadFile) {
		if c.alone.table.Of(next) == nil {
			b.files = append(b.files, next)
		}
	}
	if len(b.files) > 0 {
		b.work = c.recorder.Begin(trace.ReadAhead, trace.Caller{})
		a.send(b)
		if c.background(func(ctx context.Context) {
			files := c.files(trace.With(ctx, b.work), b.files)
			c.recorder.EndWork(b.work, nil)
			a.came(b, files)
		}) {
			return
		}
	}
	a.came(b, nil)
}

// send notes files that are on their way.
func (a *ahead) send(b *batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.coming == nil {
		a.coming = map[ids.Object]*batch{}
	}
	for _, o := range b.files {
		a.coming[o] = b
	}
	a.settle()
}

// came notes which files of a batch came.
func (a *ahead) came(b *batch, files []ids.Object) {
	a.mu.Lock()
	for _, o := range b.files {
		delete(a.coming, o)
	}
	if a.unused == nil {
		a.unused = map[ids.Object]*row{}
	}
	for _, o := range files {
		if a.unused[o] == nil {
			b.row.left++
		}
		a.unused[o] = b.row
	}
	b.row.asking = false
	a.batches--
	a.settle()
	a.mu.Unlock()
	close(b.done)
}

// files asks the active for files of one slice, keeps what comes, and returns
// which came. Content is asked for where no nearer node has it.
func (c *Client) files(ctx context.Context, list []ids.Object) (came []ids.Object) {
	slice := list[0].Slice()
	req := &pb.FilesRequest{Objects: make([]uint64, len(list))}
	for i, o := range list {
		req.Objects[i] = uint64(o)
		req.Tickets = append(req.Tickets, c.tickets.Of(o).Reached)
	}
	var mark names.Mark
	var resp *pb.FilesResponse
	var body *wire.Buffer
	var by ids.Node
	err := c.router.Active(ctx, slice, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		mark, resp, by = c.names.MarkObject(0), &pb.FilesResponse{}, node
		req.Header = &pb.ReadHeader{Slice: uint32(slice), Epoch: uint64(epoch), Session: c.sessions.With(ctx, node), Client: c.cluster.Client()}
		if known, ok := c.router.Known(slice); ok && c.cluster.Closest(node, known.Normals()) == node {
			req.DataBytes = aheadData
		}
		body.Release() // of an attempt before
		var err error
		body, err = c.cluster.Call(ctx, node, wire.Chunk, method.Files, req, nil, resp)
		return resp.GetRefusal(), err
	})
	defer func() { body.Release() }()
	if err != nil {
		return nil // whoever opens them asks
	}
	data := body.Bytes()
	for _, f := range resp.Files {
		n := int(f.DataLength)
		if n > len(data) || f.Attr == nil {
			return nil
		}
		if n > 0 {
			c.engine.Keep(f.Attr, bytes.Clone(data[:n]))
			data = data[n:]
		}
	}
	c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
		for _, f := range resp.Files {
			came = append(came, ids.Object(f.Attr.Object))
			l.Attr(f.Attr, false)
		}
	})
	return came
}
