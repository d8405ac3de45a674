package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"cartwheel.dev/geo-config/fault"
)

// sectorBytes is what a disk writes whole: power loss tears between sectors.
const sectorBytes = 512

// Memory is a Disk in memory that knows what would survive power loss: what was
// synced, and of the rest any choice of sectors. It fails where it is told to.
type Memory struct {
	mu       sync.Mutex // guards what follows and all files
	names    map[string]*memoryData
	durable  map[string]*memoryData // names as of the last SyncDir
	dirs     map[string]bool
	locked   map[string]bool
	capacity int64 // 0: without limit
	used     int64
	rules    []Rule
	struck   bool // one of them made something fail
	hits     map[Site]int
	crashed  bool
}

var (
	_ Disk     = (*Memory)(nil)
	_ Measurer = (*Memory)(nil)
	_ Locker   = (*Memory)(nil)
)

// memoryData is the content of a file.
type memoryData struct {
	live    pages
	durable pages
	dirty   map[int64]bool // sectors where live may differ from durable
}

// Rule makes the disk fail at a site.
type Rule struct {
	Site Site
	// Skip is how many calls at the site go well before; Times how many fail
	// then, 0 for all.
	Skip, Times int
	// Kind is the fault's kind: IO, NoSpace. None with Crash stops the disk
	// after the call has gone well.
	Kind fault.Kind
	// Keep is how many bytes of a failed write reach the disk, all durable.
	Keep int
	// Crash stops the disk: every later call fails, and CrashClone shows what
	// is left.
	Crash bool
}

// NewMemory returns an empty disk.
func NewMemory() *Memory {
	return &Memory{names: map[string]*memoryData{}, durable: map[string]*memoryData{}, dirs: map[string]bool{".": true},
		locked: map[string]bool{}, hits: map[Site]int{}}
}

// SetCapacity bounds the bytes of all files; beyond it writes fail as NoSpace.
func (m *Memory) SetCapacity(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = n
}

// Fail adds a rule.
func (m *Memory) Fail(r Rule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = append(m.rules, r)
}

// Heal takes all rules back, and reports whether one of them made something fail.
func (m *Memory) Heal() (struck bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules, struck, m.struck = nil, m.struck, false
	return struck
}

// Hits returns how often each site was passed.
func (m *Memory) Hits() map[Site]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[Site]int, len(m.hits))
	for s, n := range m.hits {
		out[s] = n
	}
	return out
}

// Crashed reports whether a rule has stopped the disk.
func (m *Memory) Crashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crashed
}

// verdict is what the rules say of one call.
type verdict struct {
	err  error
	keep int
}

var errCrashed = fault.E(fault.IO, "disk.Memory", "", "the disk has stopped")

// visitLocked counts a call and finds its verdict. Callers hold mu.
func (m *Memory) visitLocked(site Site, name string) verdict {
	if m.crashed {
		return verdict{err: errCrashed}
	}
	m.hits[site]++
	for i := range m.rules {
		r := &m.rules[i]
		if r.Site != site {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		if r.Times < 0 {
			continue
		}
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				r.Times = -1
			}
		}
		if r.Crash {
			m.crashed = true
		}
		if r.Kind == fault.None {
			return verdict{}
		}
		m.struck = true
		return verdict{err: fault.E(r.Kind, "disk.Memory", name, "injected at "+string(site)), keep: r.Keep}
	}
	return verdict{}
}

// CrashClone returns the disk as a machine would find it after power loss now:
// what was synced, and each other sector, name and truncation as chance wants;
// with a nil rng nothing that was not synced.
func (m *Memory) CrashClone(rng *rand.Rand) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory()
	c.capacity = m.capacity
	for d := range m.dirs {
		c.dirs[d] = true
	}
	names := map[string]*memoryData{}
	for n, f := range m.durable {
		names[n] = f
	}
	if rng != nil {
		for _, n := range sortedNames(m.names) {
			if rng.IntN(2) == 0 {
				names[n] = m.names[n]
			}
		}
	}
	for _, n := range sortedNames(names) {
		c.put(n, names[n].afterCrash(rng))
	}
	return c
}

// Clone returns a copy of the disk as it is, all of it durable: what a process
// killed with the machine running leaves.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory()
	c.capacity = m.capacity
	for d := range m.dirs {
		c.dirs[d] = true
	}
	for n, f := range m.names {
		c.put(n, f.live.clone())
	}
	return c
}

func (m *Memory) put(name string, content pages) {
	f := &memoryData{live: content, durable: content.clone(), dirty: map[int64]bool{}}
	m.names[name], m.durable[name] = f, f
	m.used += content.size
}

func sortedNames(names map[string]*memoryData) []string {
	out := make([]string, 0, len(names))
	for n := range names {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// afterCrash picks what power loss leaves of a file.
func (f *memoryData) afterCrash(rng *rand.Rand) pages {
	out := f.durable.clone()
	if rng == nil {
		return out
	}
	for _, s := range slices.Sorted(maps.Keys(f.dirty)) {
		if rng.IntN(2) == 0 {
			continue
		}
		out.grow(min((s+1)*sectorBytes, f.live.size))
		out.copySector(s, &f.live)
	}
	return out
}

// Damage changes one bit of a file, live and durable, as rot would.
func (m *Memory) Damage(name string, bit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	for _, p := range []*pages{&f.live, &f.durable} {
		if bit/8 < p.size {
			p.own(bit / 8 / pageBytes).b[bit/8%pageBytes] ^= 1 << (bit % 8)
		}
	}
}

// Cut takes the end of a file away, live and durable, as a bad repair of the file system
// would.
func (m *Memory) Cut(name string, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	for _, p := range []*pages{&f.live, &f.durable} {
		p.cut(size)
	}
}
