package native

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/winfsp"
)

func put(fs mount.FileSystem, o mount.Options) (mount.Mounted, error) {
	m, err := winfsp.Mount(fs, o)
	if err != nil {
		return nil, err
	}
	return m, nil
}
