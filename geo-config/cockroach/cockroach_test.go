package cockroach_test

import (
	"strings"
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

// TestStore_CommitsToDiskAgainstADefault has a database that acknowledges commits
// before they are on disk, unless a transaction says otherwise.
func TestStore_CommitsToDiskAgainstADefault(t *testing.T) {
	o := scratch(t, shared.URL(t)).Options
	separator := "?"
	if strings.Contains(o.URL, "?") {
		separator = "&"
	}
	o.URL += separator + "synchronous_commit=off"
	d := connect(t, o)
	var lax, set string
	if err := d.Pool.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&lax); err != nil {
		t.Fatal(err)
	}
	tx, err := d.Begin(t.Context(), "state")
	if err != nil {
		t.Fatal(err)
	}
	defer database.Rollback(t.Context(), tx)
	if err := tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&set); err != nil {
		t.Fatal(err)
	}
	if lax != "off" || set != "on" {
		t.Errorf("the default is %s and a change has %s, want off and on", lax, set)
	}
}

func TestStore_Conforms(t *testing.T) {
	for _, d := range shared.Databases(t) {
		t.Run(d.Name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) geoconfig.Store { return open(t, scratch(t, d.URL)) })
		})
	}
}
