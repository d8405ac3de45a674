// Package unixsock makes authenticated connections between processes of one
// machine over Unix sockets: it dials, listens, and runs the handshake that
// docs/formats/wire.md describes. It encrypts nothing, because the bytes stay in
// one kernel. It knows no frames and no hosts, and does not decide which peers
// may connect: a caller does that once the handshake has named the peer. On
// systems without sockets that name the peer's user, MaxPath is 0 and everything
// fails.
//
// A Conn has one reader and one writer at a time, and Close may come from anywhere.
// A Listener is safe for use by many goroutines. A Security is read-only.
package unixsock
