package allocation

import (
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// quota counts the slices that were made for users, so that one user with
// many policies leaves the others room in the slice table. It is safe for concurrent use.
type quota struct {
	mu sync.Mutex // guards by
	by map[ids.User][]time.Duration
}

// quotaWithin is the time in which one user may have Config.MaxNewSlices made.
const quotaWithin = time.Hour

// take counts a slice for a user, or answers Quota.
func (q *quota) take(user ids.User, most int, now time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	recent := slices.DeleteFunc(q.by[user], func(at time.Duration) bool { return now-at >= quotaWithin })
	if len(recent) >= most {
		return fault.Errorf(fault.Quota, "allocation.take", string(user), "%d slices were made for this user within an hour: use fewer different cues, or try later", len(recent))
	}
	if q.by == nil {
		q.by = map[ids.User][]time.Duration{}
	}
	q.by[user] = append(recent, now)
	return nil
}
