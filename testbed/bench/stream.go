package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

const (
	streamBuffer = 1 << 20
	randomBlock  = 4 << 10
)

// noise fills b with bytes that neither compress nor repeat.
func noise(r *rand.Rand, b []byte) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
}

func (p place) random(salt uint64) *rand.Rand { return rand.New(rand.NewPCG(p.opt.Seed, salt)) }

// large makes n bytes that never repeat and hands them on in pieces of 1 MiB,
// which fn must not keep.
func large(ctx context.Context, r *rand.Rand, n int64, fn func(piece []byte) error) error {
	buf := make([]byte, streamBuffer)
	noise(r, buf)
	for done := int64(0); done < n; done += streamBuffer {
		if err := ctx.Err(); err != nil {
			return err
		}
		// One word in 32 anew: no chunk is as it was, and little time is spent.
		for i := 0; i < len(buf); i += 256 {
			binary.LittleEndian.PutUint64(buf[i:], r.Uint64())
		}
		if err := fn(buf[:min(streamBuffer, n-done)]); err != nil {
			return err
		}
	}
	return nil
}

// writeLarge makes a file of n bytes and syncs it.
func (p place) writeLarge(ctx context.Context, path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = large(ctx, p.random(uint64(n)), n, func(piece []byte) error { _, err := f.Write(piece); return err })
	if err != nil {
		return err
	}
	return f.Sync()
}

func readLarge(ctx context.Context, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, streamBuffer)
	var n int64
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		m, err := f.Read(buf)
		n += int64(m)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// stream: sequential write with a sync at the end, then cold and warm reading.
func stream(ctx context.Context, p place) error {
	path := filepath.Join(p.dir, "large")
	mb := float64(p.opt.FileBytes) / 1e6
	took, err := timed(func() error { return p.writeLarge(ctx, path, p.opt.FileBytes) })
	if err != nil {
		return err
	}
	p.out("write + fsync", "MB/s", mb/took)
	for _, state := range []string{"cold", "warm"} {
		if state == "cold" {
			if err := p.cold(); err != nil {
				return err
			}
		}
		took, err = timed(func() error { _, err := readLarge(ctx, path); return err })
		if err != nil {
			return err
		}
		p.out("read "+state, "MB/s", mb/took)
	}
	return nil
}

// random: 4 KiB reads from a cold large file, then overwrites with one sync.
func random(ctx context.Context, p place) error {
	path := filepath.Join(p.dir, "large")
	if err := p.writeLarge(ctx, path, p.opt.FileBytes); err != nil {
		return err
	}
	if err := p.cold(); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	r := p.random(2)
	blocks := p.opt.FileBytes / randomBlock
	buf := make([]byte, randomBlock)
	took, err := timed(func() error {
		for range p.opt.RandomOps {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := f.ReadAt(buf, r.Int64N(blocks)*randomBlock); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.out("random 4 KiB read cold", "/s", float64(p.opt.RandomOps)/took)
	took, err = timed(func() error {
		for range p.opt.RandomOps {
			if err := ctx.Err(); err != nil {
				return err
			}
			noise(r, buf)
			if _, err := f.WriteAt(buf, r.Int64N(blocks)*randomBlock); err != nil {
				return err
			}
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	p.out("random 4 KiB overwrite", "/s", float64(p.opt.RandomOps)/took)
	return nil
}
