//go:build linux || darwin

package gofuse

// manner is how a mount is taken away.
type manner int

const (
	polite manner = iota // only if nobody uses it
	lazy                 // the name now, the rest when the last user is done
	forced               // now
)
