package destination

import (
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// placements remembers where objects of a policy went.
type placements struct {
	mu sync.Mutex // guards by
	by map[geoconfig.Policy]placement
}

type placement struct {
	slice ids.Slice     // 0: there is none now, the directory's stands in
	until time.Duration // boot time
}

func (p *placements) get(want geoconfig.Policy, now time.Duration) (ids.Slice, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.by[want]
	return x.slice, ok && x.until > now
}

func (p *placements) put(want geoconfig.Policy, s ids.Slice, until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) > 1000 {
		p.by = map[geoconfig.Policy]placement{}
	}
	p.by[want] = placement{s, until}
}

// drop forgets a slice that takes no more.
func (p *placements) drop(s ids.Slice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for want, x := range p.by {
		if x.slice == s {
			delete(p.by, want)
		}
	}
}
