package leases

import (
	"math"
	"slices"
	"sync"

	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
)

// freshPart is the part of a session's length for which what was worked out of
// the slices is used again: less than an eighth, so that until is not over then.
const freshPart = 64

// exceptions is what keep-alives say of the node's slices: for which of them it
// does not act, and until when it may act for all the others. Keep-alives share
// it for a moment, because there may be many of both. That is safe: until is a
// time, not a span, so an answer promises no more than one of a moment ago did.
type exceptions struct {
	mu       sync.Mutex // guards below
	made     int64      // when it was worked out
	until    int64      // up to which the node may act for the slices not excepted
	list     uint64     // version of excepted: counts up from a random number
	excepted []uint32   // ascending; replaced, never changed
}

// at returns what holds at a time. The list must not be changed.
func (x *exceptions) at(now, length int64, each func(func(*operate.Published) bool)) (until int64, list uint64, excepted []uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.made > 0 && now-x.made < length/freshPart {
		return x.until, x.list, x.excepted
	}
	until, excepted = math.MaxInt64, nil
	each(func(p *operate.Published) bool {
		switch end := int64(p.Until()); {
		case p.Serves(replica.Time(now)) && end-now > length/8:
			until = min(until, end)
		case p.Row != nil:
			excepted = append(excepted, uint32(p.Slice))
		}
		return true
	})
	slices.Sort(excepted)
	if x.made == 0 || !slices.Equal(excepted, x.excepted) {
		x.list, x.excepted = max(x.list+1, 1), excepted
	}
	x.made, x.until = now, until
	return x.until, x.list, x.excepted
}
