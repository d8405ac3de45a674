package conformance_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/conformance"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
)

// forgetful is a store that applies a batch again.
type forgetful struct {
	geoconfig.Store
	n atomic.Int64
}

func (f *forgetful) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	b.Key += strings.Repeat("x", int(f.n.Add(1)))
	return f.Store.Apply(ctx, b)
}

func TestCheck_TellsGoodStoresFromBadOnes(t *testing.T) {
	good := conformance.Check(t.Context(), func(context.Context) (geoconfig.Store, error) { return inmem.New(), nil })
	if len(good) != len(conformance.Cases()) {
		t.Errorf("%d results of %d cases", len(good), len(conformance.Cases()))
	}
	for _, r := range good {
		if len(r.Failures) > 0 {
			t.Errorf("%s: %q", r.Name, r.Failures)
		}
	}
	failed := 0
	for _, r := range conformance.Check(t.Context(), func(context.Context) (geoconfig.Store, error) { return &forgetful{Store: inmem.New()}, nil }) {
		if len(r.Failures) > 0 {
			failed++
		}
	}
	if failed == 0 || failed == len(good) {
		t.Errorf("%d of %d cases fail on a store that forgets keys", failed, len(good))
	}
	for _, r := range conformance.Check(t.Context(), func(context.Context) (geoconfig.Store, error) { return nil, errors.New("no store") }) {
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0], "no store") {
			t.Errorf("%s: %q", r.Name, r.Failures)
		}
	}
}
