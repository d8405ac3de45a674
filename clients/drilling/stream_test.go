package drilling

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// oneFile is a tree with one file, in memory.
type oneFile struct {
	Files
	content []byte

	mu    sync.Mutex // guards fails
	fails error      // what writes and reads answer
}

// fail has writes and reads fail; nil: no more.
func (f *oneFile) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

func (f *oneFile) outcome() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fails
}

func (f *oneFile) Walk(context.Context, mount.Caller, mount.Inode, string) (mount.Entry, error) {
	return mount.Entry{Node: 7}, nil
}
func (f *oneFile) Forget(mount.Inode, uint64) {}
func (f *oneFile) Open(context.Context, mount.Caller, mount.Inode, mount.OpenFlags) (mount.Opened, error) {
	return mount.Opened{}, f.outcome()
}
func (f *oneFile) Release(mount.Inode, mount.Handle, mount.LockOwner, bool) {}
func (f *oneFile) Fsync(context.Context, mount.Caller, mount.Inode, mount.Handle, bool) error {
	return f.outcome()
}
func (f *oneFile) Write(_ context.Context, _ mount.Caller, _ mount.Inode, _ mount.Handle, offset int64, data []byte, _ mount.WriteFlags) (int, error) {
	f.content = append(f.content[:offset], data...)
	return len(data), nil
}
func (f *oneFile) Read(_ context.Context, _ mount.Caller, _ mount.Inode, _ mount.Handle, offset int64, buf []byte) (int, error) {
	if offset >= int64(len(f.content)) {
		return 0, f.outcome()
	}
	return copy(buf, f.content[offset:]), f.outcome()
}

// newStream is a stream on one file, in a bubble of virtual time.
func newStream(f *oneFile) *stream {
	began := time.Now()
	return &stream{id: "x", site: "a", path: "/f", writer: f, reader: f, now: func() time.Duration { return time.Since(began) }}
}

// TestStream_MeasuresThePause has a file answer nothing for ten seconds.
func TestStream_MeasuresThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &oneFile{}
		s := newStream(f)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.write(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		s.mark(s.now())
		f.fail(fault.E(fault.Unreachable, "", "", ""))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if waits := s.waits(s.now()); waits < 10*time.Second {
			t.Errorf("it has waited for %v, want 10 s", waits)
		}
		f.fail(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		cancel()
		<-done
		r := s.result(s.now())
		if r.WritePauseMS < 10_000 || r.WritePauseMS > 10_200 || r.UsualMS < 50 || r.UsualMS > 100 || r.Acknowledged < 30 {
			t.Errorf("got %+v, want a pause of 10 s", r)
		}
		if lost, err := s.verify(t.Context(), f); err != nil || lost != 0 {
			t.Errorf("got %d lost, %v", lost, err)
		}
	})
}

// TestStream_WaitsForWritesAndReads looks at either wait.
func TestStream_WaitsForWritesAndReads(t *testing.T) {
	s := &stream{writes: gauge{last: 9 * time.Second}, reads: gauge{last: 4 * time.Second}}
	if got := s.waits(10 * time.Second); got != 6*time.Second {
		t.Errorf("reads wait the longest: got %v, want 6 s", got)
	}
	s.writes.last = time.Second
	if got := s.waits(10 * time.Second); got != 9*time.Second {
		t.Errorf("writes wait the longest: got %v, want 9 s", got)
	}
	if s.answeredSince(2*time.Second) || !s.answeredSince(time.Second/2) {
		t.Error("a stream goes on only once both were answered")
	}
}

// TestVerify_CountsWhatIsMissingOrWrong damages what was acknowledged.
func TestVerify_CountsWhatIsMissingOrWrong(t *testing.T) {
	for name, x := range map[string]struct {
		damage func(f *oneFile)
		want   int
	}{
		"nothing":         {func(*oneFile) {}, 0},
		"one byte":        {func(f *oneFile) { f.content[3*recordBytes+5] ^= 1 }, 1},
		"the end":         {func(f *oneFile) { f.content = f.content[:7*recordBytes+1] }, 3},
		"all":             {func(f *oneFile) { f.content = nil }, 10},
		"another record":  {func(f *oneFile) { copy(f.content[recordBytes:], f.content[:recordBytes]) }, 1},
		"another's drill": {func(f *oneFile) { copy(f.content, record("y", 0, 0)) }, 1},
	} {
		f := &oneFile{}
		s := newStream(f)
		for n := range 10 {
			f.content = append(f.content, record(s.id, s.number, n)...)
		}
		s.acked = 10
		x.damage(f)
		if lost, err := s.verify(t.Context(), f); err != nil || lost != x.want {
			t.Errorf("%s: got %d lost, %v, want %d", name, lost, err, x.want)
		}
	}
}

// TestStream_KeepsWhatIsNoPause meets errors and wrong data.
func TestStream_KeepsWhatIsNoPause(t *testing.T) {
	for name, x := range map[string]struct {
		fails error
		spoil bool
		want  bool
	}{
		"all is well": {}, "a pause": {fails: fault.E(fault.TimedOut, "", "", "")}, "an error": {fails: fault.E(fault.IO, "", "", ""), want: true},
		"an unknown error": {fails: errors.New("odd"), want: true}, "wrong data": {spoil: true, want: true},
	} {
		f := &oneFile{fails: x.fails, content: record("x", 0, 0)}
		s := newStream(f)
		if x.spoil {
			f.content[0] ^= 1
		}
		s.settle(t.Context(), s.readOne(t.Context(), 0), "a read")
		if err := s.failed(); (err != nil) != x.want {
			t.Errorf("%s: got %v, want that it is kept: %v", name, err, x.want)
		}
	}
}
