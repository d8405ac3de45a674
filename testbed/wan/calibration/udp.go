package calibration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/testbed/wan"
)

const (
	udpHeaders = 28
	udpPort    = 7001
	sendBuffer = 64 << 10 // less than a LAN's queue, so that a sender waits instead of losing
	recvBuffer = 64 << 20
	sendMost   = 60_000 // bytes written in one call
	segments   = 32     // datagrams written in one call
)

// train is numbered datagrams that were sent in a row, and what came of them.
type train struct {
	sent, bytes int // datagrams, and bytes of each with headers
	arrived     int // different ones
	doubled     int
	overtaken   int     // that came after one with a higher number
	altered     int     // whose content was another
	runs        int     // of numbers missing in a row
	stamps      []int64 // when the kernel got each, in order
}

func (t train) lost() float64 { return 1 - float64(t.arrived)/float64(t.sent) }

// windows is into how many a train is cut for its rate.
const windows = 10

// rate returns bits per second: the median of the windows of a train. A sender
// that did not get its turn for a while spoils one of them, a path of another
// rate all.
func (t train) rate() float64 {
	n := len(t.stamps) / windows
	var all []float64
	for i := 1; i < windows && n > 1; i++ { // not the first: queues fill, and may have been read late
		if took := t.stamps[(i+1)*n-1] - t.stamps[i*n-1]; took > 0 {
			all = append(all, float64(n)*float64(t.bytes)*8e9/float64(took))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// send sends count datagrams from host to host as fast as the sender's LAN
// takes them, of that many bytes with their headers, and waits for the last of
// them to arrive.
func send(ctx context.Context, n *wan.Network, from, to string, addr netip.Addr, count, bytes int, settle time.Duration) (train, error) {
	in, err := socket(n, to, udpPort)
	if err != nil {
		return train{}, err
	}
	defer in.Close()
	out, err := socket(n, from, 0)
	if err != nil {
		return train{}, err
	}
	defer out.Close()
	if err := prepare(in); err != nil {
		return train{}, err
	}
	if err := out.SetWriteBuffer(sendBuffer); err != nil {
		return train{}, err
	}
	defer context.AfterFunc(ctx, func() { // which ends what waits
		_ = in.Close()
		_ = out.Close()
	})()
	result := make(chan train, 1)
	var sent atomic.Bool
	go func() { result <- receive(in, count, bytes, settle, &sent) }()
	werr := transmit(out, netip.AddrPortFrom(addr, udpPort), count, bytes-udpHeaders)
	sent.Store(true)
	if werr != nil {
		in.Close()
	}
	t := <-result
	t.sent = count
	return t, errors.Join(werr, ctx.Err())
}

func socket(n *wan.Network, host string, port int) (c *net.UDPConn, err error) {
	err = n.Do(host, func() error {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{Port: port})
		return err
	})
	return c, err
}

// prepare has the kernel note when a datagram came, and keep many.
func prepare(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, recvBuffer))
	})
	return errors.Join(err, cerr)
}

// transmit writes count datagrams, many of them in one call: the kernel cuts
// them apart, so that a sender that seldom gets its turn can still fill a path.
func transmit(c *net.UDPConn, to netip.AddrPort, count, size int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) })
	if err = errors.Join(err, cerr); err != nil {
		return fmt.Errorf("send many datagrams at once: %w", err)
	}
	most := min(segments, sendMost/size)
	b := make([]byte, most*size)
	for i := 0; i < count; i += most {
		n := min(most, count-i)
		for j := range n {
			fill(b[j*size:][:size], i+j)
		}
		if _, err := c.WriteToUDPAddrPort(b[:n*size], to); err != nil {
			return err
		}
	}
	return nil
}

// fill writes a datagram's content: its number, and bytes that follow from it.
func fill(b []byte, number int) {
	binary.BigEndian.PutUint32(b, uint32(number))
	for i := 4; i < len(b); i++ {
		b[i] = byte(number + i)
	}
}

func right(b []byte, number int) bool {
	for i := 4; i < len(b); i++ {
		if b[i] != byte(number+i) {
			return false
		}
	}
	return true
}

// receive takes what arrives until nothing has for settle after all was sent.
func receive(c *net.UDPConn, count, bytes int, settle time.Duration, sent *atomic.Bool) train {
	t := train{bytes: bytes}
	seen := make([]bool, count)
	b, oob := make([]byte, 2048), make([]byte, 128)
	highest := -1
	for {
		_ = c.SetReadDeadline(time.Now().Add(settle)) // it fails when closed, as the read does
		over := sent.Load()
		n, on, _, _, err := c.ReadMsgUDPAddrPort(b, oob)
		if errors.Is(err, os.ErrDeadlineExceeded) && !over {
			continue
		}
		if err != nil {
			break
		}
		number := int(binary.BigEndian.Uint32(b))
		if n != bytes-udpHeaders || number >= count || !right(b[:n], number) {
			t.altered++
			continue
		}
		if seen[number] {
			t.doubled++
			continue
		}
		seen[number] = true
		t.arrived++
		if number < highest {
			t.overtaken++
		}
		highest = max(highest, number)
		if at, ok := stamp(oob[:on]); ok {
			t.stamps = append(t.stamps, at)
		}
	}
	for i := range seen {
		if !seen[i] && (i == 0 || seen[i-1]) {
			t.runs++
		}
	}
	return t
}
