// Package replica is the deterministic core of the replica groups of one node:
// it orders a slice's operations, replicates them, grants and holds leases,
// takes silent members out, brings them back and takes over, as docs/design.md,
// 4 says. It does no I/O, reads no clock, starts no goroutine, takes no lock
// and knows no chance: a Node is a plain value that one goroutine steps, so
// that a whole cluster runs in one test from a seed. It never looks into an
// operation; package tree does.
//
// # How a driver uses it
//
// One goroutine per process owns the Node. It calls New once and Restore once
// per slice found on disk; then it calls the input methods for everything that
// happened (Receive, Persisted, Held, Propose, Learn, Swapped, Tick, ...), as
// many as are queued, and then Flush once. Every input takes the current time
// of a boottime clock, which must never fall. Flush returns Outputs, which are
// valid until the next Flush; the driver carries them out in this order:
//
//  1. Records go to the journal in one append, in order. When everything up to
//     a Position is on disk, the driver calls Persisted with it. It need not
//     wait: the core sends nothing that promises what is not yet on disk.
//  2. Messages are encoded with AppendMessage (one frame per peer and class)
//     and sent without waiting. Losing, repeating and reordering them is safe.
//  3. Applied entries go to the store (Pebble), in order, in one batch.
//  4. Replies go to the proposers.
//  5. Swaps go to geo-config, each answered by Swapped; Reads are answered by
//     ReadDone, Transfers by TransferBegun and TransferDone or TransferFailed.
//  6. Roles tell what this node now is in a slice.
//
// Tick is called every Config.TickEvery or so and is what makes time pass:
// beacons, resends, silence, takeovers, commit serials for idle slices.
//
// Entries that carry chunk addresses are not acknowledged until the driver has
// said Held for them; it fetches what it lacks when it meets the record.
// Entries and rows handed in or out are shared and must not be modified.
//
// # How it is made
//
// A group is this node's part in one slice. It consists of common, which every
// role needs, and of leading, following and takeover, which belong to an active,
// to a standby or junior, and to a standby whose active is silent. A method of a
// part sees that part and common alone; what needs several parts is a method of
// group. A member is what the node knows of another member: its progress, its
// lease and its tail. Each part states its invariants beside its fields, and
// Node.Valid checks them all. Inputs come in by inputs.go; the other files each
// hold one duty, and call each other in one direction only.
package replica
