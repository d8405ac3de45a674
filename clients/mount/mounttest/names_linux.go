package mounttest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func nameCases() []testCase {
	return []testCase{
		{"rename replaces, and says no where it must", 1, renameRules},
		{"RENAME_NOREPLACE and RENAME_EXCHANGE", 1, renameFlags},
		{"directories move, and not below themselves", 1, moveDirectories},
		{"hard links share one file", 1, hardLinks},
		{"symbolic links are followed, kept and bounded", 1, symlinks},
		{"special files", 1, specialFiles},
		{"names to 255 bytes, of any bytes", 1, longNames},
		{"paths to 4096 bytes", 1, longPaths},
		{"getcwd and dot-dot below the mount", 1, workingDirectory},
		{"a name that was looked up in vain can be made", 1, negativeNames},
	}
}

func renameRules(e *env) {
	e.write(e.at("a"), "a")
	e.write(e.at("b"), "b")
	before := e.stat(e.at("a"))
	e.ok(os.Rename(e.at("a"), e.at("b")))
	e.read(e.at("b"), "a")
	equal(e, e.stat(e.at("b")).Ino, before.Ino)
	_, err := os.Stat(e.at("a"))
	e.want(err, syscall.ENOENT)
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.ok(os.Mkdir(e.at("empty"), 0o755))
	e.write(e.at("d", "x"), "x")
	e.want(unix.Rename(e.at("b"), e.at("d")), syscall.EISDIR)
	e.want(unix.Rename(e.at("d"), e.at("b")), syscall.ENOTDIR)
	e.want(unix.Rename(e.at("missing"), e.at("c")), syscall.ENOENT)
	if err := unix.Rename(e.at("empty"), e.at("d")); !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		e.Fatalf("a directory replaced one that is not empty: %v", err)
	}
	e.ok(unix.Rename(e.at("d"), e.at("empty")))
	e.read(e.at("empty", "x"), "x")
	// Two names of one file: nothing happens, both stay.
	e.ok(os.Link(e.at("b"), e.at("c")))
	e.ok(unix.Rename(e.at("b"), e.at("c")))
	equal(e, e.stat(e.at("b")).Nlink, 2)
}

func renameFlags(e *env) {
	e.write(e.at("a"), "a")
	e.write(e.at("b"), "b")
	rename := func(from, to string, flags uint) error {
		return unix.Renameat2(unix.AT_FDCWD, e.at(from), unix.AT_FDCWD, e.at(to), flags)
	}
	err := rename("a", "b", unix.RENAME_NOREPLACE)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) {
		e.Skip("the mount does not offer the flags of renameat2")
	}
	e.want(err, syscall.EEXIST)
	e.read(e.at("b"), "b")
	e.ok(rename("a", "c", unix.RENAME_NOREPLACE))
	e.ok(rename("b", "c", unix.RENAME_EXCHANGE))
	e.read(e.at("b"), "a")
	e.read(e.at("c"), "b")
	e.want(rename("b", "missing", unix.RENAME_EXCHANGE), syscall.ENOENT)
	// A file for a directory, over two directories: link counts follow.
	e.ok(os.MkdirAll(e.at("d", "sub"), 0o755))
	equal(e, e.stat(e.at("d")).Nlink, 3)
	e.ok(rename("b", "d/sub", unix.RENAME_EXCHANGE))
	e.read(e.at("d", "sub"), "a")
	equal(e, e.stat(e.at("d")).Nlink, 2)
	equal(e, e.stat(e.at("b")).Mode&unix.S_IFMT, unix.S_IFDIR)
	equal(e, e.stat(e.at("b", "..")).Ino, e.stat(e.dir).Ino)
}

func moveDirectories(e *env) {
	e.ok(os.MkdirAll(e.at("a", "b", "c"), 0o755))
	e.ok(os.Mkdir(e.at("z"), 0o755))
	e.want(unix.Rename(e.at("a"), e.at("a", "b", "x")), syscall.EINVAL)
	e.ok(os.Rename(e.at("a", "b"), e.at("z", "b")))
	equal(e, e.stat(e.at("z", "b", "..")).Ino, e.stat(e.at("z")).Ino)
	equal(e, e.stat(e.at("a")).Nlink, 2)
	equal(e, e.stat(e.at("z")).Nlink, 3)
	_, err := os.Stat(e.at("z", "b", "c"))
	e.ok(err)
}

func hardLinks(e *env) {
	e.write(e.at("a"), "shared")
	e.ok(os.Link(e.at("a"), e.at("b")))
	a, b := e.stat(e.at("a")), e.stat(e.at("b"))
	equal(e, a.Ino, b.Ino)
	equal(e, a.Nlink, 2)
	f := e.open(e.at("b"), os.O_WRONLY|os.O_APPEND, 0)
	_, err := f.WriteString(", really")
	e.ok(err)
	e.read(e.at("a"), "shared, really")
	e.ok(os.Remove(e.at("a")))
	equal(e, e.stat(e.at("b")).Nlink, 1)
	e.want(os.Link(e.at("b"), e.at("b")), syscall.EEXIST)
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.want(os.Link(e.at("d"), e.at("e")), syscall.EPERM)
	// A link to a symbolic link is one to the link itself.
	e.ok(os.Symlink("b", e.at("s")))
	e.ok(unix.Linkat(unix.AT_FDCWD, e.at("s"), unix.AT_FDCWD, e.at("t"), 0))
	equal(e, e.stat(e.at("t")).Mode&unix.S_IFMT, unix.S_IFLNK)
}

