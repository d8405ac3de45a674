package mounttest

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func attributeCases() []testCase {
	return []testCase{
		{"timestamps with nanoseconds", 1, timestamps},
		{"what changes mtime and ctime", 1, changeTimes},
		{"the time of birth", 1, birthTime},
		{"statfs is honest", 1, statfs},
		{"extended attributes", 1, extendedAttributes},
		{"large extended attributes", 1, largeAttributes},
		{"sizes and blocks", 1, sizesAndBlocks},
	}
}

func timestamps(e *env) {
	e.write(e.at("f"), "x")
	for _, each := range []struct{ atime, mtime unix.Timespec }{
		{unix.Timespec{Sec: 1_000_000_000, Nsec: 123_456_789}, unix.Timespec{Sec: 1_700_000_000, Nsec: 999_999_999}},
		{unix.Timespec{Sec: -5, Nsec: 250_000_000}, unix.Timespec{Sec: 0, Nsec: 1}},
		{unix.Timespec{Sec: 7_000_000_000}, unix.Timespec{Sec: 4_294_967_296, Nsec: 7}},
	} {
		e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, e.at("f"), []unix.Timespec{each.atime, each.mtime}, 0))
		st := e.stat(e.at("f"))
		equal(e, st.Atim, each.atime)
		equal(e, st.Mtim, each.mtime)
	}
	before := e.stat(e.at("f"))
	omit, now := unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}
	e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, e.at("f"), []unix.Timespec{omit, now}, 0))
	st := e.stat(e.at("f"))
	equal(e, st.Atim, before.Atim)
	if age := time.Since(time.Unix(st.Mtim.Unix())); age < -time.Second || age > 10*time.Second {
		e.Fatalf("UTIME_NOW is %v ago", age)
	}
	e.ok(os.Symlink("f", e.at("s")))
	want := unix.Timespec{Sec: 12, Nsec: 34}
	e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, e.at("s"), []unix.Timespec{want, want}, unix.AT_SYMLINK_NOFOLLOW))
	equal(e, e.stat(e.at("s")).Mtim, want)
	equal(e, e.stat(e.at("f")).Mtim, st.Mtim)
}

// changeTimes sets the times back before each change and looks what moved.
func changeTimes(e *env) {
	e.ok(os.Mkdir(e.at("d"), 0o755))
	path := e.at("d", "f")
	e.write(path, "content")
	past := unix.Timespec{Sec: 1_000_000}
	for _, each := range []struct {
		what      string
		change    func() error
		file, dir bool // whether mtime moves
	}{
		{"write", func() error { return os.WriteFile(path, []byte("other"), 0) }, true, false},
		{"truncate", func() error { return os.Truncate(path, 2) }, true, false},
		{"chmod", func() error { return os.Chmod(path, 0o600) }, false, false},
		{"link", func() error { return os.Link(path, e.at("d", "g")) }, false, true},
		{"unlink", func() error { return os.Remove(e.at("d", "g")) }, false, true},
		{"mkdir", func() error { return os.Mkdir(e.at("d", "h"), 0o755) }, false, true},
		{"rename", func() error { return os.Rename(e.at("d", "h"), e.at("d", "i")) }, false, true},
	} {
		for _, p := range []string{path, e.at("d")} {
			e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{past, past}, 0))
		}
		file, dir := e.stat(path), e.stat(e.at("d"))
		e.ok(each.change())
		file2, dir2 := e.stat(path), e.stat(e.at("d"))
		if (file2.Mtim != past) != each.file || (dir2.Mtim != past) != each.dir {
			e.Fatalf("%s: mtime of the file moved: %v, want %v; of the directory: %v, want %v", each.what,
				file2.Mtim != past, each.file, dir2.Mtim != past, each.dir)
		}
		if (each.file || each.what == "chmod" || each.what == "link") && file2.Ctim == file.Ctim {
			e.Fatalf("%s: ctime of the file stayed", each.what)
		}
		if each.dir && dir2.Ctim == dir.Ctim {
			e.Fatalf("%s: ctime of the directory stayed", each.what)
		}
	}
}

func birthTime(e *env) {
	e.write(e.at("f"), "x")
	past := unix.Timespec{Sec: 1000}
	e.ok(unix.UtimesNanoAt(unix.AT_FDCWD, e.at("f"), []unix.Timespec{past, past}, 0))
	var st unix.Statx_t
	e.ok(unix.Statx(unix.AT_FDCWD, e.at("f"), 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st))
	if st.Mask&unix.STATX_BTIME == 0 {
		e.Skip("the mount does not tell the time of birth")
	}
	if age := time.Since(time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))); age < -time.Second || age > time.Minute {
		e.Fatalf("born %v ago", age)
	}
	equal(e, st.Mtime.Sec, 1000)
}

