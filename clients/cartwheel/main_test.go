//go:build linux

package cartwheel_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that outlive their owners. A case of mounttest
// runs as a child process, which has none of its own.
func TestMain(m *testing.M) {
	if os.Getenv("CARTWHEEL_MOUNTTEST_DIRS") != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}
