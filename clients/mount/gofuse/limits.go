//go:build linux || darwin

package gofuse

const (
	// maxTransfer is the largest read or write in one request.
	maxTransfer = 1 << 20
	// maxInflight bounds the memory of requests being worked on; when it is
	// reached, the kernel waits until one is answered.
	maxInflight = 96 << 20
)
