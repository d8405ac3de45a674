package content_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/content/writelog"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func TestMain(m *testing.M) {
	if f := flag.Lookup("rapid.checks"); f != nil {
		_ = f.Value.Set(checks) // a flag of the command line comes later and wins
	}
	goleak.VerifyTestMain(m)
}

const object = ids.Object(1<<40 | 7)

func within(t interface{ Cleanup(func()) }) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// twin is a file as a flat slice.
type twin []byte

func (w *twin) resize(n int) {
	for len(*w) < n {
		*w = append(*w, make([]byte, n-len(*w))...)
	}
	*w = (*w)[:n:n]
}

func (w *twin) write(p []byte, off int) {
	w.resize(max(len(*w), off+len(p)))
	*w = bytes.Clone(*w)
	copy((*w)[off:], p)
}

func (w *twin) zero(off, end int) {
	*w = bytes.Clone(*w)
	if end = min(end, len(*w)); off < end {
		clear((*w)[off:end])
	}
}

// faults fails commits: some before they are done, some after, so that the
// answer is lost.
type faults struct {
	mu     sync.Mutex
	rnd    *rand.Rand
	rate   int // percent
	failed int
}

func (f *faults) decide(call contenttest.Call) contenttest.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	if (call != contenttest.Commit && call != contenttest.PutChunks) || f.rnd.IntN(100) >= f.rate {
		return contenttest.Outcome{}
	}
	f.failed++
	switch f.rnd.IntN(2) {
	case 0:
		return contenttest.Outcome{Before: fault.E(fault.NoSpace, "test", "", "")}
	default:
		return contenttest.Outcome{After: fault.E(fault.TimedOut, "test", "", "")}
	}
}

func (f *faults) set(rate int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = rate
}

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// play runs random operations on several handles of one file and on the twin.
type play struct {
	*rapid.T
	ctx     context.Context
	cluster *contenttest.Cluster
	engine  *content.Engine
	handles []*content.Handle
	twin    twin
	faults  *faults
	excused int // failures that were told
	pattern byte
	rnd     *rand.Rand
}

func (p *play) size(name string, most int) int {
	scale := rapid.SampledFrom([]int{most, 70000, 4096, 10, 1}).Draw(p.T, name+" scale")
	return p.rnd.IntN(min(scale, most) + 1) // rapid's own draws favour small numbers
}

func (p *play) bytes(n int) []byte {
	p.pattern++
	var key [32]byte
	key[0] = p.pattern
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(out)
	return out
}

// settle checks an error: only where a commit failed may there be one, and
// then what the cluster has is what counts.
func (p *play) settle(err error) bool {
	if err == nil {
		return true
	}
	// IO: whether an append was run could not be found out.
	if !fault.Is(err, fault.NoSpace) && !fault.Is(err, fault.TimedOut) && !fault.Is(err, fault.IO) {
		p.Fatalf("an error of no failure: %v", err)
	}
	if p.faults.count() == p.excused {
		p.Fatalf("an error, but nothing failed since the last: %v", err)
	}
	p.faults.set(0)
	for _, h := range p.handles {
		for range 3 {
			if h.Flush(p.ctx) == nil {
				break
			}
		}
		if err := h.Flush(p.ctx); err != nil {
			p.Fatalf("the error is told again and again: %v", err)
		}
	}
	p.excused = p.faults.count()
	p.twin = p.cluster.Contents(object)
	return false
}

