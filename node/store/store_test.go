package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/store/journal"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func small(d disk.Disk, fs vfs.FS) Options {
	return Options{Dir: "data", Disk: d, MetaFS: fs, ClusterID: "c1", NodeID: "n1",
		Journal: journal.Options{SegmentBytes: 128 << 10, TotalBytes: 8 << 20},
		Pack:    pack.Options{PackBytes: 256 << 10, StageBytes: 32 << 10, ReserveBytes: -1},
		Meta:    meta.Options{MemtableBytes: 256 << 10}, CheckpointBytes: 200 << 10, BallastBytes: 64 << 10}
}

// machine is a node in small: entries go to the log, then to metadata and,
// with their content, to the packs; as the server does it.
type machine struct {
	s       *Store
	serial  ids.Serial
	last    journal.Position
	trouble error
}

func content(i ids.Serial) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "content %d ", i), 1+int(i)*7%300)
}

// start opens and recovers.
func start(o Options) (*machine, error) {
	s, err := Open(o)
	if err != nil {
		return nil, err
	}
	m := &machine{s: s}
	err = s.Recover(func(_ journal.Position, r journal.Record) error {
		serial := ids.Serial(binary.LittleEndian.Uint64(r.Pieces[0]))
		return m.apply(serial, bytes.Clone(r.Pieces[0][8:]))
	})
	if err == nil {
		m.serial, err = s.Meta().Applied(1)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return m, nil
}

// apply is idempotent: content always, metadata only where it is new.
func (m *machine) apply(serial ids.Serial, body []byte) error {
	a := chunk.Sum(body)
	if err := m.s.Packs().PutLazy([]chunk.Address{a}, [][]byte{body}); err != nil {
		return err
	}
	applied, err := m.s.Meta().Applied(1)
	if err != nil || serial <= applied {
		return err
	}
	b := m.s.Meta().NewBatch()
	if err := b.Put(1, fmt.Appendf(nil, "file %d", serial), a[:], uint64(serial)); err != nil {
		return err
	}
	if err := b.SetApplied(1, serial); err != nil {
		return err
	}
	return b.Commit()
}

// create does one operation and reports whether it was acknowledged.
func (m *machine) create() bool {
	serial, body := m.serial+1, content(m.serial+1)
	done := make(chan error, 1)
	err := m.s.Journal().Append([]journal.Record{{Slice: 1, Kind: 1,
		Pieces: [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(serial)), body}}},
		func(p journal.Position, err error) { m.last = p; done <- err })
	if err == nil {
		err = <-done
	}
	if err == nil {
		m.serial = serial
		m.trouble = m.apply(serial, body)
	}
	return err == nil
}

func (m *machine) checkpoint() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return m.s.Checkpoint(ctx, m.last)
}

// holds reports whether the first n operations are all there.
func (m *machine) holds(n ids.Serial) error {
	for i := ids.Serial(1); i <= n; i++ {
		address, ok, err := m.s.Meta().Slice(1).Get(fmt.Appendf(nil, "file %d", i))
		if err != nil || !ok {
			return fmt.Errorf("file %d of %d: %v %w", i, n, ok, err)
		}
		want := content(i)
		r := []pack.Range{{Address: chunk.Address(address), Into: make([]byte, len(want))}}
		if err := m.s.Packs().Read(context.Background(), r); err != nil {
			return fmt.Errorf("content %d of %d: %w", i, n, err)
		}
		if !bytes.Equal(r[0].Into, want) {
			return fmt.Errorf("content %d differs", i)
		}
	}
	return nil
}

// TestStore_SurvivesACrashAtEverySite stops the machine at every site there is,
// with torn writes, cuts the power, starts again, and looks for every
// acknowledged operation; then it does so once more from there.
func TestStore_SurvivesACrashAtEverySite(t *testing.T) {
	for _, site := range disk.Sites() {
		t.Run(string(site), func(t *testing.T) {
			stopped := 0
			for seed := range seeds(6) {
				if crashOnce(t, site, seed) {
					stopped++
				}
			}
			if stopped == 0 {
				t.Errorf("the machine was never stopped at %s", site)
			}
		})
	}
}

