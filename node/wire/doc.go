// Package wire carries messages between nodes and clients: calls with answers,
// one-way frames, and bodies that never pass through protobuf. Only this package
// and those below it know libp2p, from which they take identities, the encrypted
// and authenticated upgrade of TCP connections, and the resource manager. The
// package knows nothing of slices, sessions or chunks. Frames and queues are in
// wire/framing, Unix sockets in wire/unixsock, relayed connections in wire/relay.
//
// Two peers have one connection for each Class, so that a beacon or an operation
// never waits in a socket behind chunks. A connection is a plain sequence of frames
// under libp2p's TLS (docs/formats/wire.md). The peers negotiate the class in place
// of libp2p's stream multiplexer, and there is none: neither windows nor a second
// pair of goroutines stand between a frame and the socket. Either end may call the
// other, whichever dialled. Processes on one machine use Unix sockets if they know
// them, which are authenticated and not encrypted.
//
// The package is larger than most because reading, writing, calling, serving and
// keeping connections share one state, the link.
//
// A Host is safe for use by many goroutines. Each connection has one goroutine that
// reads and one that writes. The sender itself writes a small frame to a Unix
// socket if nothing else waits there. Handlers registered with Host.Inline and
// Host.Message run on the reading goroutine and must not block.
//
// What a failed call means. A *fault.Error for which Answered holds is the peer's
// own answer. Any other error leaves the outcome unknown: TimedOut and Canceled when
// the context ended, Unreachable when there was no connection or it broke before
// the answer came, Closed when this host was closed. Overloaded and TooLarge without
// Answered mean that nothing was sent.
package wire
