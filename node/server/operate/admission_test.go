package operate

import (
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

func (a *admission) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all == load{} && len(a.clients) == 0 && len(a.slices) == 0
}

// admitted counts how many operations of a client in a slice are taken.
func admitted(a *admission, client uint64, slice ids.Slice, n int) (taken []*Operation) {
	for range n {
		if op := (&Operation{Client: client, Slice: slice}); a.take(op) == nil {
			taken = append(taken, op)
		}
	}
	return taken
}

func TestAdmission_IsBoundedAndFair(t *testing.T) {
	a := newAdmission(100, 1<<30)
	greedy := admitted(a, 1, 1, 1000)
	if n := len(greedy); n < 40 || n > 60 {
		t.Errorf("a client alone got %d of 100, want about half", n)
	}
	all := greedy
	for client := uint64(2); client < 6; client++ {
		other := admitted(a, client, ids.Slice(client), 5)
		if len(other) != 5 {
			t.Errorf("client %d got %d of 5 beside a greedy one", client, len(other))
		}
		all = append(all, other...)
	}
	if more := admitted(a, 1, 2, 10); len(more) != 0 {
		t.Errorf("the greedy client got %d more", len(more))
	}
	for client := uint64(10); client < 200; client++ {
		all = append(all, admitted(a, client, ids.Slice(client), 1)...)
	}
	if len(all) > 100 {
		t.Errorf("%d operations are under way, the limit is 100", len(all))
	}
	for _, op := range all {
		a.give(op)
	}
	if !a.empty() {
		t.Error("something is still counted")
	}
}

func TestAdmission_IsBoundedByBytes(t *testing.T) {
	a := newAdmission(1<<20, 1<<20)
	taken := 0
	for client := uint64(1); client < 100; client++ {
		if a.take(&Operation{Client: client, Slice: ids.Slice(client), Body: make([]byte, 100_000)}) == nil {
			taken++
		}
	}
	if taken < 5 || taken > 10 {
		t.Errorf("%d operations of 100 kB are under way, within 1 MiB", taken)
	}
	if newAdmission(10, 1000).take(&Operation{Body: make([]byte, 10_000)}) != nil {
		t.Error("an operation alone is refused")
	}
}

// TestAdmission_RefusesEarlyOnAStalledDisk lets the disk not answer. Operations
// wait up to the limit, and the next are refused for a while. Afterwards all go
// on.
func TestAdmission_RefusesEarlyOnAStalledDisk(t *testing.T) {
	s := newSingle(t)
	s.admission.count = 64
	var answers []*Answer
	for i := range 200 {
		answers = append(answers, s.create(fmt.Sprint("file", i), uint64(i+1)))
		s.wait(0)
	}
	refused := 0
	for _, a := range answers {
		if fault.Is(a.Err, fault.Overloaded) {
			refused++
		}
	}
	if refused < 200-64 {
		t.Errorf("%d of 200 were refused, the limit is 64", refused)
	}
	s.settle()
	for i, a := range answers {
		if a.Err != nil && !fault.Is(a.Err, fault.Overloaded) {
			t.Errorf("operation %d: %v", i, a.Err)
		}
	}
	if !s.admission.empty() {
		t.Error("something is still counted")
	}
	again := s.create("again", 300)
	s.settle()
	if again.Err != nil {
		t.Errorf("afterwards: %v", again.Err)
	}
	if len(s.fatal) > 0 {
		t.Errorf("the node ended: %v", s.fatal)
	}
}

// entriesAndBeacon are messages that a peer sends together: 1000 bytes of entries,
// and one message without any.
func entriesAndBeacon() []*replica.Message {
	return []*replica.Message{{Kind: replica.Beacon}, {Kind: replica.Append, Entries: []*replica.Entry{{Data: make([]byte, 1000)}}}}
}

func TestReceive_DropsEntriesWhileTheLogIsFull(t *testing.T) {
	s := newSingle(t)
	waiting := func() (n int) {
		for _, e := range s.in.take(nil) {
			n += len(e.messages)
		}
		return n
	}
	s.disk.room = fault.E(fault.Overloaded, "test", "", "")
	s.Receive("m", entriesAndBeacon())
	if n := waiting(); n != 1 {
		t.Errorf("%d messages wait while the log has no room, want the beacon alone", n)
	}
	s.disk.room = nil
	s.Receive("m", entriesAndBeacon())
	if n := waiting(); n != 2 {
		t.Errorf("%d messages wait, want both", n)
	}
}

// TestReceive_DropsEntriesWhileTooManyWait has the loop stand still while a peer
// sends. Entries wait up to a limit in bytes, and messages without entries
// always.
func TestReceive_DropsEntriesWhileTooManyWait(t *testing.T) {
	s := newSingle(t)
	s.o.QueueBytes = 4000
	const sent = 20
	receive := func() (beacons, entries int) {
		for range sent {
			s.Receive("m", entriesAndBeacon())
		}
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		for _, e := range s.in.queue {
			for _, m := range e.messages {
				if len(m.Entries) > 0 {
					entries++
				} else {
					beacons++
				}
			}
		}
		return beacons, entries
	}
	for _, when := range []string{"at first", "after a turn"} {
		if beacons, entries := receive(); beacons != sent || entries < 4 || entries > 5 {
			t.Errorf("%s: %d beacons and %d messages with 1000 bytes of entries wait, want %d and as many as fit 4000 bytes", when, beacons, entries, sent)
		}
		s.wait(0)
	}
	if n := s.behind.Load(); n != 0 {
		t.Errorf("%d bytes count as waiting, and nothing waits", n)
	}
}
