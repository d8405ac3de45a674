package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/store/disk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const wait = 10 * time.Second

func small() Options {
	return Options{SegmentBytes: 64 << 10, BatchBytes: 16 << 10, TotalBytes: 1 << 20}
}

// opened opens a journal, replays it and returns the payloads found.
func opened(t *testing.T, d disk.Disk, o Options) (*Journal, []string) {
	t.Helper()
	j, err := Open(d, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	var got []string
	err = j.Replay(0, func(_ Position, r Record) error {
		got = append(got, fmt.Sprintf("%d/%d/%s", r.Slice, r.Kind, bytes.Join(r.Pieces, nil)))
		return nil
	})
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	return j, got
}

// add appends one record and waits for its outcome.
func add(t *testing.T, j *Journal, payload string) (Position, error) {
	t.Helper()
	type outcome struct {
		at  Position
		err error
	}
	ch := make(chan outcome, 1)
	half := len(payload) / 2
	err := j.Append([]Record{{Slice: 7, Kind: 3, Pieces: [][]byte{[]byte(payload[:half]), []byte(payload[half:])}}},
		func(p Position, err error) { ch <- outcome{p, err} })
	if err != nil {
		return 0, err
	}
	select {
	case o := <-ch:
		return o.at, o.err
	case <-time.After(wait):
		t.Fatal("no outcome")
		return 0, nil
	}
}

func payload(i int) string {
	return fmt.Sprintf("record %d %s", i, bytes.Repeat([]byte{'x'}, i*37%5000))
}

func TestReplay_ReturnsRecordsInOrder(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	var want []string
	var at []Position
	for i := range 60 {
		p, err := add(t, j, payload(i))
		if err != nil {
			t.Fatal(err)
		}
		want, at = append(want, "7/3/"+payload(i)), append(at, p)
	}
	if !slices.IsSorted(at) {
		t.Errorf("positions do not grow: %v", at)
	}
	j.Close()
	j, got := opened(t, d, small())
	if !slices.Equal(got, want) {
		t.Fatalf("got %d records, want %d", len(got), len(want))
	}
	if _, err := add(t, j, "more"); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if _, got = opened(t, d, small()); len(got) != 61 || got[60] != "7/3/more" {
		t.Fatalf("after a second start got %d records", len(got))
	}
}

func TestReplay_PositionsAreThoseOfDone(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	var at []Position
	for i := range 30 {
		p, err := add(t, j, payload(i))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p)
	}
	j.Close()
	j, err := Open(d, small())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var got []Position
	if err := j.Replay(at[10], func(p Position, _ Record) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, at[10:]) {
		t.Fatalf("got %v, want %v", got, at[10:])
	}
}

