package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"

	"cartwheel.dev/node/store/disk"
)

// resum sets a header block's sum.
func resum(block []byte) {
	binary.LittleEndian.PutUint32(block[48:], crc32.Checksum(block[:48], castagnoli))
}

// BenchmarkAppend measures synced records on a real file system.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{300, 3900, 20000} {
		for _, writers := range []int{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("bytes=%d/writers=%d", size, writers), func(b *testing.B) { benchAppend(b, size, writers) })
		}
	}
}

func benchAppend(b *testing.B, size, writers int) {
	d, err := disk.OpenReal(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	j, err := Open(d, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	if err := j.Replay(0, func(Position, Record) error { return nil }); err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	body := make([]byte, size)
	write := func(n int) {
		ch := make(chan error, 1)
		for range n {
			err := j.Append([]Record{{Slice: 1, Pieces: [][]byte{body}}}, func(p Position, err error) {
				if err == nil && p%(32<<20) < 8192 {
					err = j.Trim(p)
				}
				ch <- err
			})
			if err == nil {
				err = <-ch
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	}
	write(1)
	b.ResetTimer()
	b.SetBytes(int64(size))
	for range writers {
		wg.Go(func() { write(b.N/writers + 1) })
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
