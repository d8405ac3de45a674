package cue

// Call is a call that a cue may affect, as in WheelFS's Table 2. Calls that
// the table does not name count as the one that they resemble: create, mknod
// and symlink as Open, truncate and fallocate as Write, rename as Link and
// Unlink, access and readlink as Stat, chown, utimens and setxattr as Chmod.
type Call uint16

// The calls of Table 2.
const (
	Open Call = 1 << iota
	Close
	Read
	Write
	Stat
	Mkdir
	Rmdir
	Link
	Unlink
	Readdir
	Chmod
	lastCall

	placing = Open | Mkdir
	copying = Open | Close | Write | Mkdir | Rmdir | Link | Unlink | Chmod
	every   = lastCall - 1
)

// Calls returns every call, in the order of Table 2's columns.
func Calls() []Call {
	var out []Call
	for c := Open; c < lastCall; c <<= 1 {
		out = append(out, c)
	}
	return out
}

// shape is what kind of value a cue takes.
type shape uint8

const (
	noValue shape = iota
	numberValue
	textValue
)

// row is everything that is known of one cue.
type row struct {
	text        string
	shape       shape
	least, most int64  // of a number
	allowed     string // for people
	// persistent cues are fixed in an object when it is created.
	persistent bool
	// honoured cues work today; the others answer NotSupported.
	honoured bool
	// affects is the cue's row in Table 2; .WriteOnce, .Coherence and
	// .Snapshot are not in the paper and ours.
	affects Call
}

// row returns the one table of cues' entry for n.
func (n Name) row() row {
	const copies = "a whole number from 1 to 16"
	switch n {
	case Site:
		return row{".Site", textValue, 0, 0, "a site's name (letters, digits, '-', '_' and '.'), or random", true, true, placing}
	case KeepTogether:
		return row{".KeepTogether", noValue, 0, 0, "no value", true, true, placing}
	case RepSites:
		return row{".RepSites", numberValue, 1, MaxCopies, copies, true, true, copying}
	case RepLevel:
		return row{".RepLevel", numberValue, 1, MaxCopies, copies, true, true, copying}
	case SyncLevel:
		return row{".SyncLevel", numberValue, 0, MaxCopies, "a whole number from 0 to 16, or quorum", false, true, copying}
	case EventualConsistency:
		return row{".EventualConsistency", noValue, 0, 0, "no value", false, true, every}
	case MaxTime:
		return row{".MaxTime", numberValue, 1, MaxTimeLimit, "whole milliseconds from 1 to 86400000", false, true, every}
	case WholeFile:
		return row{".WholeFile", noValue, 0, 0, "no value", false, true, Read | Readdir}
	case Hotspot:
		return row{".Hotspot", noValue, 0, 0, "no value", false, true, Read}
	case WriteOnce:
		return row{".WriteOnce", noValue, 0, 0, "no value", true, true, placing}
	case Coherence:
		return row{".Coherence", numberValue, 1, MaxCoherence, "whole seconds from 1 to 86400", true, true, copying}
	case Snapshot:
		return row{".Snapshot", textValue, 0, 0, "a time such as 2026-01-31T12:00 (local, or with a zone), an age such as -1h (s, m, h, d, w), or a name that a snapshot has", false, true, every}
	}
	return row{}
}

// Persistent reports whether objects keep the cue that they were created under.
// .EventualConsistency is transient for operations, but persists for how
// directories merge.
func (n Name) Persistent() bool { return n.row().persistent }

// Honoured reports whether the cue works today.
func (n Name) Honoured() bool { return n.row().honoured }

// Allowed describes for people which values the cue takes.
func (n Name) Allowed() string { return n.row().allowed }

// Affects reports whether the cue changes what the call does: WheelFS's Table 2.
func (n Name) Affects(c Call) bool { return n.row().affects&c != 0 }
