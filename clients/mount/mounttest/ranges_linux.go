package mounttest

import (
	"bytes"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func rangeCases() []testCase {
	return []testCase{
		{"truncate shrinks, and grows with zeros", 1, truncateBoth},
		{"holes are found by SEEK_HOLE and SEEK_DATA", 1, seekHoles},
		{"fallocate reserves and extends", 1, allocate},
		{"fallocate punches holes and zeroes", 1, punchAndZero},
		{"offsets beyond 4 GiB", 1, farOffsets},
	}
}

func truncateBoth(e *env) {
	e.write(e.at("f"), "0123456789")
	e.ok(os.Truncate(e.at("f"), 4))
	e.read(e.at("f"), "0123")
	e.ok(os.Truncate(e.at("f"), 8))
	e.read(e.at("f"), "0123\x00\x00\x00\x00")
	// What was cut off does not come back, not even within a page.
	e.write(e.at("g"), string(bytes.Repeat([]byte("x"), 9000)))
	e.ok(os.Truncate(e.at("g"), 4100))
	e.ok(os.Truncate(e.at("g"), 9000))
	e.read(e.at("g"), string(bytes.Repeat([]byte("x"), 4100))+string(make([]byte, 4900)))
	e.want(os.Truncate(e.dir, 0), syscall.EISDIR)
	r := e.open(e.at("f"), os.O_RDONLY, 0)
	e.want(r.Truncate(0), syscall.EINVAL)
	e.want(unix.Ftruncate(int(e.open(e.at("f"), os.O_RDWR, 0).Fd()), -1), syscall.EINVAL)
}

func seekHoles(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	data := bytes.Repeat([]byte("d"), 1<<20)
	_, err := f.WriteAt(data, 4<<20)
	e.ok(err)
	e.ok(f.Truncate(8 << 20))
	e.ok(f.Sync())
	for _, each := range []struct {
		offset int64
		whence int
		want   int64
	}{
		{0, unix.SEEK_DATA, 4 << 20},
		{0, unix.SEEK_HOLE, 0},
		{4 << 20, unix.SEEK_HOLE, 5 << 20},
		{4<<20 + 5, unix.SEEK_DATA, 4<<20 + 5},
		{6 << 20, unix.SEEK_HOLE, 6 << 20},
	} {
		got, err := f.Seek(each.offset, each.whence)
		e.ok(err)
		if got != each.want {
			e.Fatalf("seek from %d by %d: got %d, want %d", each.offset, each.whence, got, each.want)
		}
	}
	_, err = f.Seek(6<<20, unix.SEEK_DATA)
	e.want(err, syscall.ENXIO)
	_, err = f.Seek(9<<20, unix.SEEK_HOLE)
	e.want(err, syscall.ENXIO)
	if blocks := e.fstat(f).Blocks * 512; blocks < 1<<20 || blocks > 2<<20 {
		e.Fatalf("a file of 1 MiB of data and 7 MiB of holes takes %d bytes", blocks)
	}
}

func allocate(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	_, err := f.WriteString("content")
	e.ok(err)
	e.allocate(f, unix.FALLOC_FL_KEEP_SIZE, 0, 100_000)
	equal(e, e.fstat(f).Size, 7)
	e.allocate(f, 0, 0, 50_000)
	equal(e, e.fstat(f).Size, 50_000)
	e.read(e.at("f"), "content"+string(make([]byte, 50_000-7)))
	e.allocate(f, 0, 10, 10)
	equal(e, e.fstat(f).Size, 50_000)
	e.want(unix.Fallocate(int(f.Fd()), 0, 0, 0), syscall.EINVAL)
}

// allocate skips the case where the mount has no fallocate at all.
func (e *env) allocate(f *os.File, mode uint32, offset, length int64) {
	e.Helper()
	err := unix.Fallocate(int(f.Fd()), mode, offset, length)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		e.Skip("the mount does not offer fallocate")
	}
	e.ok(err)
}

func punchAndZero(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	want := bytes.Repeat([]byte("z"), 300_000)
	_, err := f.WriteAt(want, 0)
	e.ok(err)
	e.allocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 5000, 100_000)
	clear(want[5000:105_000])
	e.allocate(f, unix.FALLOC_FL_ZERO_RANGE, 200_001, 10)
	clear(want[200_001:200_011])
	e.allocate(f, unix.FALLOC_FL_ZERO_RANGE, 299_000, 2000)
	want = append(want[:299_000], make([]byte, 2000)...)
	got := make([]byte, len(want))
	_, err = f.ReadAt(got, 0)
	e.ok(err)
	e.same(got, want)
	e.read(e.at("f"), string(want))
	e.allocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 290_000, 1<<20)
	equal(e, e.fstat(f).Size, int64(len(want)))
	clear(want[290_000:])
	e.read(e.at("f"), string(want))
}

func farOffsets(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	const far = 5<<30 + 12_345
	_, err := f.WriteAt([]byte("far away"), far)
	e.ok(err)
	equal(e, e.fstat(f).Size, far+8)
	got := make([]byte, 12)
	_, err = f.ReadAt(got, far-4)
	e.ok(err)
	equal(e, string(got), "\x00\x00\x00\x00far away")
	equal(e, e.stat(e.at("f")).Size, far+8)
	if blocks := e.fstat(f).Blocks * 512; blocks > 1<<20 {
		e.Fatalf("a file of 8 bytes takes %d", blocks)
	}
}
