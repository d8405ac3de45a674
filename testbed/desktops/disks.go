package desktops

import "cartwheel.dev/geo-config/fault"

// disk is one desktop's disk, in bytes.
type disk struct {
	size  int64
	other int64 // what is not the file system's; it never leaves
	used  int64 // by copies of files
}

func (d *disk) free() int64 { return d.size - d.other - d.used }

// fillUp makes the disk full of what is not the file system's.
func (d *disk) fillUp() { d.other += d.free() }

func newDisks(o Options) []disk {
	out := make([]disk, o.Desktops)
	for i := range out {
		out[i] = disk{size: o.DiskBytes, other: int64(float64(o.DiskBytes) * o.Fill)}
	}
	return out
}

// checkDisks compares what the disks hold with the sum of the copies on each.
func checkDisks(disks []disk, sums []int64) error {
	const op fault.Op = "desktops.checkDisks"
	for i := range disks {
		d := &disks[i]
		if d.used != sums[i] {
			return fault.Errorf(fault.Other, op, "", "disk %d says that it has %d bytes of files, and its copies are %d", i, d.used, sums[i])
		}
		if d.free() < 0 || d.used < 0 {
			return fault.Errorf(fault.Other, op, "", "disk %d of %d bytes holds %d of files and %d of others'", i, d.size, d.used, d.other)
		}
	}
	return nil
}

// outcome is what came of an event.
type outcome uint8

const (
	done      outcome = iota + 1
	refused           // there was no room
	missing           // the file is not there, because its creation was refused
	primary           // read from the primary, on the reader's machine
	secondary         // there is another current copy on the reader's machine
	remote            // read from another machine
)

// world is the state of all disks under one policy.
type world interface {
	// put places a file that is there at the start.
	put(Held)
	// begin fills the disks up that are full at the start, when all files are there.
	begin()
	// do does what an event says.
	do(Event) (outcome, error)
	// check looks at every file and every byte: no disk over its size, the copies of
	// a file on different machines, one of them current.
	check() error
	counts() Counts
}

// Counts are what a policy did to keep its disks from overflowing.
type Counts struct {
	// Evicted are secondaries that left a full disk, Moved primaries that did.
	Evicted int `json:"secondaries_evicted"`
	Moved   int `json:"primaries_moved"`
	// Elsewhere are new files whose primary is not on the writer's machine.
	Elsewhere int `json:"created_elsewhere"`
	// Short are files with fewer copies than they should have, at the end, beside
	// those whose secondaries are just about to be made.
	Short int `json:"files_short_of_copies"`
	// Slices is how many there are at the end, where the policy has slices.
	Slices int `json:"slices"`
}