func (p *play) step() {
	h := p.handles[rapid.IntRange(0, len(p.handles)-1).Draw(p.T, "handle")]
	size := len(p.twin)
	switch rapid.IntRange(0, 16).Draw(p.T, "op") {
	case 16:
		p.copy(h)
	case 0, 1, 2:
		off, data := p.size("offset", size+5000), p.bytes(p.size("length", 500000))
		if p.settle(h.WriteAt(p.ctx, data, uint64(off))) && len(data) > 0 {
			p.twin.write(data, off)
		}
	case 3, 4:
		data := p.bytes(p.size("length", 200000))
		off, err := h.Append(p.ctx, data)
		if p.settle(err) {
			if len(data) > 0 && int(off) != size && h.Dirty() {
				if got, _ := h.Size(p.ctx); int(got) != size+len(data) && p.faults.count() == p.excused {
					p.Fatalf("appended at %d of %d, size now %d", off, size, got)
				}
			}
			p.twin.write(data, size)
		}
	case 5:
		n := p.size("to", size+10000)
		if p.settle(h.Truncate(p.ctx, uint64(n))) {
			p.twin.resize(n)
		}
	case 6:
		off, n := p.size("offset", size+100), 1+p.size("length", 200000)
		mode := rapid.SampledFrom([]uint32{0, content.KeepSize, content.ZeroRange, content.ZeroRange | content.KeepSize,
			content.PunchHole | content.KeepSize}).Draw(p.T, "mode")
		if p.settle(h.Allocate(p.ctx, mode, uint64(off), uint64(n))) {
			if mode&content.KeepSize == 0 {
				p.twin.resize(max(size, off+n))
			}
			if mode != 0 && mode != content.KeepSize {
				p.twin.zero(off, off+n)
			}
		}
	case 7:
		before := p.faults.count()
		err := h.Flush(p.ctx)
		if err == nil && before > p.excused {
			p.check() // another handle was told, or it was told at once
		}
		p.settle(err)
	case 8:
		p.settle(h.Flush(p.ctx))
		if !h.Dirty() {
			off, data := p.size("offset", len(p.twin)+100), p.bytes(1+p.size("length", 100000))
			p.cluster.Write(object, uint64(off), data)
			p.engine.Invalidate(object)
			p.twin.write(data, off)
		}
	case 9:
		p.engine.Invalidate(object)
	case 10:
		p.engine.SetVersion(p.cluster.Attr(object))
	case 11:
		p.faults.set(rapid.SampledFrom([]int{0, 0, 30, 100}).Draw(p.T, "failing"))
	case 12:
		p.seek(h)
	default:
		p.read(h, p.size("offset", size+10), p.size("length", 400000))
	}
}

// read compares one read with the twin. Where a commit has failed and nobody
// was told yet, the file is what the cluster says it is, and is not compared.
// copy copies a part of the file to another place in it.
func (p *play) copy(h *content.Handle) {
	at, n := p.size("offset", len(p.twin)), 1+p.size("length", 300000)
	to := p.size("to", len(p.twin)+5000)
	if at < to+n && to < at+n {
		to = at + n // ranges of one file do not overlap
	}
	from := p.handles[rapid.IntRange(0, len(p.handles)-1).Draw(p.T, "from")]
	copied, err := h.CopyFrom(p.ctx, from, uint64(at), uint64(n), uint64(to))
	switch {
	case fault.Is(err, fault.NotSupported):
	case p.settle(err):
		if at < len(p.twin) && (copied == 0 || int(copied) > min(n, len(p.twin)-at)) {
			p.Fatalf("copied %d of %d at %d of %d", copied, n, at, len(p.twin))
		}
		if copied > 0 {
			p.twin.write(append([]byte(nil), p.twin[at:at+int(copied)]...), to)
		}
	}
}

func (p *play) read(h *content.Handle, off, n int) {
	got := make([]byte, n)
	m, err := h.ReadAt(p.ctx, got, uint64(off))
	if err != nil {
		p.Fatal(err)
	}
	if p.faults.count() > p.excused {
		return
	}
	want := p.twin[min(off, len(p.twin)):]
	want = want[:min(n, len(want))]
	if !bytes.Equal(got[:m], want) {
		i := 0
		for i < min(m, len(want)) && got[i] == want[i] {
			i++
		}
		p.Fatalf("read %d bytes at %d: got %d, want %d; the first difference is at %d", n, off, m, len(want), off+i)
	}
}

