// Package reliability has the papers' models of how long replicated data stays
// available, and simulators that play the same failures event by event: BeanFS's
// formulas and a fleet of servers, CFS's Markov chain, and the members of one slice
// beside the formulas of node/availability. No program of Cartwheel runs, and time
// is virtual. Times are in seconds, and rates are times a second. A run is
// determined by its seed and belongs to one goroutine.
package reliability

// Year is a year of 365 days, in seconds.
const Year = 365 * 24 * 3600.0
