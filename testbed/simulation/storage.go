package simulation

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/node/store/disk"
)

// storage is the disk of one machine.
type storage struct {
	files *disk.Memory
	meta  *vfs.MemFS
}

func newStorage() storage { return storage{disk.NewMemory(), vfs.NewCrashableMem()} }

// afterPower is what the disk holds once the machine lost power: what was
// synced, and of the rest what chance wants. The metadata is looked at first:
// it must not be newer than the journal.
func (s storage) afterPower(chance *rand.Rand) storage {
	share := chance.IntN(3) * 50
	meta := s.meta.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: share, RNG: chance})
	if share == 0 {
		return storage{s.files.CrashClone(nil), meta}
	}
	return storage{s.files.CrashClone(chance), meta}
}

// afterKill is what it holds once the process was killed: all that was written.
func (s storage) afterKill() storage {
	meta := s.meta.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	return storage{s.files.Clone(), meta}
}

// synced is what is certain to be there after power loss.
func (s storage) synced() storage {
	meta := s.meta.CrashClone(vfs.CrashCloneCfg{})
	return storage{s.files.CrashClone(nil), meta}
}

// bytes is how much the files take.
func (s storage) bytes() int64 {
	u, err := s.files.Usage()
	if err != nil {
		return 0
	}
	return u.Total - u.Free
}

// rot changes one bit of the log or of a pack.
func (s storage) rot(chance *rand.Rand) {
	var names []string
	for _, dir := range []string{"journal", "packs"} {
		list, err := s.files.List(dir)
		for _, name := range list {
			if err == nil {
				names = append(names, dir+"/"+name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	name := names[chance.IntN(len(names))]
	f, err := s.files.Open(disk.MarkerOpen, name, disk.ReadOnly)
	if err != nil {
		return
	}
	size, err := f.Size()
	if err == nil && size > 0 {
		s.files.Damage(name, chance.Int64N(8*min(size, 256<<10)))
	}
}

// slow is a disk whose log takes its time.
type slow struct {
	*disk.Memory
	chance *rand.Rand
	most   time.Duration
	gate   *gate
}

// gate holds the writes of a log up while it is shut.
type gate struct {
	mu    sync.Mutex    // guards below
	times int           // it was shut and not opened
	again chan struct{} // closed when it is open; nil: it is
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.times++; g.times == 1 {
		g.again = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.times--; g.times == 0 {
		close(g.again)
		g.again = nil
	}
}

// wait returns when it is open.
func (g *gate) wait() {
	g.mu.Lock()
	again := g.again
	g.mu.Unlock()
	if again != nil {
		<-again
	}
}

// Open implements disk.Disk.
func (s *slow) Open(site disk.Site, name string, mode disk.Mode) (disk.File, error) {
	f, err := s.Memory.Open(site, name, mode)
	if err != nil {
		return nil, err
	}
	return slowFile{f, s}, nil
}

type slowFile struct {
	disk.File
	s *slow
}

// WriteAt implements disk.File. Only the log's writer may wait: other writers
// hold what others wait for without passing of time.
func (f slowFile) WriteAt(site disk.Site, p []byte, off int64) error {
	if site == disk.JournalAppend && f.s.most > 0 {
		pass(time.Duration(1 + f.s.chance.Int64N(int64(f.s.most))))
	}
	if site == disk.JournalAppend {
		f.s.gate.wait()
	}
	return f.File.WriteAt(site, p, off)
}