// seek checks that what SeekData skips is zeros.
func (p *play) seek(h *content.Handle) {
	off := rapid.IntRange(0, len(p.twin)+1).Draw(p.T, "seek")
	data, err := h.SeekData(p.ctx, uint64(off))
	hole, err2 := h.SeekHole(p.ctx, uint64(off))
	if p.faults.count() > p.excused {
		return
	}
	if off >= len(p.twin) {
		if !fault.Is(err, fault.NoDevice) || !fault.Is(err2, fault.NoDevice) {
			p.Fatalf("behind the end: got %v, %v", err, err2)
		}
		return
	}
	end := len(p.twin)
	if err == nil {
		end = int(data)
	} else if !fault.Is(err, fault.NoDevice) {
		p.Fatal(err)
	}
	if err2 != nil || int(hole) < off || int(hole) > len(p.twin) || (int(data) > off && int(hole) > off && err == nil) {
		p.Fatalf("from %d of %d: data at %d, hole at %d, %v", off, len(p.twin), data, hole, err2)
	}
	for i := off; i < end; i++ {
		if p.twin[i] != 0 {
			p.Fatalf("SeekData from %d skips the byte at %d", off, i)
		}
	}
}

func (p *play) check() {
	p.read(p.handles[0], 0, len(p.twin)+10)
}

func TestEngine_EqualsAFlatFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &play{T: rt, ctx: within(rt), cluster: contenttest.New()}
		p.faults = &faults{rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))}
		p.rnd = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "sizes"), 2))
		p.cluster.SetFaults(p.faults.decide)
		var journal *writelog.Log
		dir := t.TempDir()
		options := content.Options{
			DirtyBytes:  rapid.SampledFrom([]int64{1 << 20, 64 << 20}).Draw(rt, "budget"),
			CacheBytes:  rapid.SampledFrom([]int64{1 << 16, 64 << 20}).Draw(rt, "cache"),
			StreamBytes: rapid.SampledFrom([]int64{300 << 10, 1 << 20}).Draw(rt, "stream"),
			ReadAhead:   rapid.SampledFrom([]int64{-1, 1 << 20, 0}).Draw(rt, "ahead"),
			NoRangeMap:  rapid.Bool().Draw(rt, "no range map"),
			FlushAfter:  time.Hour,
			Soft:        rapid.Bool().Draw(rt, "soft"),
			RetryAfter:  time.Millisecond,
		}
		if rapid.Bool().Draw(rt, "journal") {
			journal = openLog(rt, dir)
			options.Journal = journal
		}
		p.engine = content.New(p.cluster, options)
		defer p.engine.Close(p.ctx)
		for range rapid.IntRange(1, 3).Draw(rt, "handles") {
			p.handles = append(p.handles, p.engine.Open(object, nil, content.Open{}))
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			p.step()
		}
		p.settle(p.handles[0].Flush(p.ctx))
		if p.faults.count() == p.excused {
			if got := p.cluster.Contents(object); !bytes.Equal(got, p.twin) {
				rt.Fatalf("the cluster has %d bytes that differ from the twin's %d", len(got), len(p.twin))
			}
		}
		p.check()
		for _, h := range p.handles {
			h.Close()
		}
		if err := p.engine.Close(p.ctx); err != nil {
			rt.Fatal(err)
		}
		if u := p.engine.Usage(); u.DirtyBytes != 0 || u.Files != 0 {
			rt.Fatalf("left over: %+v", u)
		}
		if journal != nil {
			must(t, journal.Close())
			if p.faults.count() == 0 {
				must(t, openLog(rt, dir).Close())
			}
		}
	})
}

// openLog opens a write journal in which nothing is left over.
func openLog(t *rapid.T, dir string) *writelog.Log {
	log, left, err := writelog.Open(dir, writelog.Options{SegmentBytes: 300 << 10})
	if err != nil || len(left) != 0 {
		t.Fatalf("the journal has %d objects left over, %v", len(left), err)
	}
	return log
}

func ExampleEngine() {
	ctx := context.Background()
	engine := content.New(contenttest.New(), content.Options{})
	h := engine.Open(object, nil, content.Open{})
	_ = h.WriteAt(ctx, []byte("hello"), 0)
	fmt.Println(h.Dirty(), h.Flush(ctx), h.Dirty())
	h.Close()
	_ = engine.Close(ctx)
	// Output: true <nil> false
}
