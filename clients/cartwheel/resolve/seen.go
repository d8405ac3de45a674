package resolve

import (
	"sync"

	"cartwheel.dev/geo-config/ids"
)

// seen remembers what names meant when they were resolved last, lease or not:
// kernels look a name up before they remove it. Its zero value is empty.
type seen struct {
	mu sync.Mutex // guards by
	by map[place]ids.Object
}

type place struct {
	dir  ids.Object
	name string
}

// maxSeen bounds the names; then all are forgotten.
const maxSeen = 1024

func (s *seen) note(dir ids.Object, name string, o ids.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || len(s.by) >= maxSeen {
		s.by = make(map[place]ids.Object, maxSeen)
	}
	s.by[place{dir, name}] = o
}

func (s *seen) take(dir ids.Object, name string) ids.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.by[place{dir, name}]
	delete(s.by, place{dir, name})
	return o
}
