// Package relay forwards bytes between two peers that cannot reach each other,
// and chooses between the direct path to a peer and one through a relay. The relay
// knows which peers it connects and how much passes, and nothing of the bytes:
// the peers run their usual handshake through it (docs/formats/wire.md). The
// package keeps no table of peers and makes no connection itself: the caller
// passes in what dials and asks.
//
// A Server is safe for use by many goroutines. Each relayed connection has two
// goroutines, which end with either end or the context of Serve. Connect and
// Choose return when every goroutine that they started has ended.
package relay