func crashOnce(t *testing.T, site disk.Site, seed uint64) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	d, fs := disk.NewMemory(), vfs.NewCrashableMem()
	d.Fail(disk.Rule{Site: site, Skip: rng.IntN(1 + 6*int(seed)), Kind: fault.IO, Keep: rng.IntN(20) * 512, Crash: true})
	acked := ids.Serial(0)
	if m, err := start(small(d, fs)); err == nil {
		acked = m.work(80, rng)
		// The log and the packs end first, as with the power.
		fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		m.s.Close()
	} else {
		fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
	}
	after := d.CrashClone(rng)
	for life := range 2 {
		m, err := start(small(after, fs))
		if err != nil {
			t.Fatalf("seed %d at %s: start %d after the crash: %v", seed, site, life, err)
		}
		if m.serial < acked {
			t.Fatalf("seed %d at %s: %d acknowledged, %d there", seed, site, acked, m.serial)
		}
		if err := m.holds(m.serial); err != nil {
			t.Fatalf("seed %d at %s life %d: acknowledged %d: %v", seed, site, life, acked, err)
		}
		acked = m.work(15, rng)
		if m.trouble != nil {
			t.Fatalf("seed %d at %s: after the crash: %v", seed, site, m.trouble)
		}
		fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		next := after.CrashClone(rng)
		m.s.Close()
		after = next
	}
	return d.Crashed()
}

// work does operations with checkpoints between them until the disk stops; it
// returns how many are acknowledged altogether.
func (m *machine) work(n int, rng *rand.Rand) ids.Serial {
	for range n {
		if !m.create() || m.trouble != nil {
			break
		}
		if m.s.NeedsCheckpoint() || rng.IntN(40) == 0 {
			if m.checkpoint() != nil {
				break
			}
		}
		if rng.IntN(2) == 0 && m.compact() != nil {
			break
		}
	}
	return m.serial
}

// compact moves all chunks of a pack to another one. What finds no room for that stays.
func (m *machine) compact() error {
	id, ok := m.s.Packs().Next(0, -1, -1)
	for tries := 0; !ok && tries < 2000; tries++ {
		runtime.Gosched() // the pack that was written is being sealed
		id, ok = m.s.Packs().Next(0, -1, -1)
	}
	if !ok {
		return nil
	}
	all := func(_ context.Context, list []chunk.Address) ([]bool, error) {
		needed := make([]bool, len(list))
		for i := range needed {
			needed[i] = true
		}
		return needed, nil
	}
	_, err := m.s.Packs().Reclaim(context.Background(), id, pack.Rules{Share: -1, Needed: all, Settle: m.s.Meta().Flush,
		Pace: func(context.Context, int) error { return nil }})
	if fault.Is(err, fault.NoSpace) || fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

func TestCheckpoint_BoundsTheLog(t *testing.T) {
	d, fs := disk.NewMemory(), vfs.NewMem()
	m, err := start(small(d, fs))
	if err != nil {
		t.Fatal(err)
	}
	defer m.s.Close()
	for range 600 {
		if !m.create() {
			t.Fatal("not acknowledged")
		}
		if m.s.NeedsCheckpoint() {
			if err := m.checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := m.s.Journal().Bytes(); got > 400<<10 {
		t.Errorf("got %d bytes of log", got)
	}
	if n := m.s.Journal().Segments(); n > 6 {
		t.Errorf("got %d segments", n)
	}
}

func TestOpen_NamesTheFaultOfADirectory(t *testing.T) {
	base := func(t *testing.T) (*disk.Memory, vfs.FS) {
		d, fs := disk.NewMemory(), vfs.NewMem()
		m, err := start(small(d, fs))
		if err != nil {
			t.Fatal(err)
		}
		m.create()
		if err := m.s.Close(); err != nil {
			t.Fatal(err)
		}
		return d, fs
	}
	cases := []struct {
		name  string
		spoil func(d *disk.Memory, o *Options)
		kind  fault.Kind
		says  string
	}{
		{"another cluster", func(_ *disk.Memory, o *Options) { o.ClusterID = "c2" }, fault.WrongCluster, `"c1"`},
		{"another node", func(_ *disk.Memory, o *Options) { o.NodeID = "n2" }, fault.Unauthorized, "n1"},
		{"a newer version", func(d *disk.Memory, _ *Options) {
			rewrite(d, markerName, `"format": 1`, `"format": 2`)
		}, fault.NewerVersion, "format 2"},
		{"a damaged marker", func(d *disk.Memory, _ *Options) { rewrite(d, markerName, `"cluster"`, `"cluster `) }, fault.Corrupt, markerName},
		{"a log that is gone", func(d *disk.Memory, _ *Options) {
			names, _ := d.List("journal")
			for _, n := range names {
				_ = d.Remove(disk.JournalOpen, "journal/"+n)
			}
		}, fault.Corrupt, "log is gone"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, fs := base(t)
			o := small(d, fs)
			c.spoil(d, &o)
			s, err := Open(o)
			if err == nil {
				s.Close()
			}
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v (%v), want %v with %q", err, fault.KindOf(err), c.kind, c.says)
			}
		})
	}
}

// rewrite replaces text in a file.
func rewrite(d *disk.Memory, name, from, to string) {
	f, _ := d.Open(disk.MarkerOpen, name, 0)
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, 0)
	_ = f.WriteAt(disk.MarkerWrite, bytes.Replace(b[:n], []byte(from), []byte(to), 1), 0)
}

