package content_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/content/writelog"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// The model of the write journal is a file of records, each of which holds the
// number of the write that put it there. Numbers ascend over all lives of the
// client and over all clients. So the records that the cluster has had tell
// whether an older write came back over a newer one.
const (
	recordBytes = 3000
	places      = 12
)

func recordOf(tag uint64) []byte {
	out := make([]byte, recordBytes)
	for i := 0; i+8 <= len(out); i += 8 {
		binary.LittleEndian.PutUint64(out[i:], tag)
	}
	return out
}

func tagsOf(data []byte) []uint64 {
	out := make([]uint64, 0, places)
	for ; len(data) >= recordBytes; data = data[recordBytes:] {
		out = append(out, binary.LittleEndian.Uint64(data))
	}
	return out
}

// history is a cluster that remembers what each of its places has held.
type history struct {
	*contenttest.Cluster
	mu     sync.Mutex // guards below
	places [places][]uint64
	// doubted are appends of which nobody can find out whether they were run. They are
	// not made again, as they might be there twice; a program is told of it by its next
	// flush, which a crash may prevent.
	doubted map[uint64]bool
}

func (h *history) Commit(ctx context.Context, c content.Commit) (*pb.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	res, err := h.Cluster.Commit(ctx, c)
	if fault.Is(err, fault.TimedOut) && c.Splice.GetAppend() {
		for _, tag := range tagsOf(slices.Concat(c.Body...)) {
			h.doubted[tag] = true
		}
	}
	h.lookLocked()
	return res, err
}

// lookLocked notes what changed; mu is held.
func (h *history) lookLocked() {
	for i, tag := range tagsOf(h.Contents(object)) {
		if i >= places { // appended: these are looked at in the end
			return
		}
		had := h.places[i]
		if len(had) == 0 || had[len(had)-1] != tag {
			h.places[i] = append(had, tag)
		}
	}
}

// lives is the play: one client after the other on one journal.
type lives struct {
	*rapid.T
	t       *testing.T
	cluster *history
	rnd     *rand.Rand
	appends bool
	soft    bool
	dir     string

	tag     uint64          // of the last write of anybody
	own     map[uint64]int  // acknowledged writes and their places
	others  map[uint64]bool // other clients' writes
	excused map[uint64]bool // told to have failed, or perhaps refused before a crash
	parked  map[uint64]bool // in a conflict copy
	mu      sync.Mutex      // guards refuses
	refuses bool            // commits may have been refused in this life
}

// faulty fails some calls, and all once the process is dead.
func (v *lives) faulty(rate int) func(contenttest.Call) contenttest.Outcome {
	rnd := rand.New(rand.NewPCG(v.rnd.Uint64(), 9))
	return func(call contenttest.Call) contenttest.Outcome {
		v.mu.Lock()
		defer v.mu.Unlock()
		if rnd.IntN(100) >= rate {
			return contenttest.Outcome{}
		}
		lost := fault.E(fault.TimedOut, "test", "", "")
		switch k := rnd.IntN(10); {
		case k == 0 && call == contenttest.Commit:
			v.refuses = true
			return contenttest.Outcome{Before: fault.E(fault.NoSpace, "test", "", "")}
		case k < 5:
			v.refuses = v.refuses || v.soft
			return contenttest.Outcome{Before: lost}
		}
		v.refuses = v.refuses || v.soft
		return contenttest.Outcome{After: lost}
	}
}

// live is one process: it recovers, writes, and dies at any moment.
func (v *lives) live(rate, steps int) {
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	defer end()
	v.refuses = false
	v.cluster.SetFaults(v.faulty(rate))
	log, left, err := writelog.Open(v.dir, writelog.Options{SegmentBytes: 20000})
	if err != nil {
		v.Fatal(err)
	}
	engine := content.New(v.cluster, content.Options{
		Journal: log, Soft: v.soft, RetryAfter: 100 * time.Microsecond, FlushAfter: time.Hour, DirtyBytes: 40000,
	})
	var recovering sync.WaitGroup
	if v.recovered(ctx, engine, left, &recovering) {
		v.write(ctx, engine, steps)
	}
	v.die(engine, log)
	end()
	recovering.Wait()
}

// recovered reports whether what was left over is decided, so that the file may
// be opened.
func (v *lives) recovered(ctx context.Context, engine *content.Engine, left []content.Leftover, running *sync.WaitGroup) bool {
	for _, l := range left {
		decided, ended := make(chan struct{}), make(chan error, 1)
		running.Go(func() {
			ended <- engine.Recover(ctx, l, content.Recovery{Park: v.park, Decided: func() { close(decided) }})
		})
		select {
		case <-decided:
		case <-ended:
			if !isClosedTest(decided) {
				return false
			}
		}
	}
	return true
}

