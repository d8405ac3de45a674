package calibration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/testbed/wan"
)

// pings is what echo requests brought back.
type pings struct {
	sent int
	rtts []time.Duration
}

// median returns the middle one, or none.
func (p pings) median() time.Duration {
	if len(p.rtts) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(p.rtts))
	return s[len(s)/2]
}

func (p pings) lost() float64 { return 1 - float64(len(p.rtts))/float64(p.sent) }

// ping sends count echo requests from a host, one each interval, and waits for
// the answers. The kernel of the other host answers, and that of this one
// notes when an answer came, so that no program's turn is measured.
func ping(ctx context.Context, n *wan.Network, host string, to netip.Addr, count int, interval, wait time.Duration) (pings, error) {
	fd := -1
	err := n.Do(host, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		return err
	})
	if err != nil {
		return pings{}, fmt.Errorf("open an echo socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return pings{}, err
	}
	p := pings{}
	sent := make([]int64, count)
	start := time.Now()
	for p.sent < count || time.Since(start) < time.Duration(count)*interval+wait && len(p.rtts) < count {
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		left := wait
		if p.sent < count {
			left = time.Until(start.Add(time.Duration(p.sent) * interval))
		}
		if left <= 0 {
			sent[p.sent] = time.Now().UnixNano()
			if err := echo(fd, to, p.sent); err != nil {
				return p, err
			}
			p.sent++
			continue
		}
		if err := answer(fd, sent, &p, min(left, 50*time.Millisecond)); err != nil {
			return p, err
		}
	}
	return p, nil
}

func echo(fd int, to netip.Addr, number int) error {
	b := make([]byte, 16)
	b[0] = 8 // echo request; the kernel fills in identifier and checksum
	binary.BigEndian.PutUint16(b[6:], uint16(number))
	return unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: to.As4()})
}

// answer waits for an answer for at most that long.
func answer(fd int, sent []int64, p *pings, wait time.Duration) error {
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds())+1)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	if ready <= 0 {
		return nil
	}
	b, oob := make([]byte, 256), make([]byte, 128)
	n, on, _, _, err := unix.Recvmsg(fd, b, oob, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EHOSTUNREACH) {
		return nil
	}
	if err != nil {
		return err
	}
	at, ok := stamp(oob[:on])
	number := int(binary.BigEndian.Uint16(b[6:]))
	if ok && n >= 8 && b[0] == 0 && number < len(sent) {
		p.rtts = append(p.rtts, time.Duration(at-sent[number]))
	}
	return nil
}

// stamp returns when the kernel got a packet.
func stamp(oob []byte) (ns int64, ok bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:])), true
		}
	}
	return 0, false
}
