package meta

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
)

// trouble passes the errors of Pebble's background work to who waits for it.
type trouble struct {
	mu      sync.Mutex // guards what follows
	err     error
	changed chan struct{} // closed at the next error
}

func newTrouble() *trouble { return &trouble{changed: make(chan struct{})} }

// note is Pebble's BackgroundError event.
func (t *trouble) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	close(t.changed)
	t.changed = make(chan struct{})
}

// watch returns a channel that is closed at the next error.
func (t *trouble) watch() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

func (t *trouble) last() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// kindOf gives an error of Pebble its kind.
func kindOf(err error) fault.Kind {
	switch {
	case err == nil:
		return fault.None
	case vfs.IsNoSpaceError(err):
		return fault.NoSpace
	case pebble.IsCorruptionError(err), errors.Is(err, pebble.ErrDBDoesNotExist):
		return fault.Corrupt
	}
	return fault.IO
}
