package survey

import (
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/identity"
)

// maxMeasured is how many round trips to other nodes a user who is no
// administrator may have this node measure within measuredWithin: 5 each to 200
// nodes, say. They are frames without a body.
const (
	maxMeasured    = 1000
	measuredWithin = time.Minute
)

// quota counts the round trips that were measured for users, so that no user
// makes nodes load each other. It is safe for concurrent use.
type quota struct {
	mu sync.Mutex // guards by
	by map[ids.User]*measuredOf
}

type measuredOf struct {
	since time.Duration
	n     int
}

// take counts measurements for a caller, or answers Quota. An administrator and
// a node may have any number.
func (q *quota) take(w *identity.Who, n int, now time.Duration) error {
	if n == 0 || w.Admin || w.Client == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.by[w.User]
	if of == nil || now-of.since >= measuredWithin {
		if of = (&measuredOf{since: now}); q.by == nil {
			q.by = map[ids.User]*measuredOf{}
		}
		q.by[w.User] = of
	}
	if of.n+n > maxMeasured {
		return fault.Errorf(fault.Quota, "survey.take", string(w.User),
			"%d round trips were measured for this user within a minute and %d more are asked for; %d may be: name fewer nodes, count less, try later, or ask as an administrator", of.n, n, maxMeasured)
	}
	of.n += n
	return nil
}
