package winfsp

import "cartwheel.dev/clients/mount"

const (
	isWindows    = true
	driver       = "WinFsp"
	driverRemedy = "get it from winfsp.dev"
)

// mountOptions: everything is shown as the mounting user's, and nothing is
// cached by the driver.
func mountOptions(o mount.Options) []string {
	name := o.FSName
	if name == "" {
		name = "cartwheel"
	}
	options := []string{
		"-o", "uid=-1,gid=-1", "-o", "FileSystemName=Cartwheel", "-o", "volname=" + commas(name),
		"-o", "FileInfoTimeout=0",
	}
	if o.ReadOnly {
		options = append(options, "-o", "ro")
	}
	if o.Debug {
		options = append(options, "-d")
	}
	return options
}
