// Package logattr names the attributes of the log lines of nodes and clients,
// so that one key means one thing in every line. It is no logger: loggers are
// handed in where they are used. All its functions are pure and may be called
// from anywhere.
package logattr

import (
	"log/slog"

	"cartwheel.dev/geo-config/ids"
)

// Node names a node.
func Node(id ids.Node) slog.Attr { return slog.String("node", string(id)) }

// Site names a site.
func Site(name ids.Site) slog.Attr { return slog.String("site", string(name)) }

// Slice names a slice.
func Slice(id ids.Slice) slog.Attr { return slog.Uint64("slice", uint64(id)) }

// Epoch numbers a slice's configuration.
func Epoch(e ids.Epoch) slog.Attr { return slog.Uint64("epoch", uint64(e)) }

// Object names an object.
func Object(id ids.Object) slog.Attr { return slog.String("object", id.String()) }

// Client numbers a client.
func Client(id uint64) slog.Attr { return slog.Uint64("client", id) }

// Path names a file or directory of this machine.
func Path(name string) slog.Attr { return slog.String("path", name) }

// Peer names a process at the other end of a connection, by its libp2p peer ID.
func Peer(id string) slog.Attr { return slog.String("peer", id) }

// Err carries an error. Every line of the log has it under this key.
func Err(err error) slog.Attr {
	if err == nil {
		return slog.String("error", "")
	}
	return slog.Any("error", err)
}
