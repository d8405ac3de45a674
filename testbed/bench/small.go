package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// each calls fn for the numbers below n, from several threads, each with its own
// part of them.
func (p place) each(ctx context.Context, n int, fn func(thread, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for t := range p.opt.Threads {
		g.Go(func() error {
			for i := t; i < n; i += p.opt.Threads {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := fn(t, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// small: many files of 16 KiB, a folder a thread: made, looked at cold, read
// cold and warm, removed.
func small(ctx context.Context, p place) error {
	n := p.opt.SmallFiles
	path := func(t, i int) string { return filepath.Join(p.dir, fmt.Sprintf("d%d", t), fmt.Sprintf("f%06d", i)) }
	data := make([][]byte, p.opt.Threads)
	for t := range p.opt.Threads {
		if err := os.Mkdir(filepath.Join(p.dir, fmt.Sprintf("d%d", t)), 0o755); err != nil {
			return err
		}
		data[t] = make([]byte, p.opt.SmallBytes)
		noise(p.random(uint64(t)), data[t])
	}
	read := func(t, i int) error { _, err := os.ReadFile(path(t, i)); return err }
	steps := []struct {
		name string
		cold bool
		fn   func(t, i int) error
	}{
		{"create 16 KiB", false, func(t, i int) error {
			noise(p.random(uint64(i)), data[t][:64])
			return writeFile(path(t, i), data[t])
		}},
		{"stat cold", true, func(t, i int) error { _, err := os.Lstat(path(t, i)); return err }},
		{"read 16 KiB cold", true, read},
		{"read 16 KiB warm", false, read},
		{"unlink", false, func(t, i int) error { return os.Remove(path(t, i)) }},
	}
	for _, s := range steps {
		if s.cold {
			if err := p.cold(); err != nil {
				return err
			}
		}
		took, err := timed(func() error { return p.each(ctx, n, s.fn) })
		if err != nil {
			return err
		}
		p.out(s.name, "/s", float64(n)/took)
	}
	return nil
}

// Sizes of mails: log-normal, docs/benchmarks.md.
const (
	mailMu    = 8.9
	mailSigma = 1.22
)

func mailSize(r *rand.Rand) int {
	return int(min(math.Exp(mailMu+mailSigma*r.NormFloat64()), 4<<20)) + 1
}

// mail: create, read and delete as 4 : 2 : 3, from every thread in its own box.
func mail(ctx context.Context, p place) error {
	buf := make([][]byte, p.opt.Threads)
	boxes := make([][]string, p.opt.Threads)
	rnd := make([]*rand.Rand, p.opt.Threads)
	for t := range p.opt.Threads {
		rnd[t] = p.random(100 + uint64(t))
		buf[t] = make([]byte, 4<<20+1)
		noise(rnd[t], buf[t])
		if err := os.Mkdir(filepath.Join(p.dir, fmt.Sprintf("box%d", t)), 0o755); err != nil {
			return err
		}
	}
	once := func(t, i int) error {
		r := rnd[t]
		switch k := r.IntN(9); {
		case k < 4 || len(boxes[t]) == 0:
			path := filepath.Join(p.dir, fmt.Sprintf("box%d", t), fmt.Sprintf("m%06d", i))
			boxes[t] = append(boxes[t], path)
			noise(r, buf[t][:64])
			return writeFile(path, buf[t][:mailSize(r)])
		case k < 6:
			_, err := os.ReadFile(boxes[t][r.IntN(len(boxes[t]))])
			return err
		default:
			j := r.IntN(len(boxes[t]))
			path := boxes[t][j]
			boxes[t][j] = boxes[t][len(boxes[t])-1]
			boxes[t] = boxes[t][:len(boxes[t])-1]
			return os.Remove(path)
		}
	}
	took, err := timed(func() error { return p.each(ctx, p.opt.MailOps, once) })
	if err != nil {
		return err
	}
	p.out("mail mix", "/s", float64(p.opt.MailOps)/took)
	return nil
}
