//go:build !windows

package command

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/geo-config/fault"
	"golang.org/x/sys/unix"
)

// hangup drops the caches.
var hangup = []os.Signal{syscall.SIGHUP} //nolint:gochecknoglobals // a constant

// stopSignal ends a mount in order.
const stopSignal = syscall.SIGTERM

// ownSession frees a child from this terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// placeOf makes a mount point absolute.
func placeOf(point string) (string, error) { return filepath.Abs(point) }

// checkPlace refuses a place that cannot be mounted on, before anything else is
// tried. A mount whose process died is no hindrance: mounting takes it away.
func checkPlace(point string) error {
	const op fault.Op = "command.checkPlace"
	st, err := os.Stat(point)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fault.E(fault.NotFound, op, point, "there is no such directory: make it first")
	case errors.Is(err, syscall.ENOTCONN):
		return nil
	case err != nil:
		return fault.FromOS(op, point, err)
	case !st.IsDir():
		return fault.E(fault.NotDirectory, op, point, "is not a directory")
	}
	if real, err := filepath.EvalSymlinks(point); err == nil && mountedAs(real) == ourKind {
		return fault.Errorf(fault.Busy, op, point, "Cartwheel is mounted there already; `cartwheel umount %s` ends it", point)
	}
	return nil
}

// lock takes the lock on a file, and reports whether it could.
func lock(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }

// notifyReady tells systemd, where it asked for that.
func notifyReady(e *env) {
	socket := e.getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return // systemd will time out and say so
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("READY=1")) // likewise
}
