package registration

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire"
)

// NoSocket is the configuration's word for listening on no Unix socket.
const NoSocket = "none"

// socketFile is the name of a node's socket where the operator names none.
const socketFile = "wire.sock"

// Host is what an endpoint asks of the node's connections.
type Host interface {
	// ListenLocal listens on a Unix socket.
	ListenLocal(path string, mode fs.FileMode) error
	// Addresses lists where the host listens, with its sockets.
	Addresses() []string
}

// Endpoint is where others reach the node. Its fields do not change. It is safe
// for concurrent use.
type Endpoint struct {
	Self ids.Node
	Host Host
	// Data is the node's directory. Socket is the path of a socket for all users
	// of this machine, NoSocket, or empty.
	Data, Socket string
	// Advertise lists the addresses that the operator has the node tell others.
	Advertise []string
	Logger    *slog.Logger
}

// ListenLocal opens the Unix socket for processes on this machine. A node that
// cannot have one goes on without: they use its other addresses.
func (e *Endpoint) ListenLocal() {
	path, mode := e.socket()
	if path == "" || wire.MaxSocketPath == 0 {
		return
	}
	if err := e.Host.ListenLocal(path, mode); err != nil {
		e.Logger.Warn("processes on this machine have no socket of their own", logattr.Path(path), logattr.Err(err))
	}
}

// socket returns the socket's path and mode; the path is empty where there is
// to be none.
func (e *Endpoint) socket() (path string, mode fs.FileMode) {
	switch e.Socket {
	case NoSocket:
		return "", 0
	case "":
	default:
		return e.Socket, wire.SharedSocket
	}
	data, err := filepath.Abs(e.Data)
	if err != nil {
		return "", 0
	}
	path = filepath.Join(data, "sock", socketFile)
	if len(path) > wire.MaxSocketPath {
		path = filepath.Join(runtimeDir(), "cartwheel-"+string(e.Self), socketFile)
	}
	return path, wire.PrivateSocket
}

// runtimeDir is where sockets go whose paths would be too long beside the data.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/run"
	}
	return os.TempDir()
}

// Advertised returns the addresses that others are told: the operator's or those
// listened on, and always the sockets. Only processes of this machine find those.
func (e *Endpoint) Advertised() []string {
	all := e.Host.Addresses()
	if len(e.Advertise) == 0 {
		return all
	}
	out := append([]string(nil), e.Advertise...)
	for _, a := range all {
		if strings.HasPrefix(a, "/unix/") {
			out = append(out, a)
		}
	}
	return out
}
