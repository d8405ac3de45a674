package geoconfig

import (
	"fmt"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// Limits of budgets. The store refuses a row beyond one with kind Invalid.
const (
	// LeastRate is the lowest rate of a budget, in bits per second: at less, an
	// answer of the largest size would take minutes.
	LeastRate = 1_000_000
	// MostRate is the highest one, in bits per second.
	MostRate = 10_000_000_000_000
	// MaxBudgets is how many budgets one site's row holds.
	MaxBudgets = 150
	// MostReserved is how much of a rate, in percent, the shares of the lower
	// classes may take together.
	MostReserved = 90
)

// Budget bounds the content that two sites send each other. It holds for all nodes
// of both sites together, and for each direction by itself.
type Budget struct {
	// Other is the second site. The row of the site whose name is first in the
	// order of bytes holds the budget, so a pair has one at most.
	Other ids.Site `json:"other"`
	// Rate is in bits per second, each way, within Hours.
	Rate int64 `json:"rate_bits_per_s"`
	// Hours are when Rate holds; nil: always.
	Hours *Hours `json:"hours,omitempty"`
	// Outside is the rate outside Hours, in bits per second; 0: none holds.
	Outside int64 `json:"outside_bits_per_s,omitempty"`
	// Shares are what the lower classes get at least.
	Shares Shares `json:"shares"`
}

// Hours are a part of each day. It may go past midnight.
type Hours struct {
	// From and Until are minutes since midnight, 0 to 1439; From is a part of
	// the hours, Until is none.
	From  int `json:"from_minute"`
	Until int `json:"until_minute"`
	// Zone is a name of the time zone database, such as Europe/Oslo; empty: UTC.
	Zone string `json:"zone,omitempty"`
}

// Shares are parts of a rate in percent, at least 1 each and MostReserved
// together. A class gets its share while it has something to send, whatever the
// classes above it have.
type Shares struct {
	Replication int `json:"replication_percent"`
	Repair      int `json:"repair_percent"`
	Rebalancing int `json:"rebalancing_percent"`
}

// DefaultShares are those of a budget that says nothing of them.
func DefaultShares() Shares { return Shares{Replication: 10, Repair: 5, Rebalancing: 2} }

// Hold reports whether a time of day is within the hours. The caller has moved the
// time to the zone.
func (h Hours) Hold(at time.Time) bool {
	minute := at.Hour()*60 + at.Minute()
	if h.From < h.Until {
		return minute >= h.From && minute < h.Until
	}
	return minute >= h.From || minute < h.Until
}

// String is the form that people write: 08:00-18:00 Europe/Oslo.
func (h Hours) String() string {
	zone := h.Zone
	if zone == "" {
		zone = "UTC"
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d %s", h.From/60, h.From%60, h.Until/60, h.Until%60, zone)
}

// RateAt returns the rate that holds at a time, in bits per second; 0: none does.
// The caller has moved the time to the zone of the hours.
func (b Budget) RateAt(at time.Time) int64 {
	if b.Hours == nil || b.Hours.Hold(at) {
		return b.Rate
	}
	return b.Outside
}

// Check says what is wrong with a budget in the row of a site; empty: nothing is.
// It does not look up the zone.
func (b Budget) Check(of ids.Site) string {
	rate := func(bits int64) bool { return bits >= LeastRate && bits <= MostRate }
	switch s := b.Shares; {
	case b.Other == of:
		return "a budget is between two different sites"
	case b.Other < of:
		return fmt.Sprintf("the budget with %s belongs in the row of that site, whose name comes first", b.Other)
	case b.Rate == 0:
		return "a rate of 0 would stop all content between the sites: remove the budget (`cartwheel budget remove`), or set at least 1 Mbit/s"
	case !rate(b.Rate):
		return "the rate is not within 1 Mbit/s to 10 Tbit/s"
	case b.Outside != 0 && !rate(b.Outside):
		return "the rate outside the hours is not within 1 Mbit/s to 10 Tbit/s"
	case b.Outside != 0 && b.Hours == nil:
		return "a rate outside the hours needs hours"
	case min(s.Replication, s.Repair, s.Rebalancing) < 1 || s.Replication+s.Repair+s.Rebalancing > MostReserved:
		return fmt.Sprintf("each share is at least 1 percent, and all are %d at most", MostReserved)
	}
	if b.Hours != nil {
		return b.Hours.check()
	}
	return ""
}

// maxZone bounds the name of a zone, in bytes.
const maxZone = 64

func (h Hours) check() string {
	day := func(minute int) bool { return minute >= 0 && minute < 24*60 }
	switch {
	case !day(h.From) || !day(h.Until):
		return "hours are minutes of a day, 0 to 1439"
	case h.From == h.Until:
		return "the hours end when they begin: leave them out, so that the rate holds always"
	case len(h.Zone) > maxZone:
		return "the time zone has no name that is known"
	}
	return ""
}
