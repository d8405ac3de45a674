package coordinates

import (
	"math"
	"time"
)

// Sites is a Space of sites with several hosts each: sites are as far from each
// other as the nodes of another Space, and the hosts of one site are on a LAN.
type Sites struct {
	Wide  Space
	Hosts int // at each site
}

// lan is the shortest round trip of a LAN, in milliseconds; the longest is twice
// that.
const lan = 0.04

// Size implements Space.
func (s Sites) Size() int { return s.Wide.Size() * s.Hosts }

// RTT implements Space.
func (s Sites) RTT(i, j int) float64 {
	switch {
	case i == j:
		return 0
	case i/s.Hosts == j/s.Hosts:
		return lan * (1 + float64((i+j)%11)/10)
	}
	return s.Wide.RTT(i/s.Hosts, j/s.Hosts)
}

// watch is what a node measures of a true round trip in milliseconds, with clocks
// of so many milliseconds a step: the nearest step, which may be none. Exact
// clocks have steps of 0.
func watch(rtt, step float64) time.Duration {
	if step > 0 {
		rtt = math.Round(rtt/step) * step
	}
	return time.Duration(rtt * float64(time.Millisecond))
}
