package resolve

import (
	"strconv"
	"testing"
)

func TestSeen_TellsOnce(t *testing.T) {
	var s seen
	if got := s.take(7, "a"); got != 0 {
		t.Errorf("before it was seen, the name means %v", got)
	}
	s.note(7, "a", 8)
	s.note(7, "a", 9)
	if got := s.take(7, "b"); got != 0 {
		t.Errorf("another name means %v", got)
	}
	if got := s.take(7, "a"); got != 9 {
		t.Errorf("got %v, want the latest object 9", got)
	}
	if got := s.take(7, "a"); got != 0 {
		t.Errorf("taken twice, the name means %v", got)
	}
}

func TestSeen_IsBounded(t *testing.T) {
	var s seen
	for i := range 3 * maxSeen {
		s.note(7, strconv.Itoa(i), 8)
	}
	if len(s.by) > maxSeen {
		t.Errorf("%d names are kept", len(s.by))
	}
}
