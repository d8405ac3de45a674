package mounttest

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func directoryCases() []testCase {
	return []testCase{
		{"mkdir and rmdir count links", 1, makeDirectories},
		{"a removed directory that is open", 1, removedDirectory},
		{"a directory that is gone still has attributes", 1, goneDirectory},
		{"listings have types and inode numbers", 1, listTypes},
		{"a large directory lists each name once", 1, largeDirectory},
		{"a listing goes on while names change", 1, listWhileChanging},
		{"many makers in one directory", 1, createAtOnce},
		{"a tree is made and removed whole", 1, wholeTree},
	}
}

func makeDirectories(e *env) {
	e.ok(os.Mkdir(e.at("d"), 0o755))
	equal(e, e.stat(e.at("d")).Nlink, 2)
	e.ok(os.Mkdir(e.at("d", "s"), 0o755))
	equal(e, e.stat(e.at("d")).Nlink, 3)
	e.want(os.Mkdir(e.at("d"), 0o755), syscall.EEXIST)
	e.want(unix.Rmdir(e.at("d")), syscall.ENOTEMPTY)
	e.want(unix.Unlink(e.at("d")), syscall.EISDIR)
	e.ok(unix.Rmdir(e.at("d", "s")))
	equal(e, e.stat(e.at("d")).Nlink, 2)
	e.ok(unix.Rmdir(e.at("d")))
	e.want(unix.Rmdir(e.at("d")), syscall.ENOENT)
	e.write(e.at("f"), "x")
	e.want(unix.Rmdir(e.at("f")), syscall.ENOTDIR)
	e.want(unix.Rmdir(e.at(".")+"/."), syscall.EINVAL)
}

func removedDirectory(e *env) {
	e.ok(os.Mkdir(e.at("d"), 0o755))
	d := e.open(e.at("d"), os.O_RDONLY, 0)
	e.ok(os.Remove(e.at("d")))
	_, err := unix.Openat(int(d.Fd()), "f", unix.O_CREAT|unix.O_RDWR, 0o644)
	e.want(err, syscall.ENOENT)
	e.want(unix.Mkdirat(int(d.Fd()), "s", 0o755), syscall.ENOENT)
	// Linux answers ENOENT for a directory that is gone.
	names, err := d.Readdirnames(-1)
	if len(names) > 0 || err != nil && !errors.Is(err, syscall.ENOENT) {
		e.Fatalf("listed %q, %v", names, err)
	}
}

// goneDirectory removes, or replaces by rename, a directory that is open.
func goneDirectory(e *env) {
	for _, replace := range []bool{false, true} {
		e.ok(os.Mkdir(e.at("d"), 0o750))
		d := e.open(e.at("d"), os.O_RDONLY, 0)
		before := e.fstat(d)
		if replace {
			e.ok(os.Mkdir(e.at("other"), 0o755))
			e.ok(unix.Rename(e.at("other"), e.at("d")))
		} else {
			e.ok(unix.Rmdir(e.at("d")))
		}
		after := e.fstat(d)
		equal(e, after.Ino, before.Ino)
		equal(e, after.Mode, before.Mode)
		equal(e, after.Nlink, 0)
		if replace {
			equal(e, e.stat(e.at("d")).Mode&0o7777, 0o755)
		}
	}
}

func listTypes(e *env) {
	e.write(e.at("file"), "x")
	e.ok(os.Mkdir(e.at("dir"), 0o755))
	e.ok(os.Symlink("file", e.at("link")))
	e.ok(unix.Mkfifo(e.at("fifo"), 0o644))
	want := map[string]os.FileMode{"file": 0, "dir": os.ModeDir, "link": os.ModeSymlink, "fifo": os.ModeNamedPipe}
	for range 2 { // the second time from the kernel's names
		list, err := os.ReadDir(e.dir)
		e.ok(err)
		equal(e, len(list), len(want))
		for _, each := range list {
			equal(e, each.Type(), want[each.Name()])
			info, err := each.Info()
			e.ok(err)
			equal(e, info.Mode().Type(), each.Type())
		}
	}
	// Raw: "." and ".." are there, and inode numbers are those of stat.
	d := e.open(e.dir, os.O_RDONLY, 0)
	buf := make([]byte, 8192)
	seen := map[string]uint64{}
	for {
		n, err := unix.Getdents(int(d.Fd()), buf)
		e.ok(err)
		if n == 0 {
			break
		}
		parseDirents(buf[:n], seen)
	}
	for _, name := range []string{".", "..", "file", "dir", "link", "fifo"} {
		ino, there := seen[name]
		if !there {
			e.Fatalf("%q is not listed", name)
		}
		if name != ".." {
			equal(e, ino, e.stat(e.at()+"/"+name).Ino)
		}
	}
}

