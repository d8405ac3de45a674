//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// again calls fn until no signal interrupts it.
func again(fn func() (int, error)) (int, error) {
	for {
		if n, err := fn(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// openFile opens a file on a mount of this process: nothing here may go through
// the runtime's poller.
func openFile(path string, flags int) (int, error) {
	return again(func() (int, error) { return unix.Open(path, flags|unix.O_CLOEXEC, 0) })
}

// readAll reads what a descriptor shows, from the beginning.
func readAll(fd int) ([]byte, error) {
	out := make([]byte, 128<<10)
	for n := 0; ; {
		m, err := again(func() (int, error) { return unix.Pread(fd, out[n:], int64(n)) })
		if err != nil || m == 0 {
			return out[:n], err
		}
		n += m
	}
}

// writeAt writes through a mount of this process.
func writeAt(path string, flags int, data []byte, at int64) error {
	fd, err := openFile(path, unix.O_RDWR|flags)
	if err != nil {
		return err
	}
	_, err = again(func() (int, error) { return unix.Pwrite(fd, data, at) })
	return errors.Join(err, unix.Close(fd))
}

// fillStory is what a test of concurrent opens works with.
type fillStory struct {
	r     *rand.Rand
	t     *testing.T
	other *cartwheel.Client // elsewhere
	point string
}

func (s *fillStory) bytes(most int) []byte {
	out := make([]byte, 1+s.r.IntN(most))
	for i := range out {
		out[i] = byte('a' + s.r.IntN(26))
	}
	return out
}

// change is one way to change a file while others open it, and what becomes of
// its content. Who has the file open sees at once what is done through the same
// mount; what is done elsewhere, whoever opens it after that.
type change struct {
	what string
	here bool
	do   func(s *fillStory, path string, was []byte) (now []byte, err error)
}

func changes() []change {
	return []change{
		{"written elsewhere", false, func(s *fillStory, path string, _ []byte) ([]byte, error) {
			now := s.bytes(40 << 10)
			put(s.t, s.other, mount.Root, filepath.Base(path), string(now), mount.OpenTruncate)
			return now, nil
		}},
		{"truncated", true, func(s *fillStory, path string, was []byte) ([]byte, error) {
			now := was[:s.r.IntN(len(was))]
			return now, unix.Truncate(path, int64(len(now)))
		}},
		{"grown", true, func(s *fillStory, path string, was []byte) ([]byte, error) {
			now := append(bytes.Clone(was), make([]byte, s.r.IntN(10<<10))...)
			return now, unix.Truncate(path, int64(len(now)))
		}},
		{"overwritten", true, func(s *fillStory, path string, was []byte) ([]byte, error) {
			now := bytes.Clone(was)
			at := s.r.IntN(len(now))
			n := copy(now[at:], s.bytes(8<<10))
			return now, writeAt(path, 0, now[at:at+n], int64(at))
		}},
		{"rewritten", true, func(s *fillStory, path string, _ []byte) ([]byte, error) {
			now := s.bytes(40 << 10)
			return now, writeAt(path, unix.O_TRUNC, now, 0)
		}},
	}
}

// round has a file that the kernel does not have yet changed in one way while
// others open and read it. When all are done, the mount shows it as it was left,
// to them too.
func (s *fillStory) round(name string, how change) error {
	path, was := filepath.Join(s.point, name), s.bytes(40<<10)
	put(s.t, s.other, mount.Root, name, string(was), 0)
	if s.r.IntN(2) == 0 { // the kernel knows of it
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	var fds [3]int
	var failed [3]error
	for i := range fds {
		all.Go(func() {
			fds[i], failed[i] = openFile(path, unix.O_RDONLY)
			if failed[i] == nil {
				_, _ = readAll(fds[i]) // what it shows is looked at in the end
			}
		})
	}
	for range s.r.IntN(200) {
		runtime.Gosched()
	}
	now, err := how.do(s, path, was)
	all.Wait()
	for i, fd := range fds {
		switch {
		case errors.Is(failed[i], unix.ESTALE): // it was being changed elsewhere
		case failed[i] != nil:
			err = errors.Join(err, failed[i])
		case how.here:
			err = errors.Join(err, shows(fd, now), unix.Close(fd))
		default:
			err = errors.Join(err, unix.Close(fd))
		}
	}
	fd, opening := openFile(path, unix.O_RDONLY)
	if opening != nil {
		return errors.Join(err, opening)
	}
	return errors.Join(err, shows(fd, now), unix.Close(fd))
}

// shows returns an error where a descriptor shows something else.
func shows(fd int, want []byte) error {
	got, err := readAll(fd)
	if err != nil || bytes.Equal(got, want) {
		return err
	}
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}
	return fmt.Errorf("%d bytes where %d are; the first %d are right", len(got), len(want), same)
}

// between is a file system that does something at each fill, before its client
// is asked whether the bytes are still right, and between that and the moment in
// which the kernel gets them.
type between struct {
	mount.FileSystem
	before, after func()
	n             atomic.Int64
}

// hookedNotifier is what it hands on for the mount's own.
type hookedNotifier struct {
	mount.Notifier
	b *between
}

func (b *between) Init(n mount.Notifier) { b.FileSystem.Init(hookedNotifier{n, b}) }

func (n hookedNotifier) Fill(node mount.Inode, data []byte, still func() bool) bool {
	n.b.n.Add(1)
	if n.b.before != nil {
		n.b.before()
	}
	return n.Notifier.(mount.Filler).Fill(node, data, func() bool {
		is := still()
		if n.b.after != nil {
			n.b.after()
		}
		return is
	})
}

// TestFill_LeavesTheKernelNothingOld writes elsewhere at a fill. A program that
// opened the file then sees the new bytes, once they are written.
func TestFill_LeavesTheKernelNothingOld(t *testing.T) {
	mounttest.NeedFUSE(t)
	for _, when := range []string{"before it was seen to be right", "after it was seen to be right"} {
		t.Run(when, func(t *testing.T) {
			c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
			other := clientOf(t, c, "a")
			fs := &between{FileSystem: clientOf(t, c, "a").FileSystem()}
			old, now := bytes.Repeat([]byte{'o'}, 10_000), bytes.Repeat([]byte{'n'}, 10_000)
			put(t, other, mount.Root, "f", string(old), 0)
			write := func() { put(t, other, mount.Root, "f", string(now), mount.OpenTruncate) }
			if when[0] == 'b' {
				fs.before = write
			} else {
				fs.after = write
			}
			fd, err := openFile(filepath.Join(mountedAs(t, fs), "f"), unix.O_RDONLY)
			if err != nil {
				t.Fatal(err)
			}
			if fs.n.Load() != 1 {
				t.Errorf("%d fills, want 1", fs.n.Load())
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			// A notice that the kernel could not be told in time comes late, but comes.
			servertest.Await(ctx, t, "the new bytes", func() error { return shows(fd, now) })
			if err := unix.Close(fd); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFill_LeavesNoStaleByte changes files at the moment in which the kernel is
// given their content. FILL_SEED chooses another run.
func TestFill_LeavesNoStaleByte(t *testing.T) {
	mounttest.NeedFUSE(t)
	seed := uint64(1)
	if text := os.Getenv("FILL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for i, how := range changes() {
		t.Run(how.what, func(t *testing.T) {
			c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
			fs := &between{FileSystem: clientOf(t, c, "a").FileSystem()}
			var mu sync.Mutex
			late := rand.New(rand.NewPCG(seed, uint64(i)))
			fs.after = func() {
				mu.Lock()
				wait := time.Duration(late.IntN(int(3 * time.Millisecond)))
				mu.Unlock()
				<-time.After(wait)
			}
			s := &fillStory{r: rand.New(rand.NewPCG(seed, uint64(i))), t: t, other: clientOf(t, c, "a"), point: mountedAs(t, fs)}
			for n := range 60 {
				if err := s.round(fmt.Sprint("f", n), how); err != nil {
					t.Errorf("seed %d, round %d: %v", seed, n, err)
				}
			}
			if fs.n.Load() == 0 {
				t.Error("nothing was filled")
			}
		})
	}
}
