package emulator

import (
	"fmt"
	"unsafe"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/wan"
)

// tun is a site's gateway. The device goes when it is closed.
type tun struct {
	fd     int
	handle *netlink.Handle // asks in the site's namespace
}

// openTun makes the TUN device of a site. It hands over TCP and UDP as the
// kernel's own big packets, with their checksums left to be filled in.
func openTun(namespace string) (*tun, error) {
	ns, err := vnetns.GetFromPath(netns.Path(namespace))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		return nil, err
	}
	t := &tun{fd: -1, handle: handle}
	err = netns.Do(namespace, func() error {
		t.fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("/dev/net/tun: %w", err)
		}
		req, err := unix.NewIfreq(wan.Gateway)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if err := unix.IoctlIfreq(t.fd, unix.TUNSETIFF, req); err != nil {
			return fmt.Errorf("make a TUN device: %w", err)
		}
		const offload = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
		for _, more := range []int{unix.TUN_F_USO4 | unix.TUN_F_USO6, 0} { // before Linux 6.2 not for UDP
			if err = unix.IoctlSetInt(t.fd, unix.TUNSETOFFLOAD, offload|more); err == nil {
				return nil
			}
		}
		return fmt.Errorf("offload to a TUN device: %w", err)
	})
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// unread returns how many packets the kernel dropped since nobody read them.
func (t *tun) unread() (uint64, error) {
	l, err := t.handle.LinkByName(wan.Gateway)
	if err != nil {
		return 0, err
	}
	return l.Attrs().Statistics.TxDropped, nil
}

func (t *tun) close() {
	if t.fd >= 0 {
		unix.Close(t.fd)
	}
	t.handle.Close()
}

// read and write do not tell Go's scheduler that they are system calls: they
// never block, and handing the thread's turn to another costs more than they.

func read(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func write(fd int, b []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return errno
}

// wait blocks until one of the descriptors is ready, the time is over, or Go
// wants the thread to stop for a moment, for which it sends a signal: EINTR. It
// does not tell Go's scheduler either, which would watch every one of some
// thousand waits a second, with a timer of its own.
func wait(epoll int, events []unix.EpollEvent, timeout int64) (int, unix.Errno) {
	ts := unix.NsecToTimespec(timeout)
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	return int(n), errno
}
