//go:build windows || cgofuse

package winfsp

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/winfsp/cgofuse/fuse"
)

const (
	opMount   fault.Op = "winfsp.Mount"
	opUnmount fault.Op = "winfsp.Unmount"

	// readyLimit is how long the driver may take to put a mount in place.
	readyLimit = 20 * time.Second
	pollEvery  = 100 * time.Millisecond
)

// Server is a mounted file system. A process mounts only one: cgofuse's
// library keeps state that a second mount would meet.
type Server struct {
	host  *fuse.FileSystemHost
	point string
	done  chan struct{}

	mu     sync.Mutex // guards failed
	failed error      // why host.Mount came back, if not by an unmount
}

var _ mount.Mounted = (*Server)(nil)

// Mount puts fs in place. A missing driver is an error that says where to get
// it.
func Mount(fs mount.FileSystem, o mount.Options) (*Server, error) {
	n := &notifier{}
	b := &binding{fs: fs, notifier: n, foldCase: isWindows, windows: isWindows,
		ready: make(chan struct{}), open: map[uint64]opened{}}
	fs.Init(n)
	m := &Server{point: o.Point, done: make(chan struct{})}
	m.host = fuse.NewFileSystemHost(b)
	m.host.SetCapCaseInsensitive(isWindows)
	m.host.SetCapDeleteAccess(isWindows)
	m.host.SetUseIno(!isWindows)
	go m.serve(o)
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-b.ready:
		return m, nil
	case <-m.done:
		return nil, m.failure()
	case <-limit.C:
		m.host.Unmount()
		return nil, fault.E(fault.TimedOut, opMount, o.Point, "the driver does not answer")
	}
}

// serve runs until the mount is gone. cgofuse panics where there is no driver.
func (m *Server) serve(o mount.Options) {
	defer close(m.done)
	defer func() {
		if cause := recover(); cause != nil {
			m.fail(fault.E(fault.NoDevice, opMount, driver, fmt.Sprintf("not installed (%v): %s", cause, driverRemedy)))
		}
	}()
	if !m.host.Mount(o.Point, mountOptions(o)) {
		m.fail(fault.E(fault.Busy, opMount, o.Point, "the driver refused: the mount point must be free, and exist only as far as its system wants"))
	}
}

func (m *Server) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
}

func (m *Server) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil {
		return fault.E(fault.IO, opMount, m.point, "the mount went away at once")
	}
	return m.failed
}

// Done implements mount.Mounted.
func (m *Server) Done() <-chan struct{} { return m.done }

// Point answers the mount point.
func (m *Server) Point() string { return m.point }

// Detach implements mount.Mounted; the driver knows only one way.
func (m *Server) Detach() error {
	m.host.Unmount()
	return nil
}

// Unmount implements mount.Mounted.
func (m *Server) Unmount(limit time.Duration) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		m.host.Unmount()
		select {
		case <-m.done:
			return nil
		case <-tick.C:
		case <-deadline.C:
			return fault.E(fault.Busy, opUnmount, m.point, "files are still in use")
		}
	}
}

// commas keeps a value from ending an option.
func commas(s string) string { return strings.ReplaceAll(s, ",", "_") }
