package survey

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/identity"
)

func TestQuota_LimitsMeasurementsAMinute(t *testing.T) {
	var m quota
	ann := &identity.Who{User: "ann", Client: 1}
	for _, step := range []struct {
		who     *identity.Who
		at      time.Duration
		n       int
		refused bool
	}{
		{ann, 0, 999, false},
		{ann, 59 * time.Second, 2, true},
		{ann, 59 * time.Second, 1, false},
		{ann, 59 * time.Second, 0, false},
		{ann, 59 * time.Second, 1, true},
		{&identity.Who{User: "ann", Client: 2}, 59 * time.Second, 1, true}, // from another client
		{&identity.Who{User: "bob", Client: 3}, 59 * time.Second, 1000, false},
		{&identity.Who{User: "root", Client: 4, Admin: true}, 59 * time.Second, 100_000, false},
		{&identity.Who{User: "ann", Trusted: true}, 59 * time.Second, 100_000, false}, // a node
		{ann, time.Minute, 1001, true},
		{ann, time.Minute, 1000, false},
	} {
		if err := m.take(step.who, step.n, step.at); fault.Is(err, fault.Quota) != step.refused || err != nil && !step.refused {
			t.Errorf("%s at %v: %d measurements: got %v, want refused %t", step.who.User, step.at, step.n, err, step.refused)
		}
	}
}
