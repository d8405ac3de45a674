package disk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"cartwheel.dev/geo-config/fault"
)

// conform checks what both disks promise.
func conform(t *testing.T, d Disk) {
	t.Helper()
	if _, err := d.Open(PackOpen, "a/f", 0); !fault.Is(err, fault.NotFound) {
		t.Fatalf("a missing file: got %v, want NotFound", err)
	}
	must(t, d.MakeDir(PackDir, "a"))
	for _, mode := range []Mode{0, Direct, Synced, Direct | Synced} {
		f, err := d.Open(PackOpen, "a/f", mode|Create)
		must(t, err)
		must(t, f.Allocate(PackAllocate, 4*Block))
		if n, err := f.Size(); err != nil || n != 4*Block {
			t.Fatalf("mode %d: size %d %v after Allocate", mode, n, err)
		}
		want := Aligned(2 * Block)
		for i := range want {
			want[i] = byte(i*7 + int(mode))
		}
		must(t, f.WriteAt(PackWrite, want, Block))
		must(t, f.Sync(PackSync))
		got := Aligned(2 * Block)
		if _, err := f.ReadAt(got, Block); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("mode %d: read back: %v", mode, err)
		}
		if _, err := f.ReadAt(got, 4*Block); !errors.Is(err, io.EOF) {
			t.Fatalf("mode %d: behind the end: got %v, want EOF", mode, err)
		}
		must(t, f.Close())
	}
	must(t, d.Rename(IndexRename, "a/f", "a/g"))
	must(t, d.SyncDir(PackSyncDir, "a"))
	if names, err := d.List("a"); err != nil || !slices.Equal(names, []string{"g"}) {
		t.Fatalf("got %q %v", names, err)
	}
	must(t, d.Remove(PackOpen, "a/g"))
	if err := d.Remove(PackOpen, "a/g"); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing twice: got %v, want NotFound", err)
	}
	unlock, err := d.(Locker).Lock("lock", []byte("7"))
	must(t, err)
	if _, err := d.(Locker).Lock("lock", []byte("8")); !fault.Is(err, fault.Busy) {
		t.Errorf("locking twice: got %v, want Busy", err)
	}
	if f, err := d.Open(MarkerOpen, "lock", ReadOnly); err != nil {
		t.Errorf("who holds the lock cannot be read: %v", err)
	} else {
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, 0); err != nil || b[0] != '7' {
			t.Errorf("the lock holds %q, %v", b, err)
		}
		must(t, f.Close())
	}
	must(t, unlock())
	if u, err := d.(Measurer).Usage(); err != nil || u.Free <= 0 || u.Free > u.Total {
		t.Errorf("usage %+v %v", u, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMemory_Conforms(t *testing.T) { conform(t, NewMemory()) }

func TestReal_Conforms(t *testing.T) {
	d, err := OpenReal(t.TempDir())
	must(t, err)
	defer d.Close()
	conform(t, d)
}

// TestReal_WorksWithoutDirectIO runs where files are kept in memory.
func TestReal_WorksWithoutDirectIO(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "disk")
	if err != nil {
		t.Skipf("no file system in memory here: %v", err)
	}
	defer os.RemoveAll(dir)
	d, err := OpenReal(dir)
	must(t, err)
	defer d.Close()
	conform(t, d)
}

func TestReal_NamesDoNotLeadOut(t *testing.T) {
	d, err := OpenReal(t.TempDir())
	must(t, err)
	defer d.Close()
	if _, err := d.Open(PackOpen, "../out", Create); err == nil {
		t.Error("a file outside was made")
	}
	must(t, os.Symlink("/etc/hostname", d.Path("link")))
	if _, err := d.Open(PackOpen, "link", ReadOnly); err == nil {
		t.Error("a link led outside")
	}
}

func TestAligned_StartsAtABlock(t *testing.T) {
	for _, n := range []int{0, 1, Block, 3 * Block} {
		b := Aligned(n)
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); len(b) != n || n > 0 && at%Block != 0 {
			t.Errorf("got %d bytes at %x, want %d aligned", len(b), at, n)
		}
	}
	if RoundUp(0) != 0 || RoundUp(1) != Block || RoundUp(Block) != Block {
		t.Error("rounding is wrong")
	}
}

// TestMemory_PowerLossKeepsWhatWasSynced shows what a memory disk keeps:
// everything that was synced, and a random part of the rest.
func TestMemory_PowerLossKeepsWhatWasSynced(t *testing.T) {
	m := NewMemory()
	f, err := m.Open(PackOpen, "f", Create)
	must(t, err)
	old, young := bytes.Repeat([]byte{1}, 8*sectorBytes), bytes.Repeat([]byte{2}, 8*sectorBytes)
	must(t, f.WriteAt(PackWrite, old, 0))
	if _, err := m.CrashClone(nil).Open(PackOpen, "f", 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("a name that was not synced: got %v", err)
	}
	must(t, f.Sync(PackSync))
	must(t, m.SyncDir(PackSyncDir, "."))
	must(t, f.WriteAt(PackWrite, young, 0))
	if got := content(t, m.CrashClone(nil)); !bytes.Equal(got, old) {
		t.Error("unsynced bytes survived without chance")
	}
	torn := false
	for seed := range uint64(20) {
		got := content(t, m.CrashClone(rand.New(rand.NewPCG(seed, 1))))
		for s := 0; s < len(got); s += sectorBytes {
			if part := got[s : s+sectorBytes]; !bytes.Equal(part, old[:sectorBytes]) && !bytes.Equal(part, young[:sectorBytes]) {
				t.Fatal("a sector was torn")
			}
		}
		torn = torn || bytes.Contains(got, []byte{1}) && bytes.Contains(got, []byte{2})
	}
	if !torn {
		t.Error("no write was torn")
	}
	must(t, f.Sync(PackSync))
	if got := content(t, m.CrashClone(nil)); !bytes.Equal(got, young) {
		t.Error("synced bytes were lost")
	}
}

func content(t *testing.T, m *Memory) []byte {
	t.Helper()
	f, err := m.Open(PackOpen, "f", 0)
	must(t, err)
	b := make([]byte, 8*sectorBytes)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMemory_FailedSyncDropsWrites(t *testing.T) {
	m := NewMemory()
	f, err := m.Open(PackOpen, "f", Create)
	must(t, err)
	must(t, m.SyncDir(PackSyncDir, "."))
	must(t, f.WriteAt(PackWrite, bytes.Repeat([]byte{1}, 8*sectorBytes), 0))
	m.Fail(Rule{Site: PackSync, Times: 1, Kind: fault.IO})
	if err := f.Sync(PackSync); !fault.Is(err, fault.IO) {
		t.Fatalf("got %v, want IO", err)
	}
	must(t, f.Sync(PackSync)) // succeeds, as on a real system, and saves nothing
	g, err := m.CrashClone(nil).Open(PackOpen, "f", 0)
	must(t, err)
	b := make([]byte, 8*sectorBytes)
	if n, _ := g.ReadAt(b, 0); bytes.Contains(b[:n], []byte{1}) {
		t.Error("what a failed sync had dropped is on the disk")
	}
}
