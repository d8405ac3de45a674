package wire

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/geo-config/fault"
)

// PrivateSocket and SharedSocket are the modes that a Unix socket may have.
// Only processes of this host's user reach a private one, in a directory that
// nobody else may enter. A shared one is open to every user of the machine, as
// a TCP port on loopback is: who connects still proves its identity and is put
// to the gater, and nobody but this host's user may put another socket in its
// place, because its directory may be written by that user only.
const (
	PrivateSocket fs.FileMode = 0o600
	SharedSocket  fs.FileMode = 0o666
)

// MaxSocketPath is how many bytes the path of a Unix socket may have on this
// system; 0: it has none.
const MaxSocketPath = maxLocalPath

const badSocketMode = "a socket's mode must be 0600 or 0666"

// localBuffer is what a Unix socket holds of what was sent and not yet read;
// the system may allow less.
const localBuffer = 1 << 20

// isLocal reports whether an address is a Unix socket's: /unix/PATH.
func isLocal(a ma.Multiaddr) bool { return len(a) == 1 && a[0].Protocol().Code == ma.P_UNIX }

func localPath(a ma.Multiaddr) string { return filepath.FromSlash(a[0].Value()) }

// localSocket is one end of a connection over a Unix socket.
type localSocket struct {
	*quiet
	address ma.Multiaddr
	user    uint32 // of the process at the other end, as the kernel has it
	seat    *seat  // nil where this host dialled
}

// newLocalSocket gives a connection limit for its handshake.
func newLocalSocket(c *net.UnixConn, address ma.Multiaddr, limit time.Duration) (*localSocket, error) {
	user, err := socketUser(c)
	if err != nil {
		return nil, err
	}
	widen(c, localBuffer)
	q, err := hush(c)
	if err != nil {
		return nil, err
	}
	if err := q.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return &localSocket{quiet: q, address: address, user: user}, nil
}

func (s *localSocket) LocalMultiaddr() ma.Multiaddr  { return s.address }
func (s *localSocket) RemoteMultiaddr() ma.Multiaddr { return s.address }

func (s *localSocket) Close() error {
	s.seat.leave()
	return s.quiet.Close()
}

// dialLocal connects to a socket of this machine.
func dialLocal(ctx context.Context, address ma.Multiaddr, limit time.Duration) (*localSocket, error) {
	path := localPath(address)
	if len(path) > maxLocalPath {
		return nil, errors.New("a path too long for a socket of this system")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a Unix socket"), c.Close())
	}
	s, err := newLocalSocket(u, address, limit)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// localListener accepts connections on a Unix socket.
type localListener struct {
	*net.UnixListener
	host    *Host
	address ma.Multiaddr
	file    fs.FileInfo // the socket that this listener made
	madeDir bool        // and its directory

	mu    sync.Mutex     // guards below
	users map[uint32]int // connections of each user of this machine
}

// listenLocal makes the socket. One that a dead process left is replaced.
func listenLocal(h *Host, address ma.Multiaddr, mode fs.FileMode) (*localListener, error) {
	path := localPath(address)
	if len(path) > maxLocalPath {
		return nil, fault.Errorf(fault.Invalid, opListen, path, "a socket's path has at most %d bytes on this system, this one %d", maxLocalPath, len(path))
	}
	madeDir, err := prepareSocketDir(filepath.Dir(path), mode)
	if err != nil {
		return nil, err
	}
	if err := removeStale(path, h.options.Times.Dial); err != nil {
		return nil, err
	}
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fault.Wrap(fault.IO, opListen, path, err)
	}
	u.SetUnlinkOnClose(false) // by then another process may have taken the path
	l := &localListener{UnixListener: u, host: h, address: address, madeDir: madeDir, users: map[uint32]int{}}
	if err = os.Chmod(path, mode); err == nil {
		l.file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.IO, opListen, path, err), l.Close())
	}
	return l, nil
}

// prepareSocketDir makes a socket's directory, or checks the one that is there.
func prepareSocketDir(dir string, mode fs.FileMode) (made bool, err error) {
	perm, forbidden, public := fs.FileMode(0o700), fs.FileMode(0o077), "others may enter the socket's directory: its mode must be 0700"
	if mode == SharedSocket {
		perm, forbidden, public = 0o755, 0o022, "others may write to the socket's directory: its mode must be 0755 or stricter"
	}
	if err = os.Mkdir(dir, perm); err == nil {
		made, err = true, os.Chmod(dir, perm) // whatever the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return made, fault.Wrap(fault.IO, opListen, dir, err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return made, fault.Wrap(fault.IO, opListen, dir, err)
	case !info.IsDir():
		return made, fault.E(fault.Invalid, opListen, dir, "not a directory")
	case fileUser(info) != localUser():
		return made, fault.E(fault.Permission, opListen, dir, "the socket's directory belongs to another user")
	case info.Mode().Perm()&forbidden != 0:
		return made, fault.E(fault.Permission, opListen, dir, public)
	}
	return made, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string, limit time.Duration) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Wrap(fault.IO, opListen, path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fault.E(fault.Exists, opListen, path, "there is a file that is not a socket")
	}
	c, err := net.DialTimeout("unix", path, limit)
	if err == nil {
		_ = c.Close() // it was to see whether somebody answers
		return fault.E(fault.Exists, opListen, path, "another process listens on this socket")
	}
	if !refusedByNobody(err) {
		return fault.Wrap(fault.IO, opListen, path, err)
	}
	return fault.Wrap(fault.IO, opListen, path, os.Remove(path))
}

// Accept implements manet.Listener.
func (l *localListener) Accept() (manet.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		r, err := l.admit(c)
		if err == nil {
			return r, nil
		}
		l.host.options.Logger.Debug("connection on a socket refused", "address", l.address.String(), "error", err)
		_ = c.Close() // it was refused
	}
}

// admit gives a connection its places.
func (l *localListener) admit(c *net.UnixConn) (*raw, error) {
	s, err := newLocalSocket(c, l.address, l.host.options.Times.Handshake)
	if err != nil {
		return nil, err
	}
	r := newRaw(s)
	if s.seat, err = l.sit(s.user); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.stranger = l.host.transport.strangers.enterLocal(s.user, s)
	return r, nil
}

// Multiaddr implements manet.Listener.
func (l *localListener) Multiaddr() ma.Multiaddr { return l.address }

// Close stops listening and removes the socket, unless it is another's by now.
func (l *localListener) Close() error {
	path := localPath(l.address)
	now, err := os.Lstat(path)
	if err == nil && l.file != nil && os.SameFile(now, l.file) {
		_ = os.Remove(path) // the next to listen removes what stays
		if l.madeDir {
			_ = os.Remove(filepath.Dir(path)) // unless there is something else in it
		}
	}
	return l.UnixListener.Close()
}

var errSeats = errors.New("too many connections of one user")

// sit counts a connection of a user.
func (l *localListener) sit(user uint32) (*seat, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[user] >= l.host.options.Limits.PerAddress {
		return nil, errSeats
	}
	l.users[user]++
	return &seat{listener: l, user: user}, nil
}

// seat is what one connection takes of its user's bound.
type seat struct {
	listener *localListener
	user     uint32
	left     bool // guarded by the listener's mutex
}

// leave ends the connection's share. It may be called twice, and on nil.
func (s *seat) leave() {
	if s == nil {
		return
	}
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.left {
		return
	}
	s.left = true
	if l.users[s.user]--; l.users[s.user] == 0 {
		delete(l.users, s.user)
	}
}
