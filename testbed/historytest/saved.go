package historytest

import (
	"context"
	"errors"
	"fmt"

	"cartwheel.dev/clients/mount"
)

// errUnsaved is a change of names that a program was told of and that did not last:
// nobody else saw it, or will.
var errUnsaved = errors.New("what was done here is not saved")

// saved waits until what was done to directories counts for others too. A client
// that has them exclusively tells their active later; where it was cut off for
// longer than its session, the active may have to refuse it.
func saved(ctx context.Context, fs mount.FileSystem, list ...mount.Inode) error {
	for _, dir := range list {
		o, err := fs.OpenDir(ctx, mount.Caller{}, dir)
		if err == nil {
			err = fs.FsyncDir(ctx, mount.Caller{}, dir, o.Handle, false)
			fs.ReleaseDir(dir, o.Handle)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errUnsaved, err)
		}
	}
	return nil
}
