package fault

import "fmt"

// Kind classifies failures. The numbers are stored and sent: append only.
type Kind uint32

// The kinds.
const (
	None         Kind = 0
	Other        Kind = 1  // nothing else fits
	NotFound     Kind = 2  // no such name, object, node, slice
	Exists       Kind = 3  // the name is taken
	Permission   Kind = 4  // not permitted to this principal (EACCES)
	NotOwner     Kind = 5  // only the owner or a privileged user may (EPERM)
	NotDirectory Kind = 6  //
	IsDirectory  Kind = 7  //
	NotEmpty     Kind = 8  //
	Invalid      Kind = 9  // the request makes no sense
	NameTooLong  Kind = 10 //
	TooManyLinks Kind = 11 //
	CrossDevice  Kind = 12 //
	NoSpace      Kind = 13 //
	Quota        Kind = 14 //
	TooLarge     Kind = 15 // file, frame or range beyond a limit
	NotSupported Kind = 16 //
	Stale        Kind = 17 // the object or lease is gone
	Busy         Kind = 18 // held by somebody else
	Again        Kind = 19 // would block; try again at once or later
	Interrupted  Kind = 20 //
	TimedOut     Kind = 21 // no answer within the limit: the outcome is unknown
	Canceled     Kind = 22 //
	Unreachable  Kind = 23 // no connection to the peer
	WrongEpoch   Kind = 24 // the answer carries the newer slice row
	NotActive    Kind = 25 // this node does not act for the slice now
	Conflict     Kind = 26 // compare-and-swap lost: read again
	Duplicate    Kind = 27 // already done; the first result stands
	Expired      Kind = 28 // registration or session has ended
	Unauthorized Kind = 29 // unknown key, wrong cluster
	Corrupt      Kind = 30 // a checksum or an invariant does not hold
	IO           Kind = 31 // disk or device
	Closed       Kind = 32 // the thing was closed
	Overloaded   Kind = 33 // a queue is full
	NoAttribute  Kind = 34 // no such extended attribute
	TooSmall     Kind = 35 // the buffer given is too small (ERANGE)
	Deadlock     Kind = 36 //
	Loop         Kind = 37 // too many symbolic links, or a directory into itself
	ReadOnly     Kind = 38 //
	NewerVersion Kind = 39 // data or peer of a newer version
	WrongCluster Kind = 40 //
	NoLocks      Kind = 41 // the table of locks is full
	TextBusy     Kind = 42 //
	Missing      Kind = 43 // chunks that an operation needs are not here
	LostLock     Kind = 44 // a lock was lost; the holder's next write fails
	Usage        Kind = 45 // a command's words are wrong
	NoDevice     Kind = 46 // ENXIO
	BadHandle    Kind = 47 // EBADF
	ClockSkew    Kind = 48 // a timestamp too far ahead of this clock
	kinds             = 49
)

var kindNames = [kinds]string{
	"none", "other", "not found", "exists", "permission denied", "operation not permitted", "not a directory",
	"is a directory", "directory not empty", "invalid", "name too long", "too many links", "across slices",
	"no space", "quota exceeded", "too large", "not supported", "stale", "busy", "try again", "interrupted",
	"timed out", "canceled", "unreachable", "wrong epoch", "not the active", "conflict", "duplicate", "expired",
	"unauthorized", "corrupt", "input/output error", "closed", "overloaded", "no such attribute", "buffer too small",
	"deadlock", "loop", "read-only", "newer version", "wrong cluster", "no locks", "text file busy", "missing chunks",
	"lock lost", "usage", "no such device", "bad handle", "clock skew",
}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint32(k))
}

// Kinds returns every kind, for tests of the tables.
func Kinds() []Kind {
	out := make([]Kind, 0, kinds)
	for k := None; k < kinds; k++ {
		out = append(out, k)
	}
	return out
}
