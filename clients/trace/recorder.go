package trace

import (
	"sync"
	"sync/atomic"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"cartwheel.dev/geo-config/fault"
)

// Bounds of what is kept for watches.
const (
	// maxWatches bounds them: the oldest ends where one more begins.
	maxWatches = 8
	// maxOperations bounds the operations that one watch keeps; of more it
	// keeps the counts.
	maxOperations = 1 << 15
	// maxCalls bounds the calls that are listed of one operation.
	maxCalls = 64
)

// Options set up a Recorder.
type Options struct {
	// Clock measures how long operations take.
	Clock func() time.Duration
	// Below reports whether a thread is one of a process or of its
	// descendants; nil: that cannot be told, and every thread is.
	Below func(thread, process uint32) bool
	// Tracer makes spans of operations and of their calls; nil: none are made.
	Tracer oteltrace.Tracer
}

// Recorder counts the operations of one mount.
type Recorder struct {
	opt    Options
	counts [kinds]counter
	on     atomic.Bool // there are watches

	mu      sync.Mutex // guards watches and what is in them
	watches []*watch
}

// counter is a Count that many add to.
type counter struct {
	n, wan, local, calls atomic.Uint64
	most                 atomic.Int32
	out, in, between     atomic.Int64
	nanos                atomic.Int64
}

// New makes a Recorder.
func New(o Options) *Recorder {
	if o.Below == nil {
		o.Below = func(uint32, uint32) bool { return true }
	}
	return &Recorder{opt: o}
}

// Begin begins an operation; a nil Recorder has none.
func (r *Recorder) Begin(kind Kind, who Caller) *Operation {
	if r == nil {
		return nil
	}
	o := &Operation{kind: kind, who: who, began: r.opt.Clock(), watched: r.on.Load()}
	if r.opt.Tracer != nil {
		o.follow(r.opt.Tracer)
	}
	return o
}

// End counts an operation. Of what it was about, about is asked only where
// somebody watches.
func (r *Recorder) End(o *Operation, about func() string) {
	if r == nil || o == nil {
		return
	}
	took := r.opt.Clock() - o.began
	o.endSpan()
	c := &r.counts[o.kind]
	c.n.Add(1)
	c.nanos.Add(int64(took))
	if o.calls.Load() > 0 || o.wan.Load() > 0 || o.local.Load() > 0 {
		c.calls.Add(uint64(o.calls.Load()))
		c.wan.Add(uint64(o.wan.Load()))
		c.local.Add(uint64(o.local.Load()))
		raise(&c.most, o.wan.Load())
		c.out.Add(o.out.Load())
		c.in.Add(o.in.Load())
		c.between.Add(o.between.Load())
	}
	if o.watched {
		r.show(o, took, about)
	}
}

// EndWork counts background work that no operation claimed.
func (r *Recorder) EndWork(o *Operation, about func() string) {
	if r != nil && o != nil && o.claimed.CompareAndSwap(false, true) {
		r.End(o, about)
	}
}

// Count is what the operations of one kind came to.
type Count struct {
	Kind  string `json:"operation"`
	Count uint64 `json:"count"`
	// WAN and Local are round trips in sequence, summed over the operations;
	// MostWAN is that of the operation with the most.
	WAN     uint64 `json:"wan"`
	MostWAN int    `json:"most_wan"`
	Local   uint64 `json:"local"`
	Calls   uint64 `json:"calls"`
	Out     int64  `json:"out_bytes"`
	In      int64  `json:"in_bytes"`
	Between int64  `json:"between_bytes"`
	Nanos   int64  `json:"time_ns"`
}

// Counts returns what each kind has come to since the mount began; kinds that
// never happened are left out.
func (r *Recorder) Counts() []Count {
	var out []Count
	for k := range r.counts {
		c := &r.counts[k]
		if n := c.n.Load(); n > 0 {
			out = append(out, Count{Kind: Kind(k).String(), Count: n, WAN: c.wan.Load(), MostWAN: int(c.most.Load()), Local: c.local.Load(),
				Calls: c.calls.Load(), Out: c.out.Load(), In: c.in.Load(), Between: c.between.Load(), Nanos: c.nanos.Load()})
		}
	}
	return out
}

