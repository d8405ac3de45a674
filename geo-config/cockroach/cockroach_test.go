package cockroach_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/storetest"
	"cartwheel.dev/geo-config/storetest/postgrestest"
)

// shared is the server of this package's tests.
var shared postgrestest.Shared

func TestMain(m *testing.M) { goleak.VerifyTestMain(shared.Around(m)) }

// fastPoll lets tests see other processes' changes soon.
const fastPoll = 10 * time.Millisecond

// scratch makes tables in a new schema.
func scratch(t *testing.T, url string) cockroach.Options {
	t.Helper()
	o := cockroach.Options{Options: database.Options{URL: url, Schema: postgrestest.Schema(t, url)}, Poll: fastPoll}
	if _, err := schema.Migrate(t.Context(), connect(t, o.Options)); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	return o
}

func connect(t *testing.T, o database.Options) *database.Database {
	t.Helper()
	d, err := database.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(d.Close)
	return d
}

func open(t *testing.T, o cockroach.Options) *cockroach.Store {
	t.Helper()
	s, err := cockroach.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore_Conforms(t *testing.T) {
	for _, d := range shared.Databases(t) {
		t.Run(d.Name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) geoconfig.Store { return open(t, scratch(t, d.URL)) })
		})
	}
}
