// Package historytest drives real nodes and real client libraries in one process
// through a seeded schedule of faults, and judges what the clients saw. Each
// client logs when an operation was invoked and when it returned; an operation
// whose outcome is not known stays open to the end. The checkers are LIN (each
// register, log and group of names is linearizable), DUR (what was acknowledged
// is there at the end, for everybody), CONV (all replicas are normal and equal
// again within a bound) and TIME (no call outlasts the bound). It mounts
// nothing and needs no privilege. A Recorder may be shared by goroutines; the
// rest of a run belongs to the goroutine that called Run, except that each
// actor runs on its own.
//
// The seed fixes the schedule and what each actor does, but not the timing of
// the machine, so that a replay meets the same faults and only probably the
// same interleaving.
package historytest
