// Package framing holds what a connection carries: frames and their bytes, the
// faults in them, the queue of frames that wait to be written, and the pooled
// memory of frames that came. It knows no connections, peers or handlers, and
// does no I/O but for the writers that the caller passes in. docs/formats/wire.md
// describes the bytes.
//
// A Queue is safe for use by many goroutines, of which one at a time writes. Buffers
// may be used by many. A Frame and a Buffer belong to one goroutine at a time.
package framing