// watch is somebody who looks at operations.
type watch struct {
	token   string
	process uint32 // 0: all
	uid     uint32 // 0: all
	counts  [kinds]Count
	list    []Record
	dropped uint64
	known   map[uint32]bool // threads, as Below answered
}

// Record is one operation as a watch keeps it.
type Record struct {
	Kind    string `json:"operation"`
	About   string `json:"path"`
	PID     uint32 `json:"pid"`
	WAN     int    `json:"wan"`
	Local   int    `json:"local"`
	Out     int64  `json:"out_bytes"`
	In      int64  `json:"in_bytes"`
	Between int64  `json:"between_bytes"`
	Nanos   int64  `json:"time_ns"`
	Calls   []Call `json:"calls,omitempty"`
}

// Watch begins to keep the operations of a process and its descendants (0: of
// everybody) and of a user (0: of all) under a token of the caller's choice.
// Work of the kernel's own, such as reading ahead, is nobody's: it is kept for
// those who see all users.
func (r *Recorder) Watch(token string, process, uid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(token)
	if len(r.watches) >= maxWatches {
		r.watches = r.watches[1:]
	}
	r.watches = append(r.watches, &watch{token: token, process: process, uid: uid, known: map[uint32]bool{}})
	r.on.Store(true)
}

// Unwatch ends a watch and gives up what it kept.
func (r *Recorder) Unwatch(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(token)
	r.on.Store(len(r.watches) > 0)
}

func (r *Recorder) drop(token string) {
	for i, w := range r.watches {
		if w.token == token {
			r.watches = append(r.watches[:i:i], r.watches[i+1:]...)
			return
		}
	}
}

func (r *Recorder) find(token string) (*watch, error) {
	for _, w := range r.watches {
		if w.token == token {
			return w, nil
		}
	}
	return nil, fault.E(fault.NotFound, "trace.find", token, "there is no such trace; too many others may have begun since")
}

// Seen returns the counts of a watch, and how many operations it did not keep.
func (r *Recorder) Seen(token string) (counts []Count, dropped uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.find(token)
	if err != nil {
		return nil, 0, err
	}
	for k := range w.counts {
		if c := w.counts[k]; c.Count > 0 {
			counts = append(counts, c)
		}
	}
	return counts, w.dropped, nil
}

// Operations returns what a watch kept, from the one with a number on.
func (r *Recorder) Operations(token string, from, most int) ([]Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.find(token)
	if err != nil {
		return nil, err
	}
	from = min(max(from, 0), len(w.list))
	return append([]Record(nil), w.list[from:min(from+most, len(w.list))]...), nil
}

// show gives an operation to the watches that want it.
func (r *Recorder) show(o *Operation, took time.Duration, about func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var record *Record
	for _, w := range r.watches {
		if !r.wants(w, o) {
			continue
		}
		if record == nil {
			record = o.record(took, about)
		}
		w.keep(o.kind, record)
	}
}

func (r *Recorder) wants(w *watch, o *Operation) bool {
	if w.uid != 0 && o.who.UID != w.uid {
		return false
	}
	if w.process == 0 || o.who.PID == 0 {
		return true
	}
	is, known := w.known[o.who.PID]
	if !known {
		is = r.opt.Below(o.who.PID, w.process)
		w.known[o.who.PID] = is
	}
	return is
}

func (o *Operation) record(took time.Duration, about func() string) *Record {
	x := &Record{Kind: o.kind.String(), PID: o.who.PID, WAN: int(o.wan.Load()), Local: int(o.local.Load()),
		Out: o.out.Load(), In: o.in.Load(), Between: o.between.Load(), Nanos: int64(took)}
	if about != nil {
		x.About = about()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	x.Calls = o.list[:min(len(o.list), maxCalls):min(len(o.list), maxCalls)]
	return x
}

func (w *watch) keep(kind Kind, x *Record) {
	c := &w.counts[kind]
	c.Kind = x.Kind
	c.Count++
	c.WAN += uint64(x.WAN)
	c.MostWAN = max(c.MostWAN, x.WAN)
	c.Local += uint64(x.Local)
	c.Calls += uint64(len(x.Calls))
	c.Out += x.Out
	c.In += x.In
	c.Between += x.Between
	c.Nanos += x.Nanos
	if len(w.list) >= maxOperations {
		w.dropped++
		return
	}
	w.list = append(w.list, *x)
}
