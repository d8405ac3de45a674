package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/plant"
)

// realBound is how long one seed may take by the real clock. One that takes
// longer waits for something without time passing, and has failed.
const realBound = 2 * time.Minute

// Alone runs one seed and ends the process. Its result goes to the file with
// the number 3, as JSON. It is what Seeds starts.
func Alone(o Options) {
	dir, err := os.MkdirTemp("", "cartwheel-simulation-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "cartwheel-testbed:", err)
		return
	}
	o.Dir = dir
	testing.Init()
	_ = flag.CommandLine.Parse(nil) // nothing can be wrong with no words
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "seed", F: func(t *testing.T) {
		r := Run(t, o)
		if err := errors.Join(json.NewEncoder(os.NewFile(3, "result")).Encode(r), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	}}}, nil, nil)
}

// Batch is many seeds, each in a process of its own.
type Batch struct {
	// Self is the command that runs one seed by Alone; the seed is added.
	Self []string
	// First is the first seed; there are Count of them.
	First, Count uint64
	Jobs         int // at once
	// Each hears of every result, from one goroutine at a time.
	Each func(Result)
	// Plant is a mistake that the runs make; empty: none. The program must be
	// built with the tag plants.
	Plant plant.Name
	// Until ends the batch early, behind the result that it says true of; nil:
	// nothing does.
	Until func(Result) bool
	// Trace gets what the runs say; nil: nothing does.
	Trace io.Writer
	// Keep is a folder for the traces of seeds that fail, each in a file named by
	// its seed; empty: they are not kept. Self must tell the runs to trace.
	Keep string
}

// Seeds runs a batch until it is done or ctx ends.
func Seeds(ctx context.Context, b Batch) error {
	inner, enough := context.WithCancel(ctx)
	defer enough()
	next := make(chan uint64)
	var mu sync.Mutex // guards Each
	var working sync.WaitGroup
	for range max(b.Jobs, 1) {
		working.Go(func() {
			for seed := range next {
				r := b.one(inner, seed)
				if inner.Err() != nil {
					continue
				}
				mu.Lock()
				if inner.Err() == nil {
					b.Each(r)
				}
				if b.Until != nil && b.Until(r) {
					enough()
				}
				mu.Unlock()
			}
		})
	}
	for seed := b.First; seed < b.First+b.Count && inner.Err() == nil; seed++ {
		select {
		case next <- seed:
		case <-inner.Done():
		}
	}
	close(next)
	working.Wait()
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, "simulation.Seeds", "", ctx.Err())
	}
	return nil
}

// one runs one seed. A process that ends without a result is a failed seed.
func (b *Batch) one(ctx context.Context, seed uint64) (r Result) {
	ctx, cancel := context.WithTimeout(ctx, realBound)
	defer cancel()
	r.Seed = seed
	read, write, err := os.Pipe()
	if err != nil {
		r.Problems = []string{err.Error()}
		return r
	}
	defer read.Close()
	words := append(append([]string{}, b.Self[1:]...), strconv.FormatUint(seed, 10))
	c := exec.CommandContext(ctx, b.Self[0], words...)
	var said bytes.Buffer
	c.Stdout, c.Stderr, c.ExtraFiles = &said, &said, []*os.File{write}
	if b.Trace != nil {
		c.Stdout = b.Trace
	}
	if b.Keep != "" {
		kept, err := os.Create(filepath.Join(b.Keep, fmt.Sprintf("seed-%d.txt", seed)))
		if err != nil {
			r.Problems = []string{err.Error()}
			return r
		}
		defer func() { b.keep(kept, len(r.Problems) > 0) }()
		c.Stdout = kept
	}
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=400", "CARTWHEEL_PLANT="+string(b.Plant))
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGQUIT) } // tells where it hangs
	c.WaitDelay = 10 * time.Second
	if err = c.Start(); err == nil {
		_ = write.Close() // the process has it
		var encoded []byte
		encoded, _ = io.ReadAll(read) // what is missing does not decode
		ended := c.Wait()
		if err = json.Unmarshal(encoded, &r); err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.Problems = append(r.Problems, fmt.Sprintf("HANG: it took longer than %v\n%s", realBound, tail(said.Bytes())))
			err = nil
		} else if err != nil {
			err = fmt.Errorf("it ended without a result: %w\n%s", ended, tail(said.Bytes()))
		}
	}
	if err != nil {
		r.Problems = append(r.Problems, "PROCESS: "+err.Error())
	}
	return r
}

// keep closes a trace, and removes it if its seed passed.
func (b *Batch) keep(f *os.File, failed bool) {
	_ = f.Close() // its writer was another process
	if !failed {
		_ = os.Remove(f.Name())
	}
}

// Found reports whether a run showed something wrong. That it took too long may
// be the fault of a machine with much else to do, and shows nothing.
func (r *Result) Found() bool {
	return slices.ContainsFunc(r.Problems, func(p string) bool { return !strings.HasPrefix(p, "HANG: ") })
}

// tail is the end of a long text.
func tail(b []byte) []byte {
	const most = 16 << 10
	return b[max(0, len(b)-most):]
}

// Level is what a trace tells: packets too, or not.
func Level(packets bool) slog.Level {
	if packets {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
