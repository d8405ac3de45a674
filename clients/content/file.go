package content

import (
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// version is one version of a file's bytes at the active. It is immutable.
type version struct {
	serial uint64
	size   uint64
	inline []byte // all of it, where root is zero
	root   chunk.Root
	// withheld: this client may not read the bytes, which are not in inline.
	withheld bool
}

func versionOf(attr *pb.Attr) (*version, bool) {
	c := attr.GetContent()
	if c == nil && attr.GetSize() > 0 {
		return nil, false
	}
	v := &version{serial: attr.GetVersion(), size: attr.GetSize(), inline: c.GetInline(), withheld: c.GetWithheld()}
	if len(c.GetRoot()) == chunk.AddressSize {
		v.root = chunk.Root{Address: chunk.Address(c.GetRoot()), Height: uint8(c.GetHeight()), Size: attr.GetSize(), Stored: c.GetStored()}
	} else if !v.withheld && uint64(len(v.inline)) != attr.GetSize() {
		return nil, false
	}
	return v, true
}

// file is an object's content as this client sees it: the last version known,
// and what is written over it.
type file struct {
	engine *Engine
	object ids.Object

	mu      sync.Mutex
	handles int
	holds   int           // opens under way
	name    func() string // what a person knows the file by; nil: nothing
	// base is nil while the current version must be asked for. newest is the
	// highest serial seen, so that an older answer is not believed.
	base   *version
	newest uint64
	// doubts counts Invalidate calls. doubted says that one came while base was
	// on its way: base is right for the read that asked, and no later one.
	doubts  uint64
	doubted bool
	// layers are the uncommitted changes, oldest first; only the last may be
	// unfrozen.
	layers  []*layer
	running bool // a goroutine is committing layers
	// wake tells that goroutine of a newly frozen layer.
	wake  chan struct{}
	taken int // how many of layers it has taken

	// failed counts deferred errors; each handle remembers how many it told.
	failed uint64
	err    error
	told   bool // a handle was told of the last one
	// forsaken: the last handle went, and the file may be gone with it.
	// discarded: it is gone, and nothing of it is sent any more.
	forsaken, discarded bool
	dedup               dedup
	// touched counts random reads of each window of the range map.
	touched map[uint64]uint8
}

// open returns the state of an object, made where there is none.
func (e *Engine) open(object ids.Object) *file {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.files[object]
	if f == nil {
		f = e.newFile(object)
	}
	f.mu.Lock()
	f.handles++
	f.forsaken = false
	f.mu.Unlock()
	return f
}

// newFile makes the state of an object; e.mu is held.
func (e *Engine) newFile(object ids.Object) *file {
	f := &file{engine: e, object: object, wake: make(chan struct{}, 1)}
	e.files[object] = f
	return f
}

// fail takes a deferred error down for the handles; f.mu is held.
func (f *file) fail(err error) {
	f.failed, f.err, f.told = f.failed+1, err, false
}

// drop forgets the file where no handle has it open, nothing is dirty, and no
// error waits for the next handle.
func (f *file) drop() {
	e := f.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handles > 0 || f.holds > 0 || len(f.layers) > 0 || f.running || e.files[f.object] != f {
		return
	}
	if f.failed > 0 && !f.told && len(e.untold) < maxUntold {
		e.untold[f.object] = struct{}{}
		return
	}
	delete(e.untold, f.object)
	delete(e.files, f.object)
}

func (f *file) setVersion(attr *pb.Attr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.appending() != nil {
		// Whether this version has the append that is on its way, nobody can
		// tell: ask again when it is done.
		f.base = nil
		return
	}
	f.learn(attr)
}

// appending returns the append layer whose commit is on its way, or nil.
func (f *file) appending() *layer {
	if len(f.layers) > 0 && f.layers[0].appends && f.layers[0].sent {
		return f.layers[0]
	}
	return nil
}

// learn takes a version where it is not older than the newest seen.
func (f *file) learn(attr *pb.Attr) {
	if attr.GetVersion() < f.newest {
		return
	}
	f.newest = attr.GetVersion()
	v, ok := versionOf(attr)
	if !ok {
		if f.base == nil || f.base.serial != f.newest {
			f.base = nil
		}
		return
	}
	f.base, f.doubted = v, false
	f.rebase()
}

// rebase moves append layers to where the size below them now ends.
func (f *file) rebase() {
	size := f.base.size
	for _, l := range f.layers {
		if l.appends {
			l.move(size)
		}
		size = l.size(size)
	}
}

func (f *file) invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = nil
	f.doubts++
}

// known reports whether base is the current version, as far as this client was
// told; the mutex is held.
func (f *file) known() bool { return f.base != nil && !f.doubted }

// size is the file's size with everything dirty; the base must be known.
func (f *file) size() uint64 {
	size := f.base.size
	for _, l := range f.layers {
		size = l.size(size)
	}
	return size
}

func (f *file) overlay(attr *pb.Attr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.layers) == 0 {
		if attr.GetVersion() > f.newest {
			f.base = nil // what is shown of the file is newer than what would be read
		}
		return false
	}
	size := attr.GetSize()
	if f.base != nil {
		size = f.base.size
	}
	var last time.Time
	for _, l := range f.layers {
		size = l.size(size)
		last = l.mtime
	}
	attr.Size = size
	if ns := last.UnixNano(); ns > attr.GetMtimeNs() {
		attr.MtimeNs, attr.CtimeNs = ns, ns
	}
	return true
}

// active returns the layer that writes go to; one of the wrong mode is frozen
// and a new one begun.
func (f *file) active(appends bool, w *Handle) *layer {
	now := f.engine.opt.Now()
	var l *layer
	if n := len(f.layers); n > 0 && !f.layers[n-1].frozen {
		l = f.layers[n-1]
		if l.appends != appends && (l.appends || !l.empty()) {
			f.seal(l, false)
			l = nil
		}
	}
	if l == nil {
		l = f.engine.newLayer(now)
		f.layers = append(f.layers, l)
	}
	if appends && !l.appends {
		l.appends = true
		if f.base != nil {
			l.base = f.size()
		}
	}
	w.wrote = true
	l.mtime, l.as, l.setid = now, w.as, l.setid || w.setid
	return l
}

func (l *layer) empty() bool { return !l.cut && len(l.segs) == 0 && l.extend == 0 }

// seal freezes a layer and sees that it is committed.
func (f *file) seal(l *layer, stream bool) {
	l.frozen, l.stream = true, stream && !l.appends
	if f.running {
		select {
		case f.wake <- struct{}{}:
		default:
		}
		return
	}
	if f.running = f.engine.start(f.run); !f.running {
		f.abandon()
	}
}

// abandon fails all layers: the engine was closed.
func (f *file) abandon() {
	const op fault.Op = "content.file.abandon"
	f.fail(fault.E(fault.Closed, op, f.object.String(), "the engine was closed"))
	for _, l := range f.layers {
		l.err = f.err
		f.engine.end(l)
	}
	f.layers, f.taken = nil, 0
}

// freeze seals what is dirty and returns the last layer, to wait for, or nil.
func (f *file) freeze() *layer {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.layers)
	if n == 0 {
		return nil
	}
	l := f.layers[n-1]
	if !l.frozen {
		f.seal(l, false)
	}
	l.stream = false // somebody waits for the last byte
	return l
}

// freezeIf seals the active layer where cond holds.
func (f *file) freezeIf(cond func(*layer) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.layers); n > 0 && !f.layers[n-1].frozen && cond(f.layers[n-1]) {
		f.seal(f.layers[n-1], false)
	}
}