func symlinks(e *env) {
	e.write(e.at("f"), "target")
	e.ok(os.Symlink("f", e.at("s")))
	e.read(e.at("s"), "target")
	got, err := os.Readlink(e.at("s"))
	e.ok(err)
	equal(e, got, "f")
	equal(e, e.stat(e.at("s")).Size, 1)
	long := strings.Repeat("x/", 2047) + "y"
	e.ok(os.Symlink(long, e.at("long")))
	got, err = os.Readlink(e.at("long"))
	e.ok(err)
	equal(e, got, long)
	e.ok(os.Symlink("loop", e.at("loop")))
	_, err = os.ReadFile(e.at("loop"))
	e.want(err, syscall.ELOOP)
	_, err = unix.Readlink(e.at("f"), make([]byte, 8))
	e.want(err, syscall.EINVAL)
	e.want(os.Symlink("x", e.at("s")), syscall.EEXIST)
	e.ok(os.Remove(e.at("s")))
	e.read(e.at("f"), "target")
}

func specialFiles(e *env) {
	for _, each := range []struct {
		name string
		mode uint32
		dev  uint64
	}{
		{"fifo", unix.S_IFIFO | 0o600, 0},
		{"socket", unix.S_IFSOCK | 0o600, 0},
		{"char", unix.S_IFCHR | 0o600, unix.Mkdev(1, 3)},
		{"block", unix.S_IFBLK | 0o600, unix.Mkdev(259, 70_000)},
	} {
		err := unix.Mknod(e.at(each.name), each.mode, int(each.dev))
		if errors.Is(err, syscall.EPERM) && each.dev != 0 {
			continue // a container may not make devices
		}
		e.ok(err)
		st := e.stat(e.at(each.name))
		equal(e, st.Mode, each.mode)
		equal(e, st.Rdev, each.dev)
	}
	r := e.open(e.at("fifo"), os.O_RDWR, 0)
	_, err := r.WriteString("through the fifo")
	e.ok(err)
	got := make([]byte, 16)
	_, err = r.Read(got)
	e.ok(err)
	equal(e, string(got), "through the fifo")
}

func longNames(e *env) {
	for _, name := range []string{strings.Repeat("n", 255), strings.Repeat("ü", 127) + "x", "\xff\xfe\x01 name\nof bytes\\"} {
		e.write(e.at(name), name)
		e.read(e.at(name), name)
	}
	list, err := os.ReadDir(e.dir)
	e.ok(err)
	equal(e, len(list), 3)
	_, err = os.Create(e.at(strings.Repeat("n", 256)))
	e.want(err, syscall.ENAMETOOLONG)
	e.want(os.Mkdir(e.at(strings.Repeat("n", 256)), 0o755), syscall.ENAMETOOLONG)
	e.want(unix.Rename(e.at(strings.Repeat("n", 255)), e.at(strings.Repeat("m", 256))), syscall.ENAMETOOLONG)
	_, err = os.Lstat(e.at(strings.Repeat("n", 256)))
	e.want(err, syscall.ENAMETOOLONG)
}

func longPaths(e *env) {
	path := e.dir
	for len(path)+1+200 < 4095-10 {
		path += "/" + strings.Repeat("d", 200)
		e.ok(os.Mkdir(path, 0o755))
	}
	file := path + "/" + strings.Repeat("f", 4095-len(path)-1)
	equal(e, len(file), 4095)
	e.write(file, "deep")
	e.read(file, "deep")
	_, err := os.Stat(file + "f")
	e.want(err, syscall.ENAMETOOLONG)
}

func workingDirectory(e *env) {
	e.ok(os.MkdirAll(e.at("a", "b"), 0o755))
	before, err := os.Getwd()
	e.ok(err)
	e.ok(os.Chdir(e.at("a", "b")))
	defer func() { _ = os.Chdir(before) }() // the case is over
	buf := make([]byte, 4096)
	n, err := unix.Getcwd(buf)
	e.ok(err)
	equal(e, string(buf[:n-1]), e.at("a", "b"))
	e.ok(os.Rename(e.at("a"), e.at("moved")))
	n, err = unix.Getcwd(buf)
	e.ok(err)
	equal(e, string(buf[:n-1]), e.at("moved", "b"))
	e.write("../x", "relative")
	e.read(e.at("moved", "x"), "relative")
}

func negativeNames(e *env) {
	for i := range 20 {
		name := e.at(fmt.Sprint("n", i))
		_, err := os.Stat(name)
		e.want(err, syscall.ENOENT)
		switch i % 4 {
		case 0:
			e.write(name, "made")
		case 1:
			e.ok(os.Mkdir(name, 0o755))
		case 2:
			e.ok(os.Symlink("x", name))
		case 3:
			e.ok(os.Rename(e.at(fmt.Sprint("n", i-1)), name))
		}
		e.stat(name)
		e.ok(os.Remove(name))
		_, err = os.Lstat(name)
		e.want(err, syscall.ENOENT)
		e.write(name, "again")
	}
}
