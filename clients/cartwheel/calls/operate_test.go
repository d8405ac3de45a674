package calls

import (
	"errors"
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestIsUnknown_NeedsAnOpenOutcome(t *testing.T) {
	timeout := fault.E(fault.TimedOut, "calls.test", "", "")
	refused := fault.E(fault.Exists, "calls.test", "", "")
	for _, x := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"the active decided", refused, false},
		{"the active decided that it is too late", timeout, false},
		{"no answer came", OutcomeOpen(timeout), true},
		{"no answer came, said in other words", fmt.Errorf("making a file: %w", OutcomeOpen(timeout)), true},
		{"it was not sent", OutcomeOpen(refused), false},
		{"of no kind", OutcomeOpen(errors.New("broken")), true},
	} {
		if got := IsUnknown(x.err); got != x.want {
			t.Errorf("%s: got %v", x.name, got)
		}
	}
}
