package gofuse

import "github.com/hanwen/go-fuse/v2/fuse"

// connection is this end of a mount.
type connection struct{ *fuse.Server }

// connect mounts b.
func connect(b *binding, point string, o *fuse.MountOptions) (*connection, error) {
	server, err := fuse.NewServer(b, point, o)
	if err != nil {
		return nil, err
	}
	b.vector = func(_ uint64, pieces [][]byte) fuse.ReadResult { return fuse.ReadResultVector(pieces) }
	return &connection{server}, nil
}

// waitReady waits for the helper, which ends once the kernel has been answered.
func (c *connection) waitReady(string) error { return c.WaitMount() }
