package owed

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
)

func TestPaid_LeavesWhatCameLater(t *testing.T) {
	const file = ids.Object(7)
	table := New()
	if !table.Add(file, 5) {
		t.Fatal("the table takes nothing")
	}
	sent, _ := table.Of(file)
	table.Add(file, 3) // while the commit is under way, by a clock that was set back
	table.Paid(file, sent)
	later, ok := table.Of(file)
	if !ok || later.At != 5 {
		t.Errorf("got %+v, %v: want that the later change is still owed, no earlier than the first", later, ok)
	}
	table.Paid(file, later)
	if _, ok := table.Of(file); ok {
		t.Error("it is owed after a commit moved it")
	}
}

func TestAdd_IsBounded(t *testing.T) {
	table := New()
	for o := range ids.Object(MaxFiles) {
		table.Add(o, 1)
	}
	if table.Add(MaxFiles, 1) {
		t.Error("the table takes more than its bound")
	}
	if !table.Add(0, 2) {
		t.Error("a full table refuses a file that it has")
	}
	if d, _ := table.Of(0); d.At != 2 {
		t.Errorf("got %+v, want the later time", d)
	}
}
