package mount

import (
	"log/slog"
	"time"
)

// Options says where and how to mount.
type Options struct {
	// Point is the directory to mount on; on Windows a drive letter ("X:"),
	// "*", or a directory that does not exist yet.
	Point string
	// FSName is the first column of df; Subtype makes the type fuse.SUBTYPE.
	FSName, Subtype string
	// AllowOther lets users other than the mounting one in.
	AllowOther bool
	ReadOnly   bool
	// SetID and Devices honour set-id bits and device files, for root only.
	SetID, Devices bool
	NoExecute      bool
	// MaxBackground is from how many requests of the kernel's own in flight
	// (read-ahead, pages of mappings) on it reads nothing ahead; 0: 64. What a
	// program waits for goes on.
	MaxBackground int
	// ReadAhead is the kernel's read-ahead in bytes; 0: 1 MiB. Setting more
	// than 128 KiB works for root on Linux only, and is skipped elsewhere.
	ReadAhead int
	// Debug logs every request.
	Debug bool
	// Logger takes what nobody can be answered with; nil: none.
	Logger *slog.Logger
}

// Mounted is a file system in place.
type Mounted interface {
	// Unmount takes it away: politely while there is hope, and by force when
	// limit has passed. It returns soon after limit whatever happens, and may
	// be called again.
	Unmount(limit time.Duration) error
	// Detach takes the name away at once; who has files open keeps them, and
	// Done closes when the last is closed.
	Detach() error
	// Done is closed when the kernel has let go and Destroy has returned.
	Done() <-chan struct{}
}

// UnmountLimit is how long a polite unmount waits by default.
const UnmountLimit = 5 * time.Second

// Log answers the logger to use.
func (o Options) Log() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}
