package wan

import (
	"fmt"
	"math/bits"
	"time"
)

// MaxLateness is what the 99th percentile of lateness may be in a run that
// counts.
const MaxLateness = time.Millisecond

// Stats is what an emulator counted between its start, or another Stats, and
// now.
type Stats struct {
	Elapsed  time.Duration     `json:"elapsed_ns"`
	CPU      time.Duration     `json:"cpu_ns"`   // user and system time of the emulator's process
	Late     Histogram         `json:"late"`     // how much later than intended packets left
	Wait     Histogram         `json:"wait"`     // how long packets may have waited to be read
	Held     int               `json:"held"`     // packets that wait or are under way now
	Priority int               `json:"priority"` // real-time priority; 0 means that it was not permitted
	Pairs    map[Pair]Counters `json:"pairs"`
	Sites    map[string]Lost   `json:"sites"`
}

// Lost counts what got lost at a site without the WAN being asked to lose it.
type Lost struct {
	Unread   uint64 `json:"unread"`   // dropped by the kernel before the emulator read them
	Unknown  uint64 `json:"unknown"`  // to no host of the network, or not IPv4
	Memory   uint64 `json:"memory"`   // no room to hold them
	Unwanted uint64 `json:"unwanted"` // the kernel did not take them
}

// Counters counts the packets of a pair of sites.
type Counters struct {
	Packets   uint64 `json:"packets"` // that came to the path
	Bytes     uint64 `json:"bytes"`
	Delivered uint64 `json:"delivered"` // that left it, doubles too
	Through   uint64 `json:"delivered_bytes"`
	Loss      uint64 `json:"lost"`        // by Loss
	Queue     uint64 `json:"queue_full"`  // the path's queue was full
	UpQueue   uint64 `json:"uplink_full"` //
	DownQueue uint64 `json:"downlink_full"`
	Cut       uint64 `json:"cut"`
	Off       uint64 `json:"off"` // a site was off
	Doubled   uint64 `json:"doubled"`
	Reordered uint64 `json:"reordered"`
	Corrupted uint64 `json:"corrupted"`
	Garbled   uint64 `json:"garbled"`
}

// Void says why measurements of this time do not count, or nothing if they do.
func (s *Stats) Void() string {
	for what, h := range map[string]*Histogram{"left late": &s.Late, "waited to be read": &s.Wait} {
		if p99 := h.Quantile(0.99); p99 > MaxLateness {
			return fmt.Sprintf("void: the emulator was too slow: 1 %% of the packets %s by more than %v (limit %v)", what, p99, MaxLateness)
		}
	}
	for site, l := range s.Sites {
		if n := l.Unread + l.Memory + l.Unwanted; n > 0 {
			return fmt.Sprintf("void: %d packets of site %s were lost that should not be: %+v", n, site, l)
		}
	}
	return ""
}

// Load returns the share of one core that the emulator used.
func (s *Stats) Load() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return s.CPU.Seconds() / s.Elapsed.Seconds()
}

// Since returns what was counted after earlier.
func (s *Stats) Since(earlier *Stats) *Stats {
	out := *s
	out.Elapsed -= earlier.Elapsed
	out.CPU -= earlier.CPU
	out.Late.sub(&earlier.Late)
	out.Wait.sub(&earlier.Wait)
	out.Pairs, out.Sites = map[Pair]Counters{}, map[string]Lost{}
	for p, c := range s.Pairs {
		out.Pairs[p] = c.since(earlier.Pairs[p])
	}
	for name, l := range s.Sites {
		e := earlier.Sites[name]
		out.Sites[name] = Lost{l.Unread - e.Unread, l.Unknown - e.Unknown, l.Memory - e.Memory, l.Unwanted - e.Unwanted}
	}
	return &out
}

func (c Counters) since(e Counters) Counters {
	return Counters{
		Packets: c.Packets - e.Packets, Bytes: c.Bytes - e.Bytes, Delivered: c.Delivered - e.Delivered, Through: c.Through - e.Through,
		Loss: c.Loss - e.Loss, Queue: c.Queue - e.Queue, UpQueue: c.UpQueue - e.UpQueue, DownQueue: c.DownQueue - e.DownQueue,
		Cut: c.Cut - e.Cut, Off: c.Off - e.Off,
		Doubled: c.Doubled - e.Doubled, Reordered: c.Reordered - e.Reordered, Corrupted: c.Corrupted - e.Corrupted, Garbled: c.Garbled - e.Garbled,
	}
}

// Each power of two of nanoseconds is split into this many steps, so that a
// quantile is at most an eighth too high.
const (
	histogramSteps = 8
	histogramPower = 36 // the last holds a minute and more
)

// Histogram counts durations. Its zero value is empty.
type Histogram struct {
	Counts  [histogramPower * histogramSteps]uint64 `json:"counts"`
	Longest time.Duration                           `json:"longest_ns"` // of the whole run
}

// Add counts one duration; negative ones count as none.
func (h *Histogram) Add(d time.Duration) {
	h.Longest = max(h.Longest, d)
	h.Counts[slot(d)]++
}

func slot(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < histogramSteps {
		return int(n)
	}
	power := bits.Len64(n) - 4 // n>>power is 8 to 15
	return min((power+1)*histogramSteps+int(n>>power)-histogramSteps, histogramPower*histogramSteps-1)
}

// Total returns how many were counted.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns a duration that at least that share of the counted are at
// most as long as; 0 if there are none.
func (h *Histogram) Quantile(share float64) time.Duration {
	total := h.Total()
	var below uint64
	for i, c := range h.Counts {
		below += c
		if c > 0 && float64(below) >= share*float64(total) {
			return ceiling(i)
		}
	}
	return 0
}

// ceiling returns the longest duration of a slot.
func ceiling(i int) time.Duration {
	if i < histogramSteps {
		return time.Duration(i)
	}
	power := i/histogramSteps - 1
	return time.Duration(uint64(i%histogramSteps+histogramSteps+1)<<power - 1)
}

func (h *Histogram) sub(e *Histogram) {
	for i := range h.Counts {
		h.Counts[i] -= e.Counts[i]
	}
}
