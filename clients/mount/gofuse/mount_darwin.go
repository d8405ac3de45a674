package gofuse

import (
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const macFUSE = "/Library/Filesystems/macfuse.fs"

// direct is false: macFUSE's own helper mounts.
func direct() bool { return false }

func preparePoint(o mount.Options) (string, error) {
	const op fault.Op = "gofuse.preparePoint"
	point, err := filepath.Abs(o.Point)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, op, o.Point, err)
	}
	if _, err := os.Stat(macFUSE); err != nil {
		return "", fault.E(fault.NoDevice, op, "macFUSE", "not installed: get it from macfuse.io and approve its system extension")
	}
	info, err := os.Stat(point)
	switch {
	case os.IsNotExist(err):
		return "", fault.E(fault.NotFound, op, point, "the mount point does not exist: mkdir -p "+point)
	case err != nil:
		return "", fault.Wrap(fault.IO, op, point, err)
	case !info.IsDir():
		return "", fault.E(fault.NotDirectory, op, point, "the mount point is not a directory")
	}
	return point, nil
}

// clearFailed has nothing to do: macFUSE's helper cleans up after itself.
func clearFailed(string) {}

func explainMount(_ mount.Options, point string, err error) error {
	const op fault.Op = "gofuse.explainMount"
	return &fault.Error{Kind: fault.NotOwner, Op: op, Subject: point,
		Public: "macFUSE refused: its system extension must be approved in the system settings", Cause: err}
}

// setMountFlags hands the options to macFUSE's helper, by its names.
func setMountFlags(f *fuse.MountOptions, o mount.Options, _ bool) {
	f.Options = append(f.Options, "default_permissions", "volname="+f.FsName)
	for _, each := range []struct {
		on   bool
		word string
	}{{o.ReadOnly, "rdonly"}, {!o.SetID, "nosuid"}, {!o.Devices, "nodev"}, {o.NoExecute, "noexec"}} {
		if each.on {
			f.Options = append(f.Options, each.word)
		}
	}
}

func unmountPath(point string, how manner, _ bool) error {
	flags := 0
	if how != polite {
		flags = mntForce
	}
	return syscall.Unmount(point, flags)
}

// mntForce is MNT_FORCE.
const mntForce = 0x80000

func deviceOf(string) string { return "" }

func setReadAhead(string, int) {}

func abortConnection(string) {}
