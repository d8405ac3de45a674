package disk

import (
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
	live    []byte
	durable []byte
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

// Heal takes all rules back.
func (m *Memory) Heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = nil
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

// visit counts a call and finds its verdict. Callers hold mu.
func (m *Memory) visit(site Site, name string) verdict {
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
		c.put(n, slices.Clone(f.live))
	}
	return c
}

func (m *Memory) put(name string, content []byte) {
	f := &memoryData{live: content, durable: slices.Clone(content), dirty: map[int64]bool{}}
	m.names[name], m.durable[name] = f, f
	m.used += int64(len(content))
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
func (f *memoryData) afterCrash(rng *rand.Rand) []byte {
	out := slices.Clone(f.durable)
	if rng == nil {
		return out
	}
	sectors := make([]int64, 0, len(f.dirty))
	for s := range f.dirty {
		sectors = append(sectors, s)
	}
	slices.Sort(sectors)
	for _, s := range sectors {
		if rng.IntN(2) == 0 {
			continue
		}
		from, to := s*sectorBytes, min((s+1)*sectorBytes, int64(len(f.live)))
		if to > int64(len(out)) {
			out = append(out, make([]byte, to-int64(len(out)))...)
		}
		if from < to {
			copy(out[from:to], f.live[from:to])
		}
	}
	return out
}

// Damage changes one bit of a file, live and durable, as rot would.
func (m *Memory) Damage(name string, bit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	f.live[bit/8] ^= 1 << (bit % 8)
	if bit/8 < int64(len(f.durable)) {
		f.durable[bit/8] ^= 1 << (bit % 8)
	}
}
