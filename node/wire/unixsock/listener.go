package unixsock

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
)

const op fault.Op = "unixsock.Listen"

// Private and Shared are the modes that a Unix socket may have. Only processes of
// this process's user reach a private one, in a directory that no other user may
// enter. Every user of the machine may connect to a shared one, as to a TCP port
// on loopback: the handshake proves the identity of the peer, and the caller
// decides about it. Other users cannot replace a shared socket, because only its
// owner may write to its directory.
const (
	Private fs.FileMode = 0o600
	Shared  fs.FileMode = 0o666
)

// BadMode is what to say of a mode that is neither Private nor Shared.
const BadMode = "a socket's mode must be 0600 or 0666"

// Config is what a Listener needs. All fields must be set.
type Config struct {
	Mode      fs.FileMode   // Private or Shared
	PerUser   int           // connections of one user; the listener closes further ones
	Dial      time.Duration // how long to look for another process that listens at the path
	Handshake time.Duration // how long a connection has for its handshake
	Logger    *slog.Logger
}

// Listener accepts connections on a Unix socket.
type Listener struct {
	*net.UnixListener
	config  Config
	address ma.Multiaddr
	file    fs.FileInfo // the socket that this listener made
	madeDir bool        // and its directory

	mu    sync.Mutex     // guards below
	users map[uint32]int // connections of each user of this machine
}

// Listen makes the socket. It replaces one that a dead process left.
func Listen(address ma.Multiaddr, config Config) (*Listener, error) {
	path := pathOf(address)
	if len(path) > maxPath {
		return nil, fault.Errorf(fault.Invalid, op, path, "a socket's path has at most %d bytes on this system, this one %d", maxPath, len(path))
	}
	madeDir, err := prepareDir(filepath.Dir(path), config.Mode)
	if err != nil {
		return nil, err
	}
	if err := removeStale(path, config.Dial); err != nil {
		return nil, err
	}
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, path, err)
	}
	u.SetUnlinkOnClose(false) // by then another process may have taken the path
	l := &Listener{UnixListener: u, config: config, address: address, madeDir: madeDir, users: map[uint32]int{}}
	if err = os.Chmod(path, config.Mode); err == nil {
		l.file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.IO, op, path, err), l.Close())
	}
	return l, nil
}

// prepareDir makes a socket's directory, or checks the one that is there.
func prepareDir(dir string, mode fs.FileMode) (made bool, err error) {
	perm, forbidden, public := fs.FileMode(0o700), fs.FileMode(0o077), "others may enter the socket's directory: its mode must be 0700"
	if mode == Shared {
		perm, forbidden, public = 0o755, 0o022, "others may write to the socket's directory: its mode must be 0755 or stricter"
	}
	if err = os.Mkdir(dir, perm); err == nil {
		made, err = true, os.Chmod(dir, perm) // whatever the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return made, fault.Wrap(fault.IO, op, dir, err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return made, fault.Wrap(fault.IO, op, dir, err)
	case !info.IsDir():
		return made, fault.E(fault.Invalid, op, dir, "not a directory")
	case fileUser(info) != User():
		return made, fault.E(fault.Permission, op, dir, "the socket's directory belongs to another user")
	case info.Mode().Perm()&forbidden != 0:
		return made, fault.E(fault.Permission, op, dir, public)
	}
	return made, nil
}

// removeStale removes a socket without a listener.
func removeStale(path string, limit time.Duration) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Wrap(fault.IO, op, path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fault.E(fault.Exists, op, path, "there is a file that is not a socket")
	}
	c, err := net.DialTimeout("unix", path, limit)
	if err == nil {
		_ = c.Close() // the dial only looked for a listener
		return fault.E(fault.Exists, op, path, "another process listens on this socket")
	}
	if !isRefused(err) {
		return fault.Wrap(fault.IO, op, path, err)
	}
	return fault.Wrap(fault.IO, op, path, os.Remove(path))
}

// AcceptConn waits for the next connection that gets a slot of its user's. The
// listener closes and logs the others.
func (l *Listener) AcceptConn() (*Conn, error) {
	for {
		u, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		c, err := l.admit(u)
		if err == nil {
			return c, nil
		}
		l.config.Logger.Debug("connection on a socket refused", slog.String("address", l.address.String()), logattr.Err(err))
		_ = u.Close() // it was refused
	}
}

// admit gives a connection its slot.
func (l *Listener) admit(u *net.UnixConn) (*Conn, error) {
	c, err := newConn(u, l.address, l.config.Handshake)
	if err != nil {
		return nil, err
	}
	if c.slot, err = l.acquire(c.user); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Multiaddr implements manet.Listener.
func (l *Listener) Multiaddr() ma.Multiaddr { return l.address }

// Close stops listening. It removes the socket unless another listener has
// replaced it.
func (l *Listener) Close() error {
	path := pathOf(l.address)
	now, err := os.Lstat(path)
	if err == nil && l.file != nil && os.SameFile(now, l.file) {
		_ = os.Remove(path) // the next listener removes what stays
		if l.madeDir {
			_ = os.Remove(filepath.Dir(path)) // fails if there is something else in it
		}
	}
	return l.UnixListener.Close()
}

var errSlots = errors.New("too many connections of one user")

// acquire counts a connection of a user.
func (l *Listener) acquire(user uint32) (*slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[user] >= l.config.PerUser {
		return nil, errSlots
	}
	l.users[user]++
	return &slot{listener: l, user: user}, nil
}

// slot is the place of one connection within its user's bound.
type slot struct {
	listener *Listener
	user     uint32
	released bool // guarded by the listener's mutex
}

// release frees the slot. It may be called twice, and on nil.
func (s *slot) release() {
	if s == nil {
		return
	}
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.released {
		return
	}
	s.released = true
	if l.users[s.user]--; l.users[s.user] == 0 {
		delete(l.users, s.user)
	}
}
