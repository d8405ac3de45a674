package pack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

// checkAll goes over all packs in small steps and returns what came of them together.
func checkAll(t *testing.T, p *Packs) Checked {
	t.Helper()
	c := p.Check(Place{}, 0)
	defer c.Close()
	var all Checked
	for range 10_000 {
		if goOn(t, c, &all); all.End {
			if left, _ := c.Left(); left != 0 {
				t.Errorf("at the end %d bytes are left", left)
			}
			return all
		}
	}
	t.Fatal("the check has no end")
	return all
}

// goOn does one step and adds what came of it.
func goOn(t *testing.T, c *Checker, all *Checked) {
	t.Helper()
	got, err := c.Step(context.Background(), 24<<10)
	if err != nil {
		t.Fatal(err)
	}
	all.At, all.End = got.At, got.End
	all.Bytes, all.Chunks = all.Bytes+got.Bytes, all.Chunks+got.Chunks
	all.Damaged = append(all.Damaged, got.Damaged...)
	all.Unlisted, all.Rescued, all.ReadErrors = all.Unlisted+got.Unlisted, all.Rescued+got.Rescued, all.ReadErrors+got.ReadErrors
}

// where returns the pack of a chunk and a bit of its body there.
func where(t *testing.T, p *Packs, i int) (name string, bit int64) {
	t.Helper()
	a, b := body(i)
	at, ok := p.index.get(&a)
	if !ok {
		t.Fatalf("chunk %d is not here", i)
	}
	from := at.offset() + int64(len(b)/2)
	return packName(at.pack()), 8*(from/sectorData*sectorSize+from%sectorData) + 3
}

// reopened closes the packs and opens them again.
func reopened(t *testing.T, d disk.Disk, p *Packs) *Packs {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return opened(t, d, small())
}

// lacks checks that of the first n chunks exactly those given are not here.
func lacks(t *testing.T, p *Packs, n int, want ...int) {
	t.Helper()
	as, _ := bodies(0, n)
	for i, has := range p.Has(as) {
		if has == slices.Contains(want, i) {
			t.Errorf("chunk %d is here: %v", i, has)
		}
	}
}

// numbers returns which of the first n chunks have the addresses.
func numbers(list []chunk.Address, n int) (out []int) {
	for i := range n {
		if a, _ := body(i); slices.Contains(list, a) {
			out = append(out, i)
		}
	}
	return out
}

func TestCheck_FindsDamageAndLetsItBeRepaired(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	const n = 120
	for i := 0; i < n; i += 8 {
		put(t, p, i, 8)
	}
	p.sealer.Wait()
	if got := checkAll(t, p); got.Chunks != n || got.Bytes == 0 || len(got.Damaged) > 0 {
		t.Fatalf("of %d whole chunks: %+v", n, got)
	}
	bad := []int{3, 4, 50, n - 1} // the last one in the pack that is not full
	for _, i := range bad {
		d.Damage(where(t, p, i))
	}
	got := checkAll(t, p)
	if int(got.Chunks)+len(got.Damaged) != n || got.ReadErrors > 0 {
		t.Fatalf("got %+v", got)
	}
	for _, i := range bad {
		if a, _ := body(i); !slices.Contains(got.Damaged, a) {
			t.Errorf("the damage to chunk %d was not found", i)
		}
	}
	bad = numbers(got.Damaged, n) // neighbours share the sector that is wrong
	lacks(t, p, n, bad...)
	p = reopened(t, d, p) // a start does not find them again
	lacks(t, p, n, bad...)
	for _, i := range bad {
		put(t, p, i, 1)
	}
	p = reopened(t, d, p)
	if err := check(p, 0, n); err != nil {
		t.Error(err)
	}
	if got := checkAll(t, p); got.Chunks != n || len(got.Damaged) > 0 {
		t.Errorf("after the repair: %+v", got)
	}
}

