package receipts

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

func TestTable_KeepsTheLastReceipt(t *testing.T) {
	var table Table
	first, second := &pb.Receipt{Serial: 1}, &pb.Receipt{Serial: 2}
	table.Note(7, first)
	table.Note(7, second)
	table.Note(7, nil)
	if got := table.Get(7); got != second {
		t.Errorf("got %v, want the second", got)
	}
	if got := table.Get(8); got != nil {
		t.Errorf("got %v for an object without one", got)
	}
}

func TestTable_IsBounded(t *testing.T) {
	var table Table
	for o := range ids.Object(3 * maxKept) {
		table.Note(o, &pb.Receipt{Serial: uint64(o)})
	}
	if n := len(table.by); n > maxKept {
		t.Errorf("%d are kept, at most %d may be", n, maxKept)
	}
	if last := ids.Object(3*maxKept - 1); table.Get(last).GetSerial() != uint64(last) {
		t.Error("the last is forgotten")
	}
}

func TestTable_KeepsWhichCopyWasReadLast(t *testing.T) {
	var table Table
	table.NoteCopy(7, Copy{By: "a", Age: time.Second})
	table.NoteCopy(7, Copy{By: "b", Age: 2 * time.Second})
	if got, ok := table.Copy(7); !ok || got.By != "b" {
		t.Errorf("got %v, %v, want b's", got, ok)
	}
	table.NoteCopy(7, Copy{By: "a"})
	if got, ok := table.Copy(7); ok {
		t.Errorf("got %v once the active answered", got)
	}
	for o := range ids.Object(3 * maxKept) {
		table.NoteCopy(o, Copy{Age: 1})
	}
	if n := len(table.copies); n > maxKept {
		t.Errorf("%d are kept, at most %d may be", n, maxKept)
	}
}
