// Package simulation runs a whole cluster of the shipped code in virtual time:
// nodes with their loop, ledger, journal, metadata and transfers, and clients
// with their caches, sessions and retries. Only the network, the disks, the
// clocks and the process of geo-config are simulated, and a seed draws what
// happens to them: cuts, crashes that lose what was not synced, full and
// damaged disks, nodes that join, leave and return. Invariants are checked
// while it runs, and histories at the end.
//
// A run is one bubble of testing/synctest: time passes only when every
// goroutine waits. Goroutines of one instant run in the order that Go chooses,
// on one processor; everything else comes from the seed. A run belongs to one
// goroutine; several runs at once need several processes.
package simulation
