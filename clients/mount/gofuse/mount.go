//go:build linux || darwin

package gofuse

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	defaultBackground = 64
	// maxBackground is how many requests that programs wait for and the kernel
	// counts as its own, such as a large read of a file, are in flight at once. It
	// is far above what the kernel reads ahead (mount.Options.MaxBackground): those
	// who wait for a slice that does not answer must not hold up everybody else. Each
	// may take maxTransfer of memory for its answer, and most take a quarter of it.
	maxBackground    = 512
	defaultReadAhead = 1 << 20
	defaultSubtype   = "cartwheel"
)

// Server is a mounted file system.
type Server struct {
	server   *connection
	notifier *notifier
	point    string
	direct   bool // mounted by mount(2), without fusermount3
	device   string
	done     chan struct{}

	mu   sync.Mutex // guards gone
	gone bool       // the mount point is free again
}

var _ mount.Mounted = (*Server)(nil)

// Mount puts fs in place. When it returns without an error, the kernel has
// been answered and the mount point works. Errors name the mount point and
// what to do.
func Mount(fs mount.FileSystem, o mount.Options) (*Server, error) {
	const op fault.Op = "gofuse.Mount"
	point, err := preparePoint(o)
	if err != nil {
		return nil, err
	}
	m := &Server{notifier: newNotifier(), point: point, direct: direct(), done: make(chan struct{})}
	b := newBinding(fs, m.notifier)
	fs.Init(m.notifier)
	server, err := connect(b, point, m.options(o))
	if err != nil {
		clearFailed(point)
		return nil, explainMount(o, point, err)
	}
	m.server = server
	m.notifier.start(server)
	go m.serve()
	if err := server.waitReady(point); err != nil {
		unmountErr := m.Unmount(mount.UnmountLimit)
		return nil, fault.Wrap(fault.IO, op, point, errors.Join(err, unmountErr))
	}
	m.device = deviceOf(point)
	readAhead := o.ReadAhead
	if readAhead == 0 {
		readAhead = defaultReadAhead
	}
	setReadAhead(m.device, readAhead)
	return m, nil
}

// serve runs until the kernel lets go.
func (m *Server) serve() {
	m.server.Serve()
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.notifier.close()
	m.notifier.wait()
	close(m.done)
}

func (m *Server) options(o mount.Options) *fuse.MountOptions {
	log := o.Log()
	f := &fuse.MountOptions{
		AllowOther: o.AllowOther, FsName: o.FSName, Name: o.Subtype,
		CongestionThreshold: o.MaxBackground, MaxWrite: maxTransfer, MaxInflightRequestBytes: maxInflight,
		EnableLocks: true, EnableAcl: true, EnableSymlinkCaching: true,
		ExplicitDataCacheControl: true,
		DisableSplice:            true,
		DirectMountStrict:        m.direct,
		Debug:                    o.Debug,
		Logger:                   slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		PanicHandler: func(cause any) fuse.Status {
			log.Error("request panicked", slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			return fuse.EIO
		},
		ExtraCapabilities:    capabilities,
		DisabledCapabilities: fuse.CAP_PASSTHROUGH | fuse.CAP_NO_OPEN_SUPPORT,
	}
	if f.Name == "" {
		f.Name = defaultSubtype
	}
	if f.FsName == "" {
		f.FsName = defaultSubtype
	}
	if f.CongestionThreshold == 0 {
		f.CongestionThreshold = defaultBackground
	}
	f.MaxBackground = max(maxBackground, f.CongestionThreshold) // whoever has no privilege may get less of the kernel
	setMountFlags(f, o, m.direct)
	return f
}

// Done implements mount.Mounted.
func (m *Server) Done() <-chan struct{} { return m.done }

// Point answers the absolute path of the mount point.
func (m *Server) Point() string { return m.point }

// pollEvery is the pause between polite attempts to unmount a busy mount.
const pollEvery = 50 * time.Millisecond

// Unmount implements mount.Mounted.
func (m *Server) Unmount(limit time.Duration) error {
	const op fault.Op = "gofuse.Unmount"
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !m.isGone() {
		err := unmountPath(m.point, polite, m.direct)
		if err == nil || errors.Is(err, syscall.EINVAL) || errors.Is(err, os.ErrNotExist) {
			break // EINVAL: somebody else has unmounted it
		}
		if !errors.Is(err, syscall.EBUSY) && m.direct {
			return m.force(err)
		}
		select {
		case <-m.done:
			return nil
		case <-tick.C:
		case <-deadline.C:
			return m.force(err)
		}
	}
	select {
	case <-m.done:
		return nil
	case <-deadline.C:
		return m.force(fault.E(fault.TimedOut, op, m.point, "requests are still being worked on"))
	}
}

// forceLimit is how long requests may take to notice that the mount is gone.
const forceLimit = time.Second

// force ends the connection and takes the name away, whoever uses it: their
// calls fail.
func (m *Server) force(cause error) error {
	const op fault.Op = "gofuse.force"
	gone := m.isGone() // asked before: a connection that was ended looks gone, and the mount is still there
	abortConnection(m.device)
	if !gone {
		if err := unmountPath(m.point, forced, m.direct); err != nil && !errors.Is(err, syscall.EINVAL) {
			cause = errors.Join(cause, err)
		}
	}
	limit := time.NewTimer(forceLimit)
	defer limit.Stop()
	select {
	case <-m.done:
		return nil
	case <-limit.C:
		return fault.Wrap(fault.Busy, op, m.point, cause)
	}
}

// Detach implements mount.Mounted.
func (m *Server) Detach() error {
	const op fault.Op = "gofuse.Detach"
	if m.isGone() {
		return nil
	}
	return fault.Wrap(fault.IO, op, m.point, unmountPath(m.point, lazy, m.direct))
}

func (m *Server) isGone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}
