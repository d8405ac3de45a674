// Package desktops simulates where files lie in an office of desktops whose disks
// are the file system's, in virtual time: which share of reads the reader's own
// machine serves. It is BeeFS's simulation of write-local placement. A generator
// makes months of accesses by users who now and then sit at another machine, and
// several policies serve the same accesses.
//
// The rules of BeeFS and of the baseline are written here. Those of Cartwheel are
// not: the simulator calls the shipped ones (clients/cartwheel/destination,
// node/server/allocation, node/server/placement). No packet is sent, nothing is
// stored, and a run is determined by its Options. Run uses several goroutines of
// its own; everything else here belongs to one.
package desktops

import (
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Policy is a way to place files.
type Policy string

// The policies.
const (
	// BeeRandom and BeeLRU are BeeFS's, which differ in the primaries that leave a
	// full disk: random ones, or the least recently used.
	BeeRandom Policy = "BeeFS, random leaves"
	BeeLRU    Policy = "BeeFS, LRU leaves"
	// CartwheelSites is what ships where each desktop is a site of its own,
	// CartcartwheelOffice what ships where all desktops are one site.
	CartwheelSites      Policy = "Cartwheel, each desktop a site"
	CartcartwheelOffice Policy = "Cartwheel, one site"
	// Random puts every copy on a random machine.
	Random Policy = "random machines"
)

// Policies lists all of them, in the order of the tables.
func Policies() []Policy {
	return []Policy{BeeRandom, BeeLRU, CartwheelSites, CartcartwheelOffice, Random}
}

// Limits of what can be simulated.
const (
	maxCopies   = 3
	maxDesktops = 1000
	maxMonths   = 60
)

// Options say what to simulate; Defaults are those of BeeFS's paper where it prints
// them.
type Options struct {
	Seed     uint64
	Desktops int // each with one user whose desk it is
	// Full is how many disks are full at the start, and Fill the share of every
	// other disk that holds what is not the file system's.
	Full      int
	Fill      float64
	DiskBytes int64
	Copies    int // of each file, the primary among them
	Months    float64
	// Coherence is the time from a file's close until its secondaries are made or
	// brought up to date.
	Coherence time.Duration
	// Move is the probability that a user logs in at another machine.
	Move   float64
	Habits Habits
}

// Defaults are the paper's: 50 desktops of 10 GB, half full, five of them full,
// three copies, eight months. The paper prints no time to coherence.
func Defaults() Options {
	return Options{
		Desktops: 50, Full: 5, Fill: 0.5, DiskBytes: 10e9, Copies: maxCopies, Months: 8, Coherence: 5 * time.Minute,
		Move: 0.2, Habits: DefaultHabits(),
	}
}

// Validate names the first option that cannot be simulated, as Usage.
func (o Options) Validate() error {
	h := o.Habits
	for _, c := range []struct {
		name string
		ok   bool
		want string
	}{
		{"desktops", o.Desktops >= 2 && o.Desktops <= maxDesktops, "2 to 1,000, so that a user can sit elsewhere"},
		{"full", o.Full >= 0 && o.Full < o.Desktops, "0 or more, and fewer than the desktops"},
		{"fill", o.Fill >= 0 && o.Fill < 1, "at least 0 and below 1"},
		{"disk-gb", o.DiskBytes >= 1e8 && o.DiskBytes <= 1e12, "0.1 to 1,000"},
		{"copies", o.Copies >= 1 && o.Copies <= min(maxCopies, o.Desktops), "1 to 3, and at most the number of desktops"},
		{"months", o.Months > 0 && o.Months <= maxMonths, "above 0 and at most 60"},
		{"coherence", o.Coherence >= 0 && o.Coherence <= 24*time.Hour, "0 to 86,400 seconds"},
		{"moves", o.Move >= 0 && o.Move <= 1, "probabilities from 0 to 1"},
		{"locality", h.Locality >= 0 && h.Locality <= 5, "0 to 5"},
		{"opens", h.Opens >= 1 && h.Opens <= 100_000, "1 to 100,000"},
		{"login-days", h.LoginDays >= 1 && h.LoginDays <= 1000, "1 to 1,000"},
		{"files", h.Files >= 1 && h.Files <= 100_000, "1 to 100,000"},
		{"files", float64(h.Files)*float64(o.Copies)*2*meanBytes() < (1-o.Fill)*float64(o.DiskBytes), "few enough for all copies of them to fill half of the room on the disks"},
	} {
		if !c.ok {
			return fault.E(fault.Usage, "desktops.Validate", c.name, "cannot be simulated: give "+c.want)
		}
	}
	return nil
}

// meanBytes is the mean size of a new file.
func meanBytes() float64 { return math.Exp(sizeMu + sizeVariance/2) }

// end is how long the trace lasts.
func (o Options) end() time.Duration {
	return time.Duration(o.Months * 365.25 / 12 * float64(day))
}

// weeks is how many weeks begin within the trace.
func (o Options) weeks() int {
	return int((o.end() + week - 1) / week)
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)
