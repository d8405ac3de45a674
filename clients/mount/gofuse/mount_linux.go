package gofuse

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const fuseConf = "/etc/fuse.conf"

// direct reports whether this process mounts by itself, which root does.
func direct() bool { return os.Geteuid() == 0 }

// preparePoint checks what can be checked before the kernel is asked, and
// clears away a mount whose daemon died.
func preparePoint(o mount.Options) (string, error) {
	const op fault.Op = "gofuse.preparePoint"
	point, err := filepath.Abs(o.Point)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, op, o.Point, err)
	}
	if _, err := os.Stat(devFuse); err != nil {
		return "", fault.E(fault.NoDevice, op, devFuse, "no FUSE here: load the kernel module (modprobe fuse), or give the container "+devFuse)
	}
	if !direct() {
		if err := checkHelper(o); err != nil {
			return "", err
		}
	}
	info, err := os.Stat(point)
	if errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED) {
		if err := unmountPath(point, lazy, direct()); err != nil {
			return "", fault.E(fault.Busy, op, point, "a dead mount is in the way: umount -l "+point)
		}
		info, err = os.Stat(point)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fault.E(fault.NotFound, op, point, "the mount point does not exist: mkdir -p "+point)
	case err != nil:
		return "", fault.Wrap(fault.IO, op, point, err)
	case !info.IsDir():
		return "", fault.E(fault.NotDirectory, op, point, "the mount point is not a directory")
	}
	if at := findMount(point); at != nil && strings.HasPrefix(at.kind, "fuse") {
		return "", fault.Errorf(fault.Busy, op, point, "something is mounted here already (%s): umount %s first", at.source, point)
	}
	return point, nil
}

// checkHelper checks what users other than root need.
func checkHelper(o mount.Options) error {
	const op fault.Op = "gofuse.checkHelper"
	if _, err := exec.LookPath(helper); err != nil {
		if _, err := os.Stat("/bin/" + helper); err != nil {
			return fault.E(fault.NotFound, op, helper, "not installed: install the package fuse3, or mount as root")
		}
	}
	if !o.AllowOther {
		return nil
	}
	conf, err := os.ReadFile(fuseConf)
	if err == nil {
		for line := range strings.Lines(string(conf)) {
			if strings.TrimSpace(line) == "user_allow_other" {
				return nil
			}
		}
	}
	return fault.E(fault.NotOwner, op, fuseConf, "allow_other is for root only, unless this file has a line user_allow_other")
}

// clearFailed takes away a mount whose greeting failed after it was made;
// preparePoint saw that there was none of its kind before.
func clearFailed(point string) {
	if at := findMount(point); at != nil && strings.HasPrefix(at.kind, "fuse") {
		_ = unmountPath(point, lazy, direct()) // the failure to mount is what gets reported
	}
}

func explainMount(o mount.Options, point string, err error) error {
	const op fault.Op = "gofuse.explainMount"
	public := ""
	switch {
	case errors.Is(err, syscall.EPERM) && direct():
		public = "the kernel does not let this process mount: it lacks CAP_SYS_ADMIN"
	case !direct():
		public = helper + " refused: it must be setuid root, the mount point must be yours, and AppArmor may confine it to your home, /mnt, /media and /tmp"
	}
	return &fault.Error{Kind: fault.NotOwner, Op: op, Subject: point, Public: public, Cause: err}
}

// setMountFlags puts the options where the kernel or the helper wants them.
func setMountFlags(f *fuse.MountOptions, o mount.Options, direct bool) {
	f.Options = append(f.Options, "default_permissions")
	flags := uintptr(0)
	for _, each := range []struct {
		on   bool
		flag uintptr
		word string
	}{
		{o.ReadOnly, syscall.MS_RDONLY, "ro"},
		{!o.SetID, syscall.MS_NOSUID, "nosuid"},
		{!o.Devices, syscall.MS_NODEV, "nodev"},
		{o.NoExecute, syscall.MS_NOEXEC, "noexec"},
	} {
		if !each.on {
			continue
		}
		flags |= each.flag
		if !direct {
			f.Options = append(f.Options, each.word)
		}
	}
	if flags == 0 {
		flags = syscall.MS_MGC_VAL
	}
	f.DirectMountFlags = flags
}

// umountNoFollow is UMOUNT_NOFOLLOW.
const umountNoFollow = 8

func unmountPath(point string, how manner, direct bool) error {
	const op fault.Op = "gofuse.unmountPath"
	if direct {
		flags := umountNoFollow
		switch how {
		case lazy:
			flags |= syscall.MNT_DETACH
		case forced:
			flags |= syscall.MNT_DETACH | syscall.MNT_FORCE
		case polite:
		}
		return syscall.Unmount(point, flags)
	}
	args := []string{"-u", "-q"}
	if how != polite {
		args = append(args, "-z")
	}
	var stderr bytes.Buffer
	cmd := exec.Command(helper, append(args, "--", point)...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fault.Errorf(fault.Busy, op, point, "%s: %s", helper, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// mountLine is what is needed of a line of mountinfo.
type mountLine struct{ device, point, kind, source string }

// findMount finds the topmost mount on a directory, without touching it.
func findMount(point string) *mountLine {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var found *mountLine
	for line := range strings.Lines(string(table)) {
		if l := parseMountLine(line); l != nil && l.point == point {
			found = l
		}
	}
	return found
}

// parseMountLine reads "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE ...".
func parseMountLine(line string) *mountLine {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 2 {
		return nil
	}
	return &mountLine{device: left[2], point: unescape(left[4]), kind: right[0], source: unescape(right[1])}
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// deviceOf answers MAJOR:MINOR of the mount.
func deviceOf(point string) string {
	if l := findMount(point); l != nil {
		return l.device
	}
	return ""
}

// setReadAhead raises the kernel's read-ahead, where this process may.
func setReadAhead(device string, size int) {
	if device == "" {
		return
	}
	// Best effort: without the right to, the kernel's own 128 KiB stay.
	_ = os.WriteFile("/sys/class/bdi/"+device+"/read_ahead_kb", []byte(strconv.Itoa(size>>10)), 0)
}

// abortConnection makes the kernel fail all that waits for this mount.
func abortConnection(device string) {
	_, minor, ok := strings.Cut(device, ":")
	if !ok {
		return
	}
	// Best effort: the control file system may not be mounted.
	_ = os.WriteFile("/sys/fs/fuse/connections/"+minor+"/abort", []byte("1"), 0)
}
