package fault

// The exit codes of the commands. They are documented and scripts rely on
// them: append only.
const (
	ExitOK          = 0
	ExitFailure     = 1   // anything that has no code of its own
	ExitUsage       = 2   // the command's words or configuration are wrong
	ExitNotFound    = 3   // a path, node, site or slice does not exist
	ExitConflict    = 4   // it exists already, or somebody changed it meanwhile
	ExitUnavailable = 5   // not reachable, timed out, overloaded
	ExitRefused     = 6   // a safety check refused it
	ExitPermission  = 7   // not permitted to this user or key
	ExitBusy        = 8   // in use: a data directory by another process, a mount point
	ExitCorrupt     = 9   // what is on the disk cannot be trusted, or the disk fails
	ExitNewer       = 10  // data or peer of a newer version
	ExitFull        = 11  // no space or quota left
	ExitInterrupted = 130 // stopped by a signal
)

// ExitHelp says in the help of every command what its exit status means.
const ExitHelp = "Exit status: 0 done, 1 failed, 2 wrong words or configuration, 3 not found, 4 exists or changed meanwhile, " +
	"5 unreachable or timed out, 6 refused for safety, 7 not permitted, 8 in use, 9 disk damaged or failing, 10 newer version, " +
	"11 full, 130 interrupted."

// exits is the table from kinds to exit codes.
var exits = [kinds]int{
	None:         ExitOK,
	Other:        ExitFailure,
	NotFound:     ExitNotFound,
	Exists:       ExitConflict,
	Permission:   ExitPermission,
	NotOwner:     ExitPermission,
	NotDirectory: ExitFailure,
	IsDirectory:  ExitFailure,
	NotEmpty:     ExitRefused,
	Invalid:      ExitUsage,
	NameTooLong:  ExitUsage,
	TooManyLinks: ExitFailure,
	CrossDevice:  ExitFailure,
	NoSpace:      ExitFull,
	Quota:        ExitFull,
	TooLarge:     ExitFailure,
	NotSupported: ExitFailure,
	Stale:        ExitNotFound,
	Busy:         ExitBusy,
	Again:        ExitUnavailable,
	Interrupted:  ExitInterrupted,
	TimedOut:     ExitUnavailable,
	Canceled:     ExitInterrupted,
	Unreachable:  ExitUnavailable,
	WrongEpoch:   ExitConflict,
	NotActive:    ExitUnavailable,
	Conflict:     ExitConflict,
	Duplicate:    ExitConflict,
	Expired:      ExitUnavailable,
	Unauthorized: ExitPermission,
	Corrupt:      ExitCorrupt,
	IO:           ExitCorrupt,
	Closed:       ExitUnavailable,
	Overloaded:   ExitUnavailable,
	NoAttribute:  ExitNotFound,
	TooSmall:     ExitFailure,
	Deadlock:     ExitFailure,
	Loop:         ExitFailure,
	ReadOnly:     ExitRefused,
	NewerVersion: ExitNewer,
	WrongCluster: ExitRefused,
	NoLocks:      ExitUnavailable,
	TextBusy:     ExitBusy,
	Missing:      ExitFailure,
	LostLock:     ExitFailure,
	Usage:        ExitUsage,
	NoDevice:     ExitNotFound,
	BadHandle:    ExitFailure,
	ClockSkew:    ExitRefused,
}

// ExitCode returns what a command that failed with this kind exits with.
func (k Kind) ExitCode() int { return exits[k.known()] }