func isClosedTest(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// park takes a conflict copy down.
func (v *lives) park(ctx context.Context, p *content.Parked) error {
	got := make([]byte, p.Size())
	if _, err := p.ReadAt(ctx, got, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, tag := range tagsOf(got) {
		v.parked[tag] = true
	}
	return nil
}

// write plays a program.
func (v *lives) write(ctx context.Context, engine *content.Engine, steps int) {
	h := engine.Open(object, nil, content.Open{})
	defer h.Close()
	for range steps {
		var err error
		switch k := v.rnd.IntN(10); {
		case k < 2:
			err = h.Flush(ctx)
		case k == 2:
			for range v.rnd.IntN(300) { // what is on its way arrives
				runtime.Gosched()
			}
		default:
			v.tag++
			tag, at := v.tag, v.rnd.IntN(places)
			if v.appends {
				_, err = h.Append(ctx, recordOf(tag))
			} else {
				err = h.WriteAt(ctx, recordOf(tag), uint64(at*recordBytes))
			}
			if err == nil {
				v.own[tag] = at
			}
		}
		if err != nil {
			v.excuse()
		}
	}
}

// excuse notes that what was written so far may be lost: a program was told.
func (v *lives) excuse() {
	for tag := range v.own {
		v.excused[tag] = true
	}
}

// die ends the process as a crash does.
func (v *lives) die(engine *content.Engine, log *writelog.Log) {
	v.cluster.SetFaults(func(contenttest.Call) contenttest.Outcome {
		return contenttest.Outcome{Wait: make(chan struct{})} // until the engine ends
	})
	after := copied(v.t, v.dir)
	over, end := context.WithCancel(context.Background())
	end()
	_ = engine.Close(over) // no program hears of it
	_ = log.Close()        // the copy counts
	v.dir = after
	powerless := v.rnd.IntN(4) == 0
	if powerless {
		v.losePower()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refuses || powerless {
		v.excuse()
	}
}

// losePower takes away the ends of the last two files of the journal, which were
// not synced.
func (v *lives) losePower() {
	names, err := filepath.Glob(filepath.Join(v.dir, "*.wlog"))
	if err != nil {
		v.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names[max(0, len(names)-2):] {
		info, err := os.Stat(name)
		if err == nil && info.Size() > 16 && v.rnd.IntN(2) == 0 {
			err = os.Truncate(name, 16+v.rnd.Int64N(info.Size()-16))
		}
		if err != nil {
			v.Fatal(err)
		}
	}
}

// other writes as another client, between two lives.
func (v *lives) other() {
	v.tag++
	v.others[v.tag] = true
	v.cluster.mu.Lock()
	defer v.cluster.mu.Unlock()
	at := v.rnd.IntN(places) * recordBytes
	if v.appends {
		at = len(v.cluster.Contents(object))
	}
	v.cluster.Write(object, uint64(at), recordOf(v.tag))
	v.cluster.lookLocked()
}

// check compares what the cluster has had with the model.
func (v *lives) check() {
	now := tagsOf(v.cluster.Contents(object))
	if v.appends {
		v.checkAppends(now)
		return
	}
	newest := map[int]uint64{}
	for tag, at := range v.own {
		newest[at] = max(newest[at], tag)
	}
	for at, had := range v.cluster.places {
		for i := 1; i < len(had); i++ {
			if had[i] < had[i-1] {
				v.Fatalf("place %d: write %d came over write %d, which is newer; it has had %v", at, had[i], had[i-1], had)
			}
		}
		tag := newest[at]
		if tag > 0 && !v.excused[tag] && !v.parked[tag] && !slices.Contains(had, tag) {
			v.Fatalf("place %d: write %d is lost; it has had %v", at, tag, had)
		}
	}
}

// checkAppends looks that each append is there once, and in order.
func (v *lives) checkAppends(now []uint64) {
	seen := map[uint64]bool{}
	last := uint64(0)
	for _, tag := range now {
		if seen[tag] {
			v.Fatalf("append %d is there twice: %v", tag, now)
		}
		seen[tag] = true
		if v.others[tag] {
			continue
		}
		if tag < last {
			v.Fatalf("append %d comes behind a later one: %v", tag, now)
		}
		last = tag
	}
	for tag := range v.own {
		if !seen[tag] && !v.excused[tag] && !v.parked[tag] && !v.cluster.doubted[tag] {
			v.Fatalf("append %d is lost: %v", tag, now)
		}
	}
}

// TestRecover_EqualsTheModel plays several lives of a client on one
// journal: commits that time out with and without having been run, refusals,
// crashes of the process and of the machine at any moment, also of a recovery,
// recoveries that do not reach the nodes, and other clients' writes between two
// lives.
func TestRecover_EqualsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		v := &lives{
			T: rt, t: t, cluster: &history{Cluster: contenttest.New(), doubted: map[uint64]bool{}}, rnd: rand.New(rand.NewPCG(seed, 4)),
			appends: rapid.Bool().Draw(rt, "appends"), soft: rapid.Bool().Draw(rt, "soft"), dir: t.TempDir(),
			own: map[uint64]int{}, others: map[uint64]bool{}, excused: map[uint64]bool{}, parked: map[uint64]bool{},
		}
		for range rapid.IntRange(1, 6).Draw(rt, "lives") {
			v.live(rapid.SampledFrom([]int{0, 20, 60}).Draw(rt, "failing"), rapid.IntRange(0, 30).Draw(rt, "steps"))
			for range v.rnd.IntN(2) {
				v.other()
			}
		}
		v.cluster.SetFaults(nil)
		log, left, err := writelog.Open(v.dir, writelog.Options{SegmentBytes: 20000})
		must(t, err)
		engine := content.New(v.cluster, content.Options{Journal: log})
		ctx := within(rt)
		for _, l := range left {
			must(t, engine.Recover(ctx, l, content.Recovery{Park: v.park}))
		}
		must(t, engine.Close(ctx))
		must(t, log.Close())
		v.check()
		log, left, err = writelog.Open(v.dir, writelog.Options{})
		must(t, err)
		if len(left) > 0 {
			rt.Fatalf("all is recovered, yet %d objects are left over", len(left))
		}
		must(t, log.Close())
	})
}
