package wire

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTuneBulk_KernelHoldsLittleUnsent(t *testing.T) {
	node, client := testHost(t), testHost(t)
	if err := client.AddPeer(node.KeyID(), node.Addresses()); err != nil {
		t.Fatal(err)
	}
	for _, class := range [...]Class{Beacon, Operation, Chunk} {
		if _, err := client.Call(t.Context(), node.KeyID(), class, 1, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, h := range []*Host{client, node} {
			other := map[*Host]*Host{client: node, node: client}[h]
			unsent, control := socketOptions(t, h.currentLink(other.KeyID(), class))
			if want := class == Chunk; (unsent == bulkUnsent) != want {
				t.Errorf("%v: the limit of what is not sent is %d; want ours: %v", class, unsent, want)
			}
			t.Logf("%v: %s", class, control) // on the loopback it stays the system's
		}
	}
}

// socketOptions reads what tuneBulk sets.
func socketOptions(t *testing.T, l *link) (unsent int, control string) {
	t.Helper()
	raw, err := l.conn.raw.Conn.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			var errs [2]error
			unsent, errs[0] = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
			control, errs[1] = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			for _, err := range errs {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return unsent, control
}
