// Package wire carries messages between nodes and clients: calls with answers,
// one-way frames, and bodies that never pass through protobuf. It is the only
// package that knows libp2p, from which it takes identities, the encrypted and
// authenticated upgrade of TCP connections, and the resource manager. It knows
// nothing of slices, sessions or chunks.
//
// Every pair of peers has one connection for each Class, so that a beacon or an
// operation never waits in a socket behind chunks. A connection is a plain
// sequence of frames under libp2p's TLS (docs/formats/wire.md): the class is
// negotiated where libp2p negotiates its stream multiplexer, and there is no
// multiplexer below, so that neither windows nor a second pair of goroutines
// stand between a frame and the socket. Either end may call the other,
// whoever dialled. Processes on one machine use Unix sockets where they know
// them, authenticated by a handshake of this package and not encrypted.
//
// The package is larger than most because reading, writing, calling, serving and
// keeping connections share one state, the link.
//
// A Host is safe for use by many goroutines. Each connection has one goroutine
// that reads and one that writes, though a small frame that goes alone over a
// Unix socket is written by who sends it; handlers registered with Host.Inline and
// Host.Message run on the reading one and must not block.
//
// What a failed call means. A *fault.Error for which Answered holds is the
// peer's own answer. Anything else leaves the outcome unknown: TimedOut and
// Canceled when the context ended, Unreachable when there was no connection or
// it broke before the answer came, Closed when this host was closed.
// Overloaded and TooLarge without Answered mean that nothing was sent.
package wire
