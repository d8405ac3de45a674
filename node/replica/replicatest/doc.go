// Package replicatest runs whole clusters of package replica in one goroutine,
// in virtual time, from a seed: a network that loses, repeats, delays and
// reorders, also one way only; disks that lose what was not synced; machines
// that crash, restart and stand still while their clocks run on; a
// geo-config whose answers get lost; clients that number their operations,
// try again, and cache what they may. Its checkers say whether a promise was
// broken. It is for tests only; a World belongs to one goroutine, and the
// same seed gives the same run.
package replicatest
