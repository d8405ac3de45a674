package command

import "cartwheel.dev/clients/cartwheel"

// collectorParts is how much of the memory that a mount aims to stay under is
// the garbage collector's, in fifteenths: it does not count what C or the
// kernel keep for the process.
const collectorParts = 11

// collectorAim is what the garbage collector of a mount aims for, in bytes.
func collectorAim(memory int64) int64 {
	if memory == 0 {
		memory = cartwheel.DefaultMemory
	}
	return memory * collectorParts / 15
}
