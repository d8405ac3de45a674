package diskcache

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"cartwheel.dev/geo-config/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func keyOf(n int) []byte {
	k := make([]byte, keySize)
	binary.BigEndian.PutUint64(k, uint64(n))
	return k
}

func dataOf(n, size int) []byte {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(n))
	out := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(out)
	return out
}

func open(t *testing.T, dir string, limit int64) *Cache {
	t.Helper()
	c, err := Open(dir, Options{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestGet_FindsRecordsAfterARestart(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, 8<<20)
	for i := range 50 {
		c.Put(keyOf(i), dataOf(i, 1000+i*1000))
		c.Wait()
	}
	for range 2 {
		for i := range 50 {
			if got, ok := c.Get(keyOf(i)); !ok || !bytes.Equal(got, dataOf(i, 1000+i*1000)) {
				t.Fatalf("record %d: got %d bytes, %v", i, len(got), ok)
			}
		}
		if _, ok := c.Get(keyOf(51)); ok {
			t.Fatal("a key that was never put is there")
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = open(t, dir, 8<<20)
	}
}

func TestClose_WritesWhatWaits(t *testing.T) {
	dir := t.TempDir()
	const rounds, each = 30, 5
	for round := range rounds {
		c := open(t, dir, 64<<20)
		c.Put(keyOf(0), dataOf(0, 1000))
		c.Wait()
		var wg sync.WaitGroup
		for range 4 { // who reads meanwhile takes no file from the writer
			wg.Go(func() {
				for ok := true; ok; {
					_, ok = c.Get(keyOf(0)) // until it is closed
				}
			})
		}
		for i := range each {
			n := 1 + round*each + i
			c.Put(keyOf(n), dataOf(n, 1000))
		}
		err := c.Close()
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, dir, 64<<20)
	for n := 1; n <= rounds*each; n++ {
		if got, ok := c.Get(keyOf(n)); !ok || !bytes.Equal(got, dataOf(n, 1000)) {
			t.Fatalf("record %d: got %d bytes, %v", n, len(got), ok)
		}
	}
}

func TestPut_KeepsTheLimitAndWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	const limit = 4 << 20
	c := open(t, dir, limit)
	kept := 0
	for i := range 200 {
		c.Put(keyOf(i), dataOf(i, 60000))
		c.Wait()
		if c.Used() > limit {
			t.Fatalf("%d bytes on disk, the limit is %d", c.Used(), limit)
		}
		if _, ok := c.Get(keyOf(0)); ok { // read all the time: moved on
			kept++
			c.Wait()
		}
	}
	if kept != 200 {
		t.Errorf("a record that is read all the time was there %d times of 200", kept)
	}
	if _, ok := c.Get(keyOf(1)); ok {
		t.Error("the oldest record is still there")
	}
	if _, ok := c.Get(keyOf(199)); !ok {
		t.Error("the newest record is not there")
	}
	var onDisk int64
	files, _ := filepath.Glob(filepath.Join(dir, "*.cache"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		onDisk += info.Size()
	}
	if onDisk != c.Used() {
		t.Errorf("%d bytes in files, %d counted", onDisk, c.Used())
	}
}

func TestGet_ServesNoDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, 8<<20)
	for i := range 3 {
		c.Put(keyOf(i), dataOf(i, 5000))
	}
	c.Wait()
	_ = c.Close()
	name := filepath.Join(dir, segmentName(1))
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(magic)+headerSize+5000+headerSize+77] ^= 1 // in the second record's data
	if err := os.WriteFile(name, raw[:len(raw)-1], 0o600); err != nil {
		t.Fatal(err) // and the third is torn
	}
	c = open(t, dir, 8<<20)
	for i, want := range []bool{true, false, false} {
		if _, ok := c.Get(keyOf(i)); ok != want {
			t.Errorf("record %d: served %v, want %v", i, ok, want)
		}
	}
	c.Put(keyOf(1), dataOf(1, 5000))
	c.Wait()
	if got, ok := c.Get(keyOf(1)); !ok || !bytes.Equal(got, dataOf(1, 5000)) {
		t.Error("a damaged record cannot be put again")
	}
}

func TestOpen_ReplacesForeignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, segmentName(1)), []byte("something else entirely"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, 8<<20)
	c.Put(keyOf(1), dataOf(1, 100))
	c.Wait()
	if _, ok := c.Get(keyOf(1)); !ok {
		t.Error("not kept")
	}
}

func TestOpen_RefusesASecondProcess(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, 8<<20)
	if _, err := Open(dir, Options{Limit: 8 << 20}); !fault.Is(err, fault.Busy) {
		t.Errorf("got %v, want Busy", err)
	}
	if _, err := Open(t.TempDir(), Options{Limit: 5}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a limit of 5 bytes: got %v, want Invalid", err)
	}
}

func TestCache_ServesManyReadersAndWriters(t *testing.T) {
	c := open(t, t.TempDir(), 2<<20)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 300 {
				n := (i*7 + g) % 100
				if got, ok := c.Get(keyOf(n)); ok && !bytes.Equal(got, dataOf(n, 30000)) {
					t.Errorf("record %d is wrong", n)
				}
				c.Put(keyOf(n), dataOf(n, 30000))
			}
		})
	}
	group.Wait()
}
