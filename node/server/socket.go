package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/node/wire"
)

const socketFile = "wire.sock"

// listenLocal opens the Unix socket for processes on this machine. A node that
// cannot have one goes on without: they use its other addresses.
func (s *Server) listenLocal() {
	path, mode := s.socket()
	if path == "" || wire.MaxSocketPath == 0 {
		return
	}
	if err := s.host.ListenLocal(path, mode); err != nil {
		s.log.Warn("processes on this machine have no socket of their own", "path", path, "error", err)
	}
}

// socket returns the socket's path and mode; the path is empty where there is
// to be none.
func (s *Server) socket() (path string, mode fs.FileMode) {
	switch s.config.Socket {
	case noSocket:
		return "", 0
	case "":
	default:
		return s.config.Socket, wire.SharedSocket
	}
	data, err := filepath.Abs(s.config.Data)
	if err != nil {
		return "", 0
	}
	path = filepath.Join(data, "sock", socketFile)
	if len(path) > wire.MaxSocketPath {
		path = filepath.Join(runtimeDir(), "cartwheel-"+string(s.id), socketFile)
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

// advertised returns the addresses that others are told, the operator's or
// those listened on, and always the sockets: only processes of this machine
// find them.
func (s *Server) advertised() []string {
	all := s.host.Addresses()
	if len(s.config.Advertise) == 0 {
		return all
	}
	out := append([]string(nil), s.config.Advertise...)
	for _, a := range all {
		if strings.HasPrefix(a, "/unix/") {
			out = append(out, a)
		}
	}
	return out
}