// TestCheck_ProvesChunksByTheirAddresses has a chunk whose sectors are whole.
func TestCheck_ProvesChunksByTheirAddresses(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	a, _ := body(1)
	_, other := body(2)
	if err := p.Put(t.Context(), []chunk.Address{a}, [][]byte{other}); err != nil {
		t.Fatal(err)
	}
	put(t, p, 10, 60) // the pack is full then
	p.sealer.Wait()
	if got := checkAll(t, p); len(got.Damaged) != 1 || got.Damaged[0] != a || got.Chunks != 60 {
		t.Fatalf("got %+v, want the one that has another's content", got)
	}
	p = reopened(t, d, p)
	if p.Has([]chunk.Address{a})[0] {
		t.Error("a start finds it again")
	}
}

func TestCheck_FindsWhatACutFileLacks(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	for i := 0; i < 100; i += 4 {
		put(t, p, i, 4)
	}
	p.sealer.Wait()
	name, bit := where(t, p, 5)
	d.Cut(name, bit/8)
	got := checkAll(t, p)
	if len(got.Damaged) == 0 || int(got.Chunks)+len(got.Damaged) != 100 {
		t.Fatalf("got %+v", got)
	}
	for _, i := range numbers(got.Damaged, 100) {
		put(t, p, i, 1)
	}
	p = reopened(t, d, p)
	if err := check(p, 0, 100); err != nil {
		t.Error(err)
	}
}

// TestCheck_RescuesAFileWithoutAName removes a full pack that is open: its chunks can be
// read until the next start, and must be written anew before it.
func TestCheck_RescuesAFileWithoutAName(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	for i := 0; i < 100; i += 4 {
		put(t, p, i, 4)
	}
	p.sealer.Wait()
	name, _ := where(t, p, 5)
	for _, gone := range []string{name, strings.Replace(name, ".pack", ".idx", 1)} {
		if err := d.Remove(disk.PackRemove, gone); err != nil {
			t.Fatal(err)
		}
	}
	if got := checkAll(t, p); got.Rescued < 10 || len(got.Damaged) > 0 {
		t.Fatalf("got %+v", got)
	}
	p = reopened(t, d, p)
	if err := check(p, 0, 100); err != nil {
		t.Error(err)
	}
}

// TestCheck_ForgetsWhatNoListNames loses the index of a full pack, and damages the directory
// of a batch in it.
func TestCheck_ForgetsWhatNoListNames(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	for i := 0; i < 100; i += 4 {
		put(t, p, i, 4)
	}
	p.sealer.Wait()
	name, _ := where(t, p, 0)
	if err := d.Remove(disk.IndexRemove, strings.Replace(name, ".pack", ".idx", 1)); err != nil {
		t.Fatal(err)
	}
	d.Damage(name, 8*(sectorSize+batchHeader+5))
	got := checkAll(t, p)
	if got.Unlisted != 4 {
		t.Fatalf("got %+v, want the 4 chunks of a batch", got)
	}
	lacks(t, p, 100, 0, 1, 2, 3)
	if got := checkAll(t, p); got.Unlisted > 0 || got.Chunks != 96 {
		t.Errorf("again: %+v", got)
	}
	if _, indexed, err := p.listOf((*p.files.Load())[1]); err != nil || !indexed {
		t.Errorf("the index was not written anew: %v", err)
	}
}

// TestCheck_GoesOnWhereItWas stops after each step and goes on in another life.
func TestCheck_GoesOnWhereItWas(t *testing.T) {
	d := disk.NewMemory()
	p := opened(t, d, small())
	const n = 100
	for i := 0; i < n; i += 4 {
		put(t, p, i, 4)
	}
	p.sealer.Wait()
	until := p.Check(Place{}, 0).Until()
	var all Checked
	for steps := 0; !all.End; steps++ {
		if steps == 500 {
			t.Fatal("it has no end")
		}
		c := p.Check(all.At, until)
		goOn(t, c, &all)
		c.Close()
		if steps%7 == 3 {
			p = reopened(t, d, p)
			put(t, p, 1000+steps, 1) // it is not of this check
		}
	}
	if all.Chunks < n || all.Chunks > n+5 {
		t.Errorf("%d chunks were checked, want each of %d once", all.Chunks, n)
	}
}

