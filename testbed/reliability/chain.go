package reliability

import "slices"

// Chain is a Markov chain in continuous time: how often a second it goes from one
// state to another. The diagonal does not count.
//
// Both solutions take states out one by one (Grassmann, Taksar and Heyman). They
// subtract nothing, so that states of a share of 1e-30 are as exact as the others;
// a general solver of linear equations loses them.
type Chain [][]float64

// Group is the chain of CFS's section 5.1: n servers, each of which fails at a rate,
// and of which one at a time is repaired. The states are the numbers of servers
// that work.
func Group(n int, fails, repairs float64) Chain {
	c := make(Chain, n+1)
	for i := range c {
		c[i] = make([]float64, n+1)
		if i > 0 {
			c[i][i-1] = float64(i) * fails
		}
		if i < n {
			c[i][i+1] = repairs
		}
	}
	return c
}

// clone returns a chain that may be changed.
func (c Chain) clone() Chain {
	out := make(Chain, len(c))
	for i := range c {
		out[i] = slices.Clone(c[i])
	}
	return out
}

// leaves is the rate at which a state is left for one of the first n.
func (c Chain) leaves(state, n int) float64 {
	sum := 0.0
	for j := range n {
		if j != state {
			sum += c[state][j]
		}
	}
	return sum
}

// Shares are the shares of time that the chain spends in its states in the long run.
// Each state must be reached from each.
func (c Chain) Shares() []float64 {
	d := c.clone()
	for k := len(d) - 1; k > 0; k-- {
		out := d.leaves(k, k)
		for i := range k {
			d[i][k] /= out
			for j := range k {
				d[i][j] += d[i][k] * d[k][j]
			}
		}
	}
	shares, sum := make([]float64, len(d)), 1.0
	shares[0] = 1
	for k := 1; k < len(d); k++ {
		for i := range k {
			shares[k] += shares[i] * d[i][k]
		}
		sum += shares[k]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}

// TimeToZero is the mean time until the chain is in its state 0 for the first time,
// from its last state on. State 0 must be reached from each.
func (c Chain) TimeToZero() float64 {
	d := c.clone()
	// Time passes at this pace in each state; a state that is taken out leaves its
	// time to those from which it is entered. The last one stays.
	last := len(d) - 1
	d[1], d[last] = d[last], d[1]
	for i := range d {
		d[i][1], d[i][last] = d[i][last], d[i][1]
	}
	pace := make([]float64, len(d))
	for i := range pace {
		pace[i] = 1
	}
	for k := last; k > 1; k-- {
		out := d.leaves(k, k)
		for i := 1; i < k; i++ {
			through := d[i][k] / out
			pace[i] += through * pace[k]
			for j := range k {
				d[i][j] += through * d[k][j]
			}
		}
	}
	return pace[1] / d[1][0]
}