func statfs(e *env) {
	var before, after unix.Statfs_t
	e.ok(unix.Statfs(e.dir, &before))
	equal(e, before.Namelen, 255)
	if before.Blocks == 0 || before.Bfree > before.Blocks || before.Bavail > before.Bfree || before.Bsize == 0 {
		e.Fatalf("statfs says %d blocks of %d, %d free, %d available", before.Blocks, before.Bsize, before.Bfree, before.Bavail)
	}
	if before.Files == 0 || before.Ffree == 0 {
		e.Fatalf("statfs says %d files, %d free", before.Files, before.Ffree)
	}
	e.ok(unix.Statfs(e.at("."), &after))
	equal(e, after.Type, before.Type)
}

func extendedAttributes(e *env) {
	path := e.at("f")
	e.write(path, "x")
	_, err := unix.Getxattr(path, "user.color", nil)
	e.want(err, syscall.ENODATA)
	e.ok(unix.Setxattr(path, "user.color", []byte("blue"), unix.XATTR_CREATE))
	e.want(unix.Setxattr(path, "user.color", []byte("red"), unix.XATTR_CREATE), syscall.EEXIST)
	e.want(unix.Setxattr(path, "user.shape", []byte("round"), unix.XATTR_REPLACE), syscall.ENODATA)
	e.ok(unix.Setxattr(path, "user.color", []byte("green\x00ish"), unix.XATTR_REPLACE))
	e.ok(unix.Setxattr(path, "user.empty", nil, 0))
	buf := make([]byte, 100)
	n, err := unix.Getxattr(path, "user.color", buf)
	e.ok(err)
	equal(e, string(buf[:n]), "green\x00ish")
	n, err = unix.Getxattr(path, "user.empty", buf)
	e.ok(err)
	equal(e, n, 0)
	_, err = unix.Getxattr(path, "user.color", make([]byte, 3))
	e.want(err, syscall.ERANGE)
	size, err := unix.Listxattr(path, nil)
	e.ok(err)
	n, err = unix.Listxattr(path, buf)
	e.ok(err)
	equal(e, n, size)
	list := "\x00" + string(buf[:n])
	for _, name := range []string{"user.color", "user.empty"} {
		if !strings.Contains(list, "\x00"+name+"\x00") {
			e.Fatalf("%s is not in the list %q", name, list)
		}
	}
	_, err = unix.Listxattr(path, make([]byte, 2))
	e.want(err, syscall.ERANGE)
	e.ok(unix.Removexattr(path, "user.color"))
	e.want(unix.Removexattr(path, "user.color"), syscall.ENODATA)
	// Directories have them too, and trusted ones are root's.
	e.ok(unix.Setxattr(e.dir, "user.dir", []byte("yes"), 0))
	e.ok(unix.Setxattr(path, "trusted.secret", []byte("root"), 0))
	e.ok(os.Chmod(path, 0o666))
	err = e.as(alice, alice, nil, func() error { return unix.Setxattr(path, "trusted.secret", []byte("x"), 0) })
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		e.Fatalf("another user sets a trusted attribute: %v", err)
	}
}

func largeAttributes(e *env) {
	path := e.at("f")
	e.write(path, "x")
	value := []byte(strings.Repeat("0123456789abcdef", 4096))
	e.ok(unix.Setxattr(path, "user.large", value, 0))
	buf := make([]byte, len(value))
	n, err := unix.Getxattr(path, "user.large", buf)
	e.ok(err)
	e.same(buf[:n], value)
	name := "user." + strings.Repeat("n", 250)
	e.ok(unix.Setxattr(path, name, []byte("long name"), 0))
	n, err = unix.Getxattr(path, name, buf)
	e.ok(err)
	equal(e, string(buf[:n]), "long name")
}

func sizesAndBlocks(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	for size := range 40 {
		_, err := f.WriteAt([]byte{1}, int64(size*1000))
		e.ok(err)
		equal(e, e.stat(e.at("f")).Size, int64(size*1000+1))
	}
	e.ok(f.Sync())
	if e.fstat(f).Blocks == 0 {
		e.Fatal("a file with content takes no blocks")
	}
}
