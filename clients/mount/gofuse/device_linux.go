package gofuse

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	devFuse = "/dev/fuse"
	helper  = "fusermount3"
)

// openDevice mounts, and returns the connection's end. Programs that this one
// starts do not get it: a child that held it would keep the connection of a
// mount that died, and whoever waits for an answer on it could not even be
// killed.
func openDevice(point string, o *fuse.MountOptions) (*os.File, error) {
	if o.DirectMountStrict {
		return mountDirectly(point, o)
	}
	return mountByHelper(point, o)
}

// mountDirectly is what root does.
func mountDirectly(point string, o *fuse.MountOptions) (*os.File, error) {
	var at unix.Stat_t
	if err := unix.Stat(point, &at); err != nil {
		return nil, err
	}
	fd, err := unix.Open(devFuse, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	words := append([]string{
		fmt.Sprintf("fd=%d", fd), fmt.Sprintf("rootmode=%o", at.Mode&unix.S_IFMT),
		fmt.Sprintf("user_id=%d", os.Geteuid()), fmt.Sprintf("group_id=%d", os.Getegid()),
	}, mountWords(o)...)
	if err := unix.Mount(o.FsName, point, "fuse."+o.Name, o.DirectMountFlags, strings.Join(words, ",")); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), devFuse), nil
}

// mountWords are the options that the kernel and the helper both know.
func mountWords(o *fuse.MountOptions) []string {
	words := append([]string{fmt.Sprintf("max_read=%d", o.MaxWrite)}, o.Options...)
	if o.AllowOther {
		words = append(words, "allow_other")
	}
	return words
}

// helperEscape escapes what would end an option.
var helperEscape = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

// mountByHelper has fusermount3 mount, which hands the device over through a
// socket.
func mountByHelper(point string, o *fuse.MountOptions) (*os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), helper), os.NewFile(uintptr(ends[1]), helper)
	defer ours.Close()
	words := append(mountWords(o), "fsname="+helperEscape.Replace(o.FsName), "subtype="+helperEscape.Replace(o.Name))
	program, err := exec.LookPath(helper)
	if err != nil {
		program = "/bin/" + helper
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "-o", strings.Join(words, ","), "--", point)
	cmd.Stderr, cmd.ExtraFiles = &said, []*os.File{theirs}
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	err = cmd.Run()
	theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", helper, err, bytes.TrimSpace(said.Bytes()))
	}
	return receiveDevice(ours)
}

// receiveDevice takes the descriptor that the helper sent.
func receiveDevice(from *os.File) (*os.File, error) {
	var data [1]byte
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), data[:], control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return nil, err
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) == 1 {
			return os.NewFile(uintptr(fds[0]), devFuse), nil
		}
	}
	return nil, fmt.Errorf("%s handed no device over: %w", helper, syscall.EPROTO)
}
