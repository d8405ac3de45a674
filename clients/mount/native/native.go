// Package native mounts a file system with the binding of the system that it
// was built for: go-fuse on Linux and macOS, WinFsp on Windows. It adds nothing
// of its own; everything that it answers is safe for use by many goroutines.
package native

import "cartwheel.dev/clients/mount"

// Mount puts fs in place.
func Mount(fs mount.FileSystem, o mount.Options) (mount.Mounted, error) { return put(fs, o) }
