package disk

import (
	"errors"
	"io"
	"path"
	"slices"

	"cartwheel.dev/geo-config/fault"
)

// Open implements Disk.
func (m *Memory) Open(site Site, name string, mode Mode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.visitLocked(site, name); v.err != nil {
		return nil, v.err
	}
	f := m.names[name]
	if f == nil {
		if mode&Create == 0 || !m.dirs[path.Dir(name)] {
			return nil, fault.E(fault.NotFound, "disk.Open", name, "")
		}
		f = &memoryData{dirty: map[int64]bool{}}
		m.names[name] = f
	}
	return &memoryFile{m: m, d: f, name: name, mode: mode}, nil
}

// Remove implements Disk.
func (m *Memory) Remove(site Site, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.visitLocked(site, name); v.err != nil {
		return v.err
	}
	f := m.names[name]
	if f == nil {
		return fault.E(fault.NotFound, "disk.Remove", name, "")
	}
	m.used -= f.live.size
	delete(m.names, name)
	return nil
}

// Rename implements Disk.
func (m *Memory) Rename(site Site, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.visitLocked(site, to); v.err != nil {
		return v.err
	}
	f := m.names[from]
	if f == nil {
		return fault.E(fault.NotFound, "disk.Rename", from, "")
	}
	if old := m.names[to]; old != nil {
		m.used -= old.live.size
	}
	delete(m.names, from)
	m.names[to] = f
	return nil
}

// List implements Disk.
func (m *Memory) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for n := range m.names {
		if path.Dir(n) == dir {
			out = append(out, path.Base(n))
		}
	}
	slices.Sort(out)
	return out, nil
}

// MakeDir implements Disk.
func (m *Memory) MakeDir(site Site, dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.visitLocked(site, dir); v.err != nil {
		return v.err
	}
	m.dirs[dir] = true
	return nil
}

// SyncDir implements Disk.
func (m *Memory) SyncDir(site Site, dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.visitLocked(site, dir); v.err != nil {
		return v.err
	}
	for n := range m.durable {
		if path.Dir(n) == dir && m.names[n] == nil {
			delete(m.durable, n)
		}
	}
	for n, f := range m.names {
		if path.Dir(n) == dir {
			m.durable[n] = f
		}
	}
	return nil
}

// Usage implements Measurer.
func (m *Memory) Usage() (Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.capacity
	if total == 0 {
		total = 1 << 40
	}
	return Usage{Total: total, Free: total - m.used}, nil
}

// Lock implements Locker.
func (m *Memory) Lock(name string, content []byte) (func() error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[name] {
		return nil, fault.E(fault.Busy, "disk.Lock", name, "")
	}
	m.locked[name] = true
	var p pages
	p.write(content, 0)
	m.put(name, p)
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locked, name)
		return nil
	}, nil
}

type memoryFile struct {
	m    *Memory
	d    *memoryData
	name string
	mode Mode
}

// ReadAt implements File.
func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.crashed {
		return 0, errCrashed
	}
	n := f.d.live.read(p, off)
	if n < len(p) || off >= f.d.live.size {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements File.
func (f *memoryFile) WriteAt(site Site, p []byte, off int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.mode&ReadOnly != 0 || f.mode&Direct != 0 && (off%Block != 0 || len(p)%Block != 0) {
		return fault.E(fault.Invalid, "disk.WriteAt", f.name, "read-only, or not aligned")
	}
	v := f.m.visitLocked(site, f.name)
	if v.err != nil {
		if !errors.Is(v.err, errCrashed) && f.mode&ReadOnly == 0 {
			kept := p[:min(v.keep, len(p))]
			// What an interrupted write leaves is on the medium for good.
			f.d.write(kept, off, true)
		}
		return v.err
	}
	if grow := off + int64(len(p)) - f.d.live.size; grow > 0 {
		if f.m.capacity > 0 && f.m.used+grow > f.m.capacity {
			return fault.E(fault.NoSpace, "disk.WriteAt", f.name, "the disk is full")
		}
		f.m.used += grow
	}
	f.d.write(p, off, f.mode&Synced != 0)
	return nil
}

// write changes the live content, and with durable the other too.
func (d *memoryData) write(p []byte, off int64, durable bool) {
	d.live.write(p, off)
	if durable {
		d.durable.write(p, off)
		return
	}
	for s := off / sectorBytes; s*sectorBytes < off+int64(len(p)); s++ {
		d.dirty[s] = true
	}
}

// Sync implements File.
func (f *memoryFile) Sync(site Site) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if v := f.m.visitLocked(site, f.name); v.err != nil {
		// The pages count as clean now, as on a real system: trying again
		// would succeed and lie.
		if !f.m.crashed {
			clear(f.d.dirty)
		}
		return v.err
	}
	f.d.durable.grow(f.d.live.size)
	for s := range f.d.dirty {
		f.d.durable.copySector(s, &f.d.live)
	}
	clear(f.d.dirty)
	return nil
}

// Allocate implements File.
func (f *memoryFile) Allocate(site Site, size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if v := f.m.visitLocked(site, f.name); v.err != nil {
		return v.err
	}
	grow := size - f.d.live.size
	if grow <= 0 {
		return nil
	}
	if f.m.capacity > 0 && f.m.used+grow > f.m.capacity {
		return fault.E(fault.NoSpace, "disk.Allocate", f.name, "the disk is full")
	}
	f.m.used += grow
	f.d.live.grow(size)
	return nil
}

// Size implements File.
func (f *memoryFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.d.live.size, nil
}

// Close implements File.
func (f *memoryFile) Close() error { return nil }
