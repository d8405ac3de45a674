package meta

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
)

// patient lets Pebble's writes wait while the disk is full. Pebble would end the
// process where its manifest cannot be written, and would try a flush again and
// again without a pause; so it does not hear of a full disk while it is open.
type patient struct {
	fs      vfs.FS
	dir     string
	relieve func()

	mu      sync.Mutex // guards what follows
	open    bool
	wait    chan struct{} // closed while writes wait
	closing chan struct{} // closed once they must not
	refused chan struct{} // closed once a write found no room after that
	told    bool          // refused is closed

	waiting atomic.Bool // they do
	waited  atomic.Bool // they did when the metadata was closed
}

const (
	// enough is how much must be free for writes to go on.
	enough = 1 << 20
	// lookEvery is how often waiting writes look whether there is room.
	lookEvery = 100 * time.Millisecond
)

func newPatient(fs vfs.FS, dir string, relieve func()) *patient {
	if relieve == nil {
		relieve = func() {}
	}
	return &patient{fs: fs, dir: dir, relieve: relieve, wait: make(chan struct{}), closing: make(chan struct{}),
		refused: make(chan struct{})}
}

// onFull runs where a write found the disk full; the write is tried once more
// when it returns.
func (p *patient) onFull() {
	p.relieve()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosingLocked() && !p.told && !p.room() {
		p.told = true
		close(p.refused)
	}
	if !p.open || p.room() {
		return
	}
	p.waiting.Store(true)
	close(p.wait)
	for p.open && !p.room() {
		p.mu.Unlock()
		timer := time.NewTimer(lookEvery)
		select {
		case <-timer.C:
		case <-p.closing:
		}
		timer.Stop()
		p.mu.Lock()
	}
	p.waiting.Store(false)
	p.wait = make(chan struct{})
}

// isClosingLocked reports whether the metadata is being closed; the mutex is held.
func (p *patient) isClosingLocked() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// room reports whether there is enough space, as far as the system says.
func (p *patient) room() bool {
	u, err := p.fs.GetDiskUsage(p.dir)
	return errors.Is(err, vfs.ErrUnsupported) || err == nil && u.AvailBytes >= enough
}

// opened says that the metadata is open: writes wait from now on.
func (p *patient) opened() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
}

// full returns a channel that is closed while writes wait.
func (p *patient) full() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wait
}

// Room reports whether the metadata takes changes without waiting: NoSpace where
// the disk is full and a memtable is too. Pebble waits once three are. Its first
// ones are smaller than the others, and count with their whole size: what a
// start took from the log before must not leave less room for what is deleted.
func (db *DB) Room() error {
	if db.patient.waiting.Load() && db.p.Metrics().MemTable.Size >= 2*db.memtable {
		return fault.E(fault.NoSpace, "meta.Room", "", "the disk is full")
	}
	return nil
}

// closed reports whether the metadata was closed while writes waited.
func (p *patient) closed() bool {
	select {
	case <-p.closing:
		return p.waited.Load()
	default:
		return false
	}
}

// close lets writes wait no more, and reports whether any did.
func (p *patient) close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		p.open = false
		p.waited.Store(p.waiting.Load())
		close(p.closing)
	}
	return p.waited.Load()
}
