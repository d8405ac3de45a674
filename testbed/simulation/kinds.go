package simulation

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Crash     Kind = "crash"      // a node dies, and starts again later
	CrashAll  Kind = "crash-all"  // all of them
	Isolate   Kind = "isolate"    // a node and the other nodes do not hear each other
	CutOff    Kind = "cut-off"    // a node and everybody else do not
	OneWay    Kind = "one-way"    // what a host sends another is held up
	Lag       Kind = "lag"        // what a node sends is slow
	Loss      Kind = "loss"       // much of what a node sends must be sent again
	Away      Kind = "away"       // geo-config cannot be reached
	AwayOne   Kind = "away-one"   // by one node
	Unsure    Kind = "unsure"     // many answers of geo-config are lost
	HandOver  Kind = "hand-over"  // a node is told to pass a slice on
	Suspend   Kind = "suspend"    // a machine neither sends, hears nor writes, and its clock goes on
	ClockRate Kind = "clock-rate" // a machine's clock runs faster or slower from now on
	Reset     Kind = "reset"      // connections break in the middle of what is sent
	Policy    Kind = "policy"     // a slice is to have more copies, or fewer
	WallStep  Kind = "wall-step"  // a machine's time of day is set
	Leave     Kind = "leave"      // a node is stopped in order, and starts again later
	Join      Kind = "join"       // one more node
	LongCrash Kind = "long-crash" // a node is away for longer than members may be failed
	Program   Kind = "client"     // a client's process dies, and starts again later
	DiskFull  Kind = "disk-full"  // a disk has little room
	DiskError Kind = "disk-error" // a write fails
	Rot       Kind = "rot"        // a bit of a disk changes
	Rollback  Kind = "rollback"   // a disk goes back to an older state
	Wipe      Kind = "wipe"       // a disk is emptied
	CutClient Kind = "cut-client" // a client and the nodes do not hear each other
	Depose    Kind = "depose"     // the active is cut off until another one acts, and then acts again
	Diary     Kind = "diary"      // one more client writes, dies and begins again, all the time
	Flap      Kind = "flap"       // each way of a node is cut and healed by itself, again and again
)

// The kinds of orders of administrators that nodes take their time for.
const (
	Drain Kind = "drain" // a node is drained, and has slices again later
	Home  Kind = "home"  // a slice is to be at home elsewhere
)

// Lying are the kinds after which a disk has less than its node promised. A run
// has them only where they are asked for: a slice whose active lost its disk
// may stand still for good.
func Lying() []Kind { return []Kind{Rot, Rollback, Wipe} }

// Untold are the kinds that a run has only where they are asked for: a client that
// dies may have told a program of names that nobody else has seen yet, and the
// next life makes them later. The histories of names do not know that.
func Untold() []Kind { return []Kind{Program} }

// Kinds returns the kinds that a run has if none are named.
func Kinds() []Kind {
	return []Kind{Crash, CrashAll, Isolate, CutOff, OneWay, Lag, Loss, Away, AwayOne, Unsure, HandOver, WallStep, Leave, Join, LongCrash, DiskFull, DiskError,
		CutClient, Depose, Flap, Diary, Suspend, ClockRate, Reset, Policy, Drain, Home}
}
