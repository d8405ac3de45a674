//go:build linux || darwin

package native

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
)

func put(fs mount.FileSystem, o mount.Options) (mount.Mounted, error) {
	m, err := gofuse.Mount(fs, o)
	if err != nil {
		return nil, err
	}
	return m, nil
}
