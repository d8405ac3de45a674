package calibration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/testbed/wan"
)

const tcpPort = 7002

// flow is one connection that sends all it can.
type flow struct{ from, to string }

// pour runs flows at once and returns the rate of each, in bits per second of
// IP packets, between warm and warm+length after they began: all packets that
// came, those too that came in disorder behind one that TCP itself had lost in
// the path's queue. control is the congestion control, the system's if empty.
func pour(ctx context.Context, n *wan.Network, flows []flow, control string, warm, length time.Duration) ([]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, err := n.Config(ctx)
	if err != nil {
		return nil, err
	}
	ins := make([]net.Conn, len(flows))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i, f := range flows {
		out, in, err := join(ctx, n, f, address(&config, f.to), uint16(tcpPort+i), control)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { // at the latest when pour returns
			_ = out.Close()
			_ = in.Close()
		})
		ins[i] = in
		wg.Go(func() { _, _ = io.Copy(io.Discard, in) }) // it ends by being closed
		wg.Go(func() { _, _ = io.Copy(out, zeros{}) })
	}
	before, err := sample(ctx, ins, warm)
	if err != nil {
		return nil, err
	}
	after, err := sample(ctx, ins, length)
	if err != nil {
		return nil, err
	}
	rates := make([]float64, len(flows))
	for i := range rates {
		packets := after[i].packets - before[i].packets
		rates[i] = float64(packets) * full * 8 / after[i].at.Sub(before[i].at).Seconds()
	}
	return rates, nil
}

// reading is how many packets with content a connection had received at a
// time; the flows here fill every packet. The number wraps.
type reading struct {
	packets uint32
	at      time.Time
}

// sample waits and then asks the kernel what each connection received. What
// this program has read of that depends on when it gets its turn, and what the
// kernel could give it so far on whether a packet is missing just then.
func sample(ctx context.Context, ins []net.Conn, wait time.Duration) ([]reading, error) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := make([]reading, len(ins))
	for i, in := range ins {
		raw, err := in.(*net.TCPConn).SyscallConn()
		if err != nil {
			return nil, err
		}
		cerr := raw.Control(func(fd uintptr) { out[i], err = received(int(fd)) })
		if err = errors.Join(err, cerr); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const (
	atOnce = 500 * time.Microsecond // within which a reading and its time are taken
	asks   = 20                     // until they are
)

// received reads what a connection received, and when: again where this
// program lost its turn between the two.
func received(fd int) (r reading, err error) {
	for range asks {
		before := time.Now()
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return r, err
		}
		r = reading{info.Data_segs_in, before}
		if time.Since(before) < atOnce {
			break
		}
	}
	return r, nil
}

func address(c *wan.Config, host string) netip.Addr {
	for _, h := range c.Hosts() {
		if h.Name == host {
			return h.Addr
		}
	}
	return netip.Addr{}
}

// join connects two hosts.
func join(ctx context.Context, n *wan.Network, f flow, to netip.Addr, port uint16, control string) (out, in net.Conn, err error) {
	var l net.Listener
	err = n.Do(f.to, func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept() // nil when the listener is closed
		accepted <- c
	}()
	err = n.Do(f.from, func() (err error) {
		out, err = (&net.Dialer{}).DialContext(ctx, "tcp4", netip.AddrPortFrom(to, port).String())
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if in = <-accepted; in == nil {
		out.Close()
		return nil, nil, errors.New("a connection was made that nobody accepted")
	}
	if control != "" {
		raw, err := out.(*net.TCPConn).SyscallConn()
		if err == nil {
			cerr := raw.Control(func(fd uintptr) {
				err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, control)
			})
			err = errors.Join(err, cerr)
		}
		if err != nil {
			out.Close()
			in.Close()
			return nil, nil, fmt.Errorf("congestion control %s: %w", control, err)
		}
	}
	return out, in, nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// jain returns Jain's index of fairness: 1 if all are equal, 1/n if one has all.
func jain(v []float64) float64 {
	var sum, squares float64
	for _, x := range v {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(v)) * squares)
}
