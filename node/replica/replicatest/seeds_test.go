package replicatest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"cartwheel.dev/node/replica"
)

// options draws the shape of a cluster from a seed.
func options(seed uint64) Options {
	o := Options{Seed: seed, Nodes: 3, Level: 3, Clients: 3, Faults: 20 * Lease, Loss: int(seed % 4 * 15)}
	switch seed % 8 {
	case 1:
		o.Level = 2
	case 2:
		o.Nodes = 4
	case 3:
		o.Nodes, o.Level = 5, 5
	case 4:
		o.Nodes, o.Level = 3, 1
	case 5:
		o.Level, o.Members = 2, 3
	}
	o.Flight = [...]int{1, 4, 16, 32}[seed/3%4]
	switch seed / 8 % 4 {
	case 1:
		o.Slow, o.SlowShare, o.SlowBy = replica.Append, 100, 3*Lease
	case 2:
		o.Slow, o.SlowShare, o.SlowBy = replica.Answer, 300, 2*Lease
	case 3:
		o.Slow, o.SlowShare, o.SlowBy = replica.Ack, 100, 3*Lease
	}
	if max(o.Level, o.Members) > 2 && seed%3 == 0 {
		o.LevelTwo = 128
	}
	return o
}

// forget makes most clusters' memories short, and some of them without a
// journal that is read back, by turns that fit no shape of options.
func forget(o Options) Options {
	switch o.Seed % 5 {
	case 1:
		o.Keep = 1 << 10
	case 2:
		o.NoReads = true
	case 3:
		o.Keep, o.NoReads = 1<<10, true
	}
	return o
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func TestPlay_KeepsThePromisesForManySeeds(t *testing.T) {
	if seed := number(t, "CARTWHEEL_SEED", 0); seed > 0 {
		o := forget(options(seed))
		o.Trace = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
		for _, e := range Play(o).Errors {
			t.Error(e)
		}
		return
	}
	playSeeds(t, number(t, "CARTWHEEL_SEEDS", 120), func(seed uint64) Options { return forget(options(seed)) })
}

// TestPlay_KeepsThePromisesWhileChunksLag has slices with a time to coherence, whose
// members get chunks in time or late.
func TestPlay_KeepsThePromisesWhileChunksLag(t *testing.T) {
	playSeeds(t, number(t, "CARTWHEEL_SEEDS", 40), func(seed uint64) Options {
		o := forget(options(seed))
		o.Coherence = 2 * Lease
		return o
	})
}

// playSeeds plays so many clusters, and checks that they acknowledge enough.
func playSeeds(t *testing.T, count uint64, options func(seed uint64) Options) {
	t.Helper()
	acknowledged, epochs, broken := 0, 0, 0
	start := time.Now()
	for seed := uint64(1); seed <= count; seed++ {
		r := Play(options(seed))
		acknowledged += r.Acknowledged
		epochs += r.Epochs
		if len(r.Errors) > 0 {
			t.Errorf("seed %d: %s\nreplay: CARTWHEEL_SEED=%d go test -run TestPlay_KeepsThePromises ./replica/replicatest", seed, r.Errors[0], seed)
			if broken++; broken == 10 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d seeds, %d writes acknowledged, %d epochs, %v", count, acknowledged, epochs, time.Since(start))
	if acknowledged < int(count)*10 {
		t.Errorf("only %d writes acknowledged in %d seeds", acknowledged, count)
	}
}
