package fault_test

import (
	"errors"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestExplain_NamesSubjectAndRemedyOnce(t *testing.T) {
	inner := &fault.Error{Kind: fault.Unreachable, Op: "contact.Connect", Subject: "node", Public: "does not answer", Cause: errors.New("connection refused")}
	outer := fault.Wrap(fault.IO, "command.mount", "node", inner)
	if got, want := fault.Explain(outer), "node: does not answer: connection refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	joined := errors.Join(fault.E(fault.Busy, "a.B", "one", "is busy"), fault.E(fault.Busy, "a.B", "two", "is busy"))
	if got, want := fault.Explain(fault.Wrap(fault.IO, "demo.stop", "", joined)), "one: is busy; two: is busy"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := fault.Explain(fault.E(fault.NoSpace, "a.B", "disk", "")), "disk: no space"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fault.ExitCode(errors.Join(errors.New("plain"), fault.E(fault.Busy, "", "", ""))); got != fault.ExitBusy {
		t.Errorf("got exit code %d, want %d", got, fault.ExitBusy)
	}
}
