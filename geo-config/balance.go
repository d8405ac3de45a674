package geoconfig

import (
	"fmt"

	"cartwheel.dev/geo-config/ids"
)

// Fill is how full a node's disk is, by the marks of its site.
type Fill uint8

// How full a disk can be. The numbers are stored and sent: never renumber.
const (
	// Roomy disks are at the low mark or below, or their size is not known.
	Roomy Fill = 0
	// Middling disks are between the two marks.
	Middling Fill = 1
	// High disks are above the high mark.
	High Fill = 2
	// Full disks have no room for more content: writes are refused.
	Full Fill = 3
)

func (f Fill) String() string {
	switch f {
	case Roomy:
		return "roomy"
	case Middling:
		return "middling"
	case High:
		return "high"
	case Full:
		return "full"
	}
	return fmt.Sprintf("Fill(%d)", uint8(f))
}

// Balance says when the nodes of a site give slices to other nodes.
type Balance struct {
	// Off keeps the nodes from giving slices away. Their disks are judged all the
	// same: new copies go to others first.
	Off bool `json:"off,omitempty"`
	// High is the share of its disk, in percent, above which a node gives slices
	// away. Low is the share at which it stops, and above which a node takes none.
	High int `json:"high_percent"`
	Low  int `json:"low_percent"`
}

// LeastGap is how far apart, in percent of a disk, the two marks are at least. With
// less between them, a node that has just taken a slice could have to give one away.
const LeastGap = 5

// DefaultBalance is that of a site whose row says nothing of it.
func DefaultBalance() Balance { return Balance{High: 85, Low: 75} }

// Marks returns what holds for the site's nodes.
func (s Site) Marks() Balance {
	if s.Balance == nil {
		return DefaultBalance()
	}
	return *s.Balance
}

// Check says what is wrong with the marks; empty: nothing is.
func (b Balance) Check() string {
	switch {
	case b.High < 1 || b.High > 99 || b.Low < 1 || b.Low > 99:
		return "a mark is not within 1 to 99 percent of a disk"
	case b.High-b.Low < LeastGap:
		return fmt.Sprintf("the low mark of %d percent is not at least %d below the high one of %d: slices could move back and forth", b.Low, LeastGap, b.High)
	}
	return ""
}

// FillOf judges a disk. A capacity of 0 or less is not known.
func (b Balance) FillOf(used, capacity int64) Fill {
	switch {
	case capacity <= 0 || used <= share(capacity, b.Low):
		return Roomy
	case used > share(capacity, b.High):
		return High
	}
	return Middling
}

// LowBytes is how much of a disk is used at the low mark.
func (b Balance) LowBytes(capacity int64) int64 { return share(capacity, b.Low) }

// MiddleBytes is how much of a disk is used halfway between the marks: a node takes
// no slice that would fill it further.
func (b Balance) MiddleBytes(capacity int64) int64 {
	return (share(capacity, b.Low) + share(capacity, b.High)) / 2
}

// share divides first, so that no disk is too large for it.
func share(capacity int64, percent int) int64 {
	return capacity/100*int64(percent) + capacity%100*int64(percent)/100
}

// Giving is a slice of which a node gives its copy away. The slice's active moves the
// copy, as from a node that is drained.
type Giving struct {
	Slice ids.Slice `json:"slice"`
	// To is the node that becomes a member in its place.
	To ids.Node `json:"to"`
}
