//go:build cgofuse && !windows

package winfsp

import "cartwheel.dev/clients/mount"

const (
	isWindows    = false
	driver       = "libfuse"
	driverRemedy = "install the package libfuse2"
)

func mountOptions(o mount.Options) []string {
	options := []string{
		"-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0,use_ino,default_permissions,big_writes",
		"-o", "fsname=" + commas(o.FSName) + ",subtype=cartwheel",
	}
	if o.AllowOther {
		options = append(options, "-o", "allow_other")
	}
	if o.ReadOnly {
		options = append(options, "-o", "ro")
	}
	return options
}