// TestOpen_NamesTheProcessThatIsThere runs on the real file system.
func TestOpen_NamesTheProcessThatIsThere(t *testing.T) {
	o := small(nil, nil)
	o.Dir = t.TempDir()
	m, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	first := m.s.Incarnation()
	_, err = Open(o)
	if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", os.Getpid())) {
		t.Errorf("got %v, want Busy with the process", err)
	}
	for range 50 {
		if !m.create() {
			t.Fatal("not acknowledged")
		}
	}
	if err := m.s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer again.s.Close()
	if err := again.holds(50); err != nil {
		t.Error(err)
	}
	if again.s.Incarnation() != first || first == 0 {
		t.Errorf("got incarnation %d, want %d", again.s.Incarnation(), first)
	}
}

func TestStore_FailsWithItsJournal(t *testing.T) {
	d := disk.NewMemory()
	heard := make(chan error, 4)
	o := small(d, vfs.NewMem())
	o.Fatal = func(err error) { heard <- err }
	m, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.s.Close()
	d.Fail(disk.Rule{Site: disk.JournalAppend, Kind: fault.IO})
	if m.create() {
		t.Fatal("acknowledged over a failed write")
	}
	select {
	case err := <-heard:
		if !errors.Is(m.s.Err(), err) {
			t.Errorf("got %v, Fatal heard %v", m.s.Err(), err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Fatal heard nothing")
	}
}

// seeds returns how many seeds to try.
func seeds(n uint64) uint64 {
	if raced {
		return max(1, n/4)
	}
	return n
}

// TestStore_SurvivesAFullDiskAtEverySite lets each site find the disk full for a
// while. What was acknowledged stays, what was not fails cleanly, and with room
// again the store goes on, at the latest after a restart.
func TestStore_SurvivesAFullDiskAtEverySite(t *testing.T) {
	for _, site := range disk.Sites() {
		t.Run(string(site), func(t *testing.T) {
			for seed := range seeds(4) {
				fullOnce(t, site, seed)
			}
		})
	}
}

func fullOnce(t *testing.T, site disk.Site, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 12))
	d, fs := disk.NewMemory(), vfs.NewMem()
	m, err := start(small(d, fs))
	if err != nil {
		t.Fatal(err)
	}
	m.work(20, rng)
	d.Fail(disk.Rule{Site: site, Skip: rng.IntN(8), Times: 1 + rng.IntN(3), Kind: fault.NoSpace})
	m.work(60, rng)
	acked := m.serial
	d.Heal()
	if m.trouble != nil || m.s.Err() != nil { // the process ends and comes back
		m.s.Close()
		if m, err = start(small(d, fs)); err != nil {
			t.Fatalf("seed %d at %s: start with room again: %v", seed, site, err)
		}
	}
	defer m.s.Close()
	more := m.work(20, rng)
	if m.trouble != nil || more < acked+20 {
		t.Fatalf("seed %d at %s: with room again: %d of %d, %v", seed, site, more-acked, 20, m.trouble)
	}
	if err := m.holds(more); err != nil {
		t.Fatalf("seed %d at %s: %v", seed, site, err)
	}
}
