package database

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"cartwheel.dev/geo-config/fault"
)

func TestFailure_HasAKindForEveryCode(t *testing.T) {
	for code, want := range map[string]fault.Kind{
		"40001": fault.Overloaded, "40003": fault.Unreachable, "08006": fault.Unreachable, "57P01": fault.Unreachable, "57014": fault.TimedOut,
		"53100": fault.NoSpace, "53300": fault.Overloaded, "58030": fault.IO, "XX000": fault.IO, "XX001": fault.Corrupt, "28P01": fault.Unauthorized,
		"42501": fault.Permission, "25006": fault.ReadOnly, "3D000": fault.NotFound, "42P01": fault.Invalid, "P0001": fault.IO,
	} {
		if got := fault.KindOf(failure("database.Open", "here", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: got %v, want %v", code, got, want)
		}
	}
}