// TestCheck_GoesOnBesideCollection has packs reclaimed between the steps.
func TestCheck_GoesOnBesideCollection(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	for i := 0; i < 200; i += 4 {
		if err := k.put(i, 4); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		if i%3 > 0 {
			k.drop(i)
		}
	}
	k.unpin()
	c := k.p.Check(Place{}, 0)
	defer c.Close()
	var all Checked
	for step := 0; !all.End; step++ {
		if goOn(t, c, &all); step == 2 {
			if freed, err := k.collect(0.25); err != nil || freed == 0 {
				t.Fatalf("collected %d bytes, %v", freed, err)
			}
		}
	}
	if len(all.Damaged) > 0 || all.Unlisted > 0 || all.Rescued > 0 || all.ReadErrors > 0 {
		t.Errorf("collection looks like damage: %+v", all)
	}
	if err := k.holds(); err != nil {
		t.Error(err)
	}
}

// refusing is a disk that refuses to read a part of each pack.
type refusing struct {
	*disk.Memory
	from, to int64 // bytes of the file
	times    int   // how often; less than 0: always
}

type refusingFile struct {
	disk.File
	d *refusing
}

func (d *refusing) Open(site disk.Site, name string, mode disk.Mode) (disk.File, error) {
	f, err := d.Memory.Open(site, name, mode)
	if err == nil && site == disk.PackOpen && mode&disk.ReadOnly != 0 {
		f = refusingFile{f, d}
	}
	return f, err
}

func (f refusingFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.d.to && off+int64(len(p)) > f.d.from && f.d.times != 0 {
		f.d.times--
		return 0, fault.E(fault.IO, "", "", "the disk refuses")
	}
	return f.File.ReadAt(p, off)
}

func TestCheck_CountsWhatTheDiskRefuses(t *testing.T) {
	d := &refusing{Memory: disk.NewMemory()}
	p := opened(t, d, small())
	put(t, p, 0, 40)
	put(t, p, 40, 40)
	p.sealer.Wait()
	_, bit := where(t, p, 2)
	d.from, d.to, d.times = bit/8, bit/8+1, 1
	if got := checkAll(t, p); got.ReadErrors > 0 || len(got.Damaged) > 0 || got.Chunks != 80 {
		t.Fatalf("refused once: %+v", got)
	}
	d.times = -1
	got := checkAll(t, p)
	if a, _ := body(2); got.ReadErrors == 0 || !slices.Contains(got.Damaged, a) || p.Err() != nil {
		t.Fatalf("refused again and again: %+v, %v", got, p.Err())
	}
	d.times = 0
	p = reopened(t, d, p) // nothing was proven: a start finds it again
	if err := check(p, 0, 80); err != nil {
		t.Error(fmt.Errorf("once it can be read again: %w", err))
	}
}

// TestCheck_ReadsARealDisk flips a bit in a file of the operating system, past which reads go
// where the file system can do that.
func TestCheck_ReadsARealDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := disk.OpenReal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	p := opened(t, d, small())
	for i := 0; i < 60; i += 4 {
		put(t, p, i, 4)
	}
	p.sealer.Wait()
	if got := checkAll(t, p); got.Chunks != 60 || len(got.Damaged) > 0 {
		t.Fatalf("of whole chunks: %+v", got)
	}
	name, bit := where(t, p, 7)
	f, err := d.Open(disk.PackOpen, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := make([]byte, 1)
	if _, err = f.ReadAt(one, bit/8); err == nil {
		one[0] ^= 1
		err = f.WriteAt(disk.PackWrite, one, bit/8)
	}
	if err == nil {
		err = f.Sync(disk.PackSync)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := checkAll(t, p)
	if a, _ := body(7); !slices.Contains(got.Damaged, a) || int(got.Chunks)+len(got.Damaged) != 60 || got.ReadErrors > 0 {
		t.Fatalf("%+v", got)
	}
	for _, i := range numbers(got.Damaged, 60) {
		put(t, p, i, 1)
	}
	if err := check(reopened(t, d, p), 0, 60); err != nil {
		t.Error(err)
	}
}
