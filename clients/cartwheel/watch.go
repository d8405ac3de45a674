package cartwheel

import "time"

// Known is how many nodes the kernel knows, and how many names it may believe.
func (c *Client) Known() (nodes, names int) { return c.nodes.Known() }

// watchEvery is how late the kernel may be told that the machine slept.
const watchEvery = 250 * time.Millisecond

// watch looks after what the kernel knows, until the Client ends. s began before the
// kernel knew anything.
func (c *Client) watch(s *suspension) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.life.ctx.Done():
			return
		case <-tick.C:
			if s.since(c.opt.Clock(), c.opt.Wall()) {
				// The kernel's timeouts stood still while the machine slept, and the
				// leases behind them ended. It is told of every name that it ever
				// believed: by the clock of the leases none is good any more.
				c.opt.Logger.Info("the machine was suspended: what the kernel knows is looked at anew")
				c.revocation.DropAll(0)
			}
			c.kernel.Release()
			c.nodes.ForgetEnded(c.opt.Clock())
			c.holds.EndLingering()
		}
	}
}

// slept is by how much the clock of leases must have run ahead between two looks:
// more than the clocks drift apart.
const slept = 100 * time.Millisecond

// suspension notices that the machine slept: the clock of leases went on, the one
// that kernels count their timeouts by did not. One goroutine uses it.
type suspension struct {
	start time.Time
	// asleep is how much longer the clock of leases ran since start.
	asleep time.Duration
}

// newSuspension begins to notice.
func newSuspension(boot time.Duration, awake time.Time) *suspension {
	return &suspension{start: awake, asleep: boot}
}

// since reports whether the machine slept since it was asked last.
func (s *suspension) since(boot time.Duration, awake time.Time) bool {
	was := s.asleep
	s.asleep = boot - awake.Sub(s.start)
	return s.asleep-was > slept
}