func TestTrim_LetsSegmentsBeReused(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	var last Position
	for i := range 400 {
		p, err := add(t, j, payload(i))
		if err != nil {
			t.Fatal(err)
		}
		if last = p; i%20 == 19 {
			if err := j.Trim(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := j.Segments(); n > 5 {
		t.Errorf("got %d segments for a log that is trimmed all the time", n)
	}
	j.Close()
	_, got := opened(t, d, small())
	if len(got) == 0 || got[len(got)-1] != "7/3/"+payload(399) {
		t.Fatalf("the last record is not there; got %d records, last at %d", len(got), last)
	}
	if len(got) > 60 {
		t.Errorf("got %d records, most were trimmed", len(got))
	}
}

// started appends without waiting.
func started(t *testing.T, j *Journal, s string) chan error {
	t.Helper()
	done := make(chan error, 1)
	if err := j.Append([]Record{{Slice: 7, Kind: 3, Pieces: [][]byte{[]byte(s)}}}, func(_ Position, err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	return done
}

// await returns what became of an append.
func await(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the journal does not answer")
		return nil
	}
}

func TestAppend_WaitsUntilAFullLogIsTrimmed(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, Options{SegmentBytes: 64 << 10, TotalBytes: 128 << 10})
	const n = 8000
	var last Position
	for i := 0; j.Room(n) == nil; i++ {
		p, err := add(t, j, string(make([]byte, n)))
		if err != nil || i > 100 {
			t.Fatalf("append %d: %v, want no room in time", i, err)
		}
		last = p
	}
	if err := j.Room(n); !fault.Is(err, fault.Overloaded) {
		t.Fatalf("got %v, want Overloaded", err)
	}
	var waiting []chan error
	for range 7 { // appended all the same: what one segment holds, as trimming frees no more
		waiting = append(waiting, started(t, j, string(make([]byte, n))))
	}
	if err := j.Trim(last); err != nil {
		t.Fatal(err)
	}
	for i, done := range waiting {
		if err := await(t, done); err != nil {
			t.Fatalf("append %d after trimming: %v", i, err)
		}
	}
}

func TestRoom_IsBoundedByTheQueue(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, Options{SegmentBytes: 1 << 20, QueueBytes: 10000})
	block := make(chan struct{})
	err := j.Append([]Record{{Pieces: [][]byte{{1}}}}, func(Position, error) { <-block })
	if err != nil {
		t.Fatal(err)
	}
	defer close(block)
	for i := 0; j.Room(1000) == nil; i++ {
		if i > 20 {
			t.Fatal("there is always room")
		}
		if err = j.Append([]Record{{Pieces: [][]byte{make([]byte, 1000)}}}, func(Position, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Room(1000); !fault.Is(err, fault.Overloaded) {
		t.Fatalf("got %v, want Overloaded", err)
	}
}

func TestAppend_FailedWriteIsFinal(t *testing.T) {
	for _, kind := range []fault.Kind{fault.IO, fault.NoSpace} {
		t.Run(kind.String(), func(t *testing.T) {
			d := disk.NewMemory()
			var heard error
			o := small()
			o.Fatal = func(err error) { heard = err }
			j, _ := opened(t, d, o)
			if _, err := add(t, j, "good"); err != nil {
				t.Fatal(err)
			}
			d.Fail(disk.Rule{Site: disk.JournalAppend, Times: 1, Kind: kind})
			if _, err := add(t, j, "bad"); !fault.Is(err, fault.IO) {
				t.Fatalf("got %v, want IO", err)
			}
			if _, err := add(t, j, "after"); !fault.Is(err, fault.IO) {
				t.Fatalf("after a failed write got %v, want refusal", err)
			}
			if j.Close(); !errors.Is(heard, j.Err()) || heard == nil {
				t.Errorf("Fatal heard %v", heard)
			}
		})
	}
}

// TestAppend_FullDiskLeavesNoHole fills the disk where a new segment begins. The
// records wait for room, and none is left out.
func TestAppend_FullDiskLeavesNoHole(t *testing.T) {
	for _, site := range []disk.Site{disk.JournalAllocate, disk.JournalZero} {
		t.Run(string(site), func(t *testing.T) {
			d := disk.NewMemory()
			o := small()
			asked := make(chan struct{}, 100)
			o.Relieve = func() {
				select {
				case asked <- struct{}{}:
				default:
				}
			}
			j, _ := opened(t, d, o)
			d.Fail(disk.Rule{Site: site, Kind: fault.NoSpace})
			first, second := started(t, j, "first"), started(t, j, "second")
			<-asked
			select {
			case err := <-first:
				t.Fatalf("without room: %v", err)
			default:
			}
			if err := j.Room(1); !fault.Is(err, fault.NoSpace) {
				t.Errorf("got %v, want no space", err)
			}
			d.Heal()
			for _, done := range []chan error{first, second} {
				if err := await(t, done); err != nil {
					t.Fatalf("with room again: %v", err)
				}
			}
			j.Close()
			if _, got := opened(t, d, small()); !slices.Equal(got, []string{"7/3/first", "7/3/second"}) {
				t.Fatalf("got %q", got)
			}
		})
	}
}

func TestClose_DoesNotWaitForRoom(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	d.Fail(disk.Rule{Site: disk.JournalAllocate, Kind: fault.NoSpace})
	done := started(t, j, "first")
	j.Close()
	if err := await(t, done); !fault.Is(err, fault.Closed) {
		t.Errorf("got %v, want closed", err)
	}
}

// acknowledge appends until the disk stops and returns what was acknowledged.
func acknowledge(t *testing.T, j *Journal, from, n int) (acked []string) {
	for i := from; i < from+n; i++ {
		p, err := add(t, j, payload(i))
		if err != nil {
			return acked
		}
		acked = append(acked, "7/3/"+payload(i))
		if i%25 == 24 {
			if j.Trim(p) == nil {
				acked = acked[len(acked)-1:]
			}
		}
	}
	return acked
}

// TestJournal_SurvivesACrashAtEverySite stops the disk at each site, at several
// calls of it, with the interrupted write torn at several places, and looks for
// every acknowledged record afterwards.
func TestJournal_SurvivesACrashAtEverySite(t *testing.T) {
	sites := []disk.Site{disk.JournalDir, disk.JournalOpen, disk.JournalAllocate, disk.JournalZero, disk.JournalSync,
		disk.JournalSyncDir, disk.JournalHeader, disk.JournalAppend}
	for _, site := range sites {
		t.Run(string(site), func(t *testing.T) {
			stopped := 0
			for seed := range uint64(24) {
				if crashOnce(t, site, seed) {
					stopped++
				}
			}
			if stopped == 0 {
				t.Errorf("the disk was never stopped at %s", site)
			}
		})
	}
}

func crashOnce(t *testing.T, site disk.Site, seed uint64) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	d := disk.NewMemory()
	d.Fail(disk.Rule{Site: site, Skip: rng.IntN(1 + int(seed)*3), Kind: fault.IO, Keep: rng.IntN(20) * 512, Crash: true})
	var acked []string
	if j, err := Open(d, small()); err == nil {
		if j.Replay(0, func(Position, Record) error { return nil }) == nil {
			acked = acknowledge(t, j, 0, 120)
		}
		j.Close()
	}
	after := d.CrashClone(rng)
	j, got := opened(t, after, small())
	if !contains(got, acked) {
		t.Fatalf("seed %d at %s: %d records acknowledged, %d found", seed, site, len(acked), len(got))
	}
	// The journal must be good for more, and for another start.
	if _, err := add(t, j, "next"); err != nil {
		t.Fatalf("seed %d at %s: append after the crash: %v", seed, site, err)
	}
	j.Close()
	if _, again := opened(t, after, small()); !contains(again, append(acked, "7/3/next")) {
		t.Fatalf("seed %d at %s: lost after the second start", seed, site)
	}
	return d.Crashed()
}

// contains reports whether want is in got, in order.
func contains(got, want []string) bool {
	for _, w := range want {
		i := slices.Index(got, w)
		if i < 0 {
			return false
		}
		got = got[i+1:]
	}
	return true
}

func TestReplay_RefusesDamageInTheMiddle(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	var at []Position
	for i := range 30 {
		p, err := add(t, j, payload(i))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p)
	}
	j.Close()
	for _, k := range []int{0, 5, 28} {
		damaged := d.Clone()
		// A spare made ahead may have the file's number that comes next.
		seg := j.live[int64(at[k])/(64<<10)]
		damaged.Damage(seg.name(), (int64(at[k])%(64<<10)+12)*8+3)
		j, err := Open(damaged, small())
		if err != nil {
			t.Fatal(err)
		}
		err = j.Replay(0, func(Position, Record) error { return nil })
		j.Close()
		if !fault.Is(err, fault.Corrupt) {
			t.Errorf("record %d damaged: got %v, want Corrupt", k, err)
		}
	}
}

func TestOpen_RefusesANewerFormat(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, small())
	if _, err := add(t, j, "x"); err != nil {
		t.Fatal(err)
	}
	j.Close()
	f, err := d.Open(disk.JournalOpen, "journal/000001.log", 0)
	if err != nil {
		t.Fatal(err)
	}
	block := disk.Aligned(disk.Block)
	segmentHead{key: 1, bytes: 64 << 10}.encode(block)
	block[8] = version + 1
	resum(block)
	if err := f.WriteAt(disk.JournalHeader, block, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(d, small()); !fault.Is(err, fault.NewerVersion) {
		t.Fatalf("got %v, want NewerVersion", err)
	}
}

func TestAppend_KeepsRecordsOfManyGoroutines(t *testing.T) {
	d := disk.NewMemory()
	j, _ := opened(t, d, Options{SegmentBytes: 256 << 10})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := add(t, j, fmt.Sprintf("%d:%d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	j.Close()
	if _, got := opened(t, d, Options{SegmentBytes: 256 << 10}); len(got) != 400 {
		t.Fatalf("got %d records, want 400", len(got))
	}
}

func TestAppend_RefusedBeforeReplayAndAfterClose(t *testing.T) {
	j, err := Open(disk.NewMemory(), small())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]Record{{Slice: ids.RootSlice}}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("before replay: got %v, want Invalid", err)
	}
	if err := j.Replay(0, nil); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if err := j.Append(nil, nil); !fault.Is(err, fault.Closed) {
		t.Errorf("after close: got %v, want Closed", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
