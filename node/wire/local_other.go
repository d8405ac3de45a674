//go:build !linux && !darwin

package wire

import (
	"errors"
	"io/fs"
	"net"
)

// This system has no Unix sockets that name the user at the other end: hosts
// on it pass over /unix addresses.

const maxLocalPath = 0

var errNoLocal = errors.New("no local connections on this system")

func localUser() uint32                             { return 0 }
func fileUser(fs.FileInfo) uint32                   { return ^uint32(0) }
func refusedByNobody(error) bool                    { return false }
func socketUser(*net.UnixConn) (uint32, error)      { return 0, errNoLocal }
func widen(*net.UnixConn, int)                      {}
func readPlace() (place [placeSize]byte, err error) { return place, errNoLocal }
