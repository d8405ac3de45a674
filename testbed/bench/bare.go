package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/store/pack"
	"golang.org/x/sync/errgroup"
)

// The bare stores do what a large write or read cannot do without: cut the
// bytes into chunks, name them by their hash, make each durable on three
// disks, and read them back with their sums checked. No names, no network, no
// replication protocol, nothing between processes.
const (
	copies      = 3
	bareBatch   = 2 << 20 // bytes of chunks in one Put or Read, as the file system sends them
	bareFlights = 8       // batches on their way at once
)

type bare struct {
	dir     string
	disks   []*disk.Real
	packs   []*pack.Packs
	batches []*batch // of the large file, in order, without their bodies
}

func openBare(dir string) (*bare, error) {
	b := &bare{dir: dir}
	began := time.Now()
	for i := range copies {
		at := filepath.Join(dir, fmt.Sprint("store", i))
		if err := os.MkdirAll(at, 0o700); err != nil {
			return nil, errors.Join(err, b.close())
		}
		d, err := disk.OpenReal(at)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.disks = append(b.disks, d)
		p, err := pack.Open(d, pack.Options{Clock: func() time.Duration { return time.Since(began) }})
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.packs = append(b.packs, p)
	}
	return b, nil
}

func (b *bare) close() error {
	var errs []error
	for _, p := range b.packs {
		errs = append(errs, p.Close())
	}
	for _, d := range b.disks {
		errs = append(errs, d.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// batch is chunks that travel together.
type batch struct {
	bodies    [][]byte // nil once they are on the disks
	addresses []chunk.Address
	lengths   []int
	bytes     int
}

func (b *batch) add(body []byte) {
	b.bodies, b.lengths, b.bytes = append(b.bodies, body), append(b.lengths, len(body)), b.bytes+len(body)
}

// name computes the chunks' addresses.
func (b *batch) name() {
	for _, body := range b.bodies {
		b.addresses = append(b.addresses, chunk.Sum(body))
	}
}

// write stores the large file's bytes; durable on all disks when it returns.
func (b *bare) write(ctx context.Context, p place, n int64) (err error) {
	b.batches, err = storeLarge(ctx, p, n, bareFlights, b.put)
	return err
}

// storeLarge cuts the large file's bytes into chunks, has put store them, in
// batches side by side, and returns these without their bodies.
func storeLarge(ctx context.Context, p place, n int64, flights int, put func(ctx context.Context, number int, full *batch) error) ([]*batch, error) {
	var batches []*batch
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(flights)
	current := &batch{}
	send := func() {
		full, number := current, len(batches)
		current = &batch{}
		batches = append(batches, full)
		g.Go(func() error {
			defer func() { full.bodies = nil }()
			return put(ctx, number, full)
		})
	}
	s := chunk.NewSplitter()
	body := make([]byte, 0, chunk.MaxSize)
	err := large(ctx, p.random(uint64(n)), n, func(piece []byte) error {
		for len(piece) > 0 {
			m, boundary := s.Next(piece)
			body = append(body, piece[:m]...)
			piece = piece[m:]
			if boundary {
				current.add(body)
				body = make([]byte, 0, chunk.MaxSize)
			}
			if current.bytes >= bareBatch {
				send()
			}
		}
		return nil
	})
	if len(body) > 0 {
		current.add(body)
	}
	if current.bytes > 0 {
		send()
	}
	return batches, errors.Join(err, g.Wait())
}

// put names the chunks of one batch and makes it durable on every disk.
func (b *bare) put(ctx context.Context, _ int, full *batch) error {
	full.name()
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range b.packs {
		g.Go(func() error { return p.Put(ctx, full.addresses, full.bodies) })
	}
	return g.Wait()
}

// read reads the large file from one of the stores, in order.
func (b *bare) read(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bareFlights)
	for _, part := range b.batches {
		g.Go(func() error {
			buf := make([]byte, part.bytes)
			ranges := make([]pack.Range, len(part.lengths))
			for i, n := range part.lengths {
				ranges[i] = pack.Range{Address: part.addresses[i], Into: buf[:n:n]}
				buf = buf[n:]
			}
			if err := b.packs[0].Read(ctx, ranges); err != nil {
				return err
			}
			for _, r := range ranges {
				if r.Err != nil {
					return r.Err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
