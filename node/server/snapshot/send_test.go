package snapshot

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

func TestSender_KeepsFewStates(t *testing.T) {
	source := openedStore(t)
	s := NewSender(SenderOptions{Meta: source.Meta()})
	add := func(token uint64, peer string, slice ids.Slice) error {
		return s.add(token, &keptState{slice: slice, peer: peer, frozen: source.Meta().Freeze(), sum: newCopySum(replica.Snapshot{})})
	}
	for i := range maxKept {
		if err := add(uint64(i+1), "a", ids.Slice(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(10, "b", 1); !fault.Is(err, fault.Overloaded) {
		t.Errorf("one state too many: got %v, want Overloaded", err)
	}
	if err := add(11, "a", 1); err != nil {
		t.Errorf("a state in the place of an older one: %v", err)
	}
	if _, err := s.find(1, "a"); !fault.Is(err, fault.Expired) {
		t.Errorf("the older one: got %v, want Expired", err)
	}
	if _, err := s.find(2, "b"); !fault.Is(err, fault.Expired) {
		t.Errorf("another peer's state: got %v, want Expired", err)
	}
	k, err := s.find(2, "a")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := k.next(); !fault.Is(err, fault.Expired) {
		t.Errorf("after Close: got %v, want Expired", err)
	}
}
