package dirlock

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestTake_RefusesASecondUser(t *testing.T) {
	dir := t.TempDir()
	first, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir); !fault.Is(err, fault.Busy) {
		t.Errorf("a second user: got %v, want Busy", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Take(dir)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	_ = again.Close()
}
