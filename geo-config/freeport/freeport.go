// Package freeport chooses loopback ports for processes that are told where to
// listen: a demo's nodes, and those that tests start. To ask the system for a
// port, give it back and pass on its number is a race: until the process
// listens, the system may give the number to another, or to a connection.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"

	"cartwheel.dev/geo-config/fault"
)

// Ports come in blocks below the range of which the systems choose by themselves
// (from 32768 on Linux, from 49152 on macOS and Windows). Who listens at a
// block's first port owns the block, in all processes that use this package, and
// loses it when it ends, however it ends.
const (
	firstPort = 10240
	endPort   = 32768
	blockSize = 16
)

// blocks is how many there are.
const blocks = (endPort - firstPort) / blockSize

// Pool gives out ports. The zero value is ready, and owns nothing yet.
type Pool struct {
	mu    sync.Mutex     // guards all below
	owned []net.Listener // the first ports of the blocks
	left  []int          // ports not given out
}

// Take returns a port at which nobody listens on the loopback address. No other
// Pool gives it out while this one is open, in this process or another.
func (p *Pool) Take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.left) > 0 {
			port := p.left[0]
			p.left = p.left[1:]
			if l, err := listen(port); err == nil { // else a stranger has it
				return port, l.Close()
			}
		}
		if err := p.ownLocked(); err != nil {
			return 0, err
		}
	}
}

// Close gives the ports back. Processes may go on to listen at them.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for _, l := range p.owned {
		if err := l.Close(); err != nil && first == nil {
			first = fault.FromOS("freeport.Pool.Close", l.Addr().String(), err)
		}
	}
	p.owned, p.left = nil, nil
	return first
}

// ownLocked takes one more block, with mu held: the first free one from a random one on, so
// that processes that start together seldom try the same.
func (p *Pool) ownLocked() error {
	from := rand.IntN(blocks)
	for i := range blocks {
		first := firstPort + (from+i)%blocks*blockSize
		l, err := listen(first)
		if err != nil {
			continue
		}
		p.owned = append(p.owned, l)
		for port := first + 1; port < first+blockSize; port++ {
			p.left = append(p.left, port)
		}
		return nil
	}
	return fault.E(fault.Busy, "freeport.Pool.Take", fmt.Sprintf("ports %d to %d", firstPort, endPort-1), "are all taken; end some of what listens there")
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}
