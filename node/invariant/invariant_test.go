package invariant

import (
	"errors"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// caught runs f and returns what Catch made of its violation.
func caught(f func()) (err error) {
	defer Catch(func(e error) { err = e })
	f()
	return nil
}

func TestViolation_NamesRuleSliceSerialAndFile(t *testing.T) {
	err := caught(func() {
		Equal(Violation{Rule: SnapshotApplied, Slice: 7, Serial: 105, File: "meta", Want: 105, Got: 100})
	})
	if !fault.Is(err, fault.Corrupt) {
		t.Fatalf("got %v, want a corrupt state", err)
	}
	for _, part := range []string{SnapshotApplied, "slice 7", "serial 105", "want 105", "got 100", "in meta"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestCheck_HoldsWithoutAllocating(t *testing.T) {
	got := testing.AllocsPerRun(100, func() {
		Check(true, Violation{Rule: FormatEmpty, Slice: 1})
		Equal(Violation{Rule: SnapshotApplied, Want: 1, Got: 1})
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

func TestCatch_LeavesOtherPanicsAlone(t *testing.T) {
	other := errors.New("other")
	defer func() {
		if r, _ := recover().(error); !errors.Is(r, other) {
			t.Errorf("got %v, want the panic to go on", r)
		}
	}()
	_ = caught(func() { panic(other) })
}

func TestLog_EntriesFollowEachOther(t *testing.T) {
	var l Log
	for _, step := range []struct {
		name  string
		do    func()
		holds bool
	}{
		{"the first entry of a slice", func() { l.Entry(1, 57, "journal") }, true},
		{"the next", func() { l.Entry(1, 58, "journal") }, true},
		{"another slice's first", func() { l.Entry(2, 3, "journal") }, true},
		{"one that takes the place of an earlier one", func() { l.Entry(1, 50, "journal") }, true},
		{"one behind a gap", func() { l.Entry(1, 52, "journal") }, false},
		{"one that fills it", func() { l.Entry(1, 51, "journal") }, true},
		{"one behind a reset", func() { l.Reset(1, 99); l.Entry(1, 100, "journal") }, true},
		{"one behind a gap after a reset", func() { l.Reset(1, 99); l.Entry(1, 101, "journal") }, false},
	} {
		if err := caught(step.do); (err == nil) != step.holds {
			t.Errorf("%s: got %v, want it to hold: %v", step.name, err, step.holds)
		}
	}
}