func bigSize() int {
	if os.Getenv(wholeSize) == "1" {
		return 100_000
	}
	return 5_000 / scale
}

func largeDirectory(e *env) {
	size := bigSize()
	const makers = 8
	e.all(makers, func(i int) error {
		for n := i; n < size; n += makers {
			f, err := os.Create(e.at(fmt.Sprintf("file %06d", n)))
			if err != nil {
				return err
			}
			f.Close()
		}
		return nil
	})
	d := e.open(e.dir, os.O_RDONLY, 0)
	for range 2 {
		_, err := d.Seek(0, 0)
		e.ok(err)
		seen := map[string]bool{}
		names, err := d.Readdirnames(-1)
		e.ok(err)
		for _, name := range names {
			if seen[name] {
				e.Fatalf("%q is listed twice", name)
			}
			seen[name] = true
		}
		equal(e, len(seen), size)
	}
	for _, n := range []int{0, size / 2, size - 1} {
		e.stat(e.at(fmt.Sprintf("file %06d", n)))
	}
	e.all(makers, func(i int) error {
		for n := i; n < size; n += makers {
			if err := os.Remove(e.at(fmt.Sprintf("file %06d", n))); err != nil {
				return err
			}
		}
		return nil
	})
	list, err := os.ReadDir(e.dir)
	e.ok(err)
	equal(e, len(list), 0)
}

// listWhileChanging removes half of the names during a listing, and adds
// others: those that stay come exactly once.
func listWhileChanging(e *env) {
	const size, batch = 1000 / scale, 10
	for n := range size {
		e.write(e.at(fmt.Sprintf("old %04d", n)), "")
	}
	d := e.open(e.dir, os.O_RDONLY, 0)
	seen := map[string]int{}
	for step := 0; ; step++ {
		names, err := d.Readdirnames(batch)
		if len(names) == 0 {
			break
		}
		e.ok(err)
		for _, name := range names {
			seen[name]++
		}
		for n := step * batch; n < min(size, step*batch+batch); n += 2 {
			e.ok(os.Remove(e.at(fmt.Sprintf("old %04d", n))))
		}
		if step < 100 {
			e.write(e.at(fmt.Sprintf("new %04d", step)), "")
		}
	}
	for n := 1; n < size; n += 2 {
		if name := fmt.Sprintf("old %04d", n); seen[name] != 1 {
			e.Fatalf("%q was listed %d times", name, seen[name])
		}
	}
}

func createAtOnce(e *env) {
	const makers, each = 8, 100 / scale
	e.all(makers, func(i int) error {
		for n := range each {
			path := e.at(fmt.Sprintf("%d-%d", i, n))
			if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
				return err
			}
			if err := os.Rename(path, path+".done"); err != nil {
				return err
			}
		}
		return nil
	})
	list, err := os.ReadDir(e.dir)
	e.ok(err)
	equal(e, len(list), makers*each)
	for i := range makers {
		path := e.at(fmt.Sprintf("%d-%d", i, each-1))
		e.read(path+".done", path)
	}
}

func wholeTree(e *env) {
	for a := range 5 {
		for b := range 5 {
			dir := e.at("tree", fmt.Sprint(a), fmt.Sprint(b))
			e.ok(os.MkdirAll(dir, 0o755))
			for c := range 5 {
				e.write(fmt.Sprintf("%s/%d", dir, c), dir)
			}
		}
	}
	e.ok(os.Rename(e.at("tree"), e.at("moved")))
	e.read(e.at("moved", "4", "4", "4"), e.at("tree", "4", "4"))
	e.ok(os.RemoveAll(e.at("moved")))
	list, err := os.ReadDir(e.dir)
	e.ok(err)
	equal(e, len(list), 0)
}
