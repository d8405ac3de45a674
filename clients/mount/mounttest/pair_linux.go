package mounttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

func pairCases() []testCase {
	return []testCase{
		{"two mounts: after close, an open elsewhere sees the write", 2, closeToOpen},
		{"two mounts: names made, moved and removed show", 2, namesShow},
		{"two mounts append to one file", 2, appendFromTwo},
		{"two mounts write alternate blocks of one file", 2, alternateBlocks},
		{"two mounts: one of two exclusive makers wins", 2, oneMakerWins},
		{"two mounts: locks hold between them", 2, locksBetween},
		{"two mounts: an open file hears of changes", 2, changesHeard},
		{"two mounts: attributes changed elsewhere show", 2, attributesShow},
		{"two mounts: a file unlinked elsewhere stays readable", 2, unlinkedElsewhere},
		{"two mounts: a directory removed elsewhere still has attributes", 2, directoryGoneElsewhere},
		{"two mounts: makers in one directory", 2, makersFromTwo},
	}
}

// there answers a path on the second mount.
func (e *env) there(parts ...string) string {
	return filepath.Join(append([]string{e.peer}, parts...)...)
}

func closeToOpen(e *env) {
	sides := []func(...string) string{e.at, e.there}
	for round := range 40 {
		want := fmt.Sprintf("round %d %s", round, bytes.Repeat([]byte{'a' + byte(round%26)}, round*37))
		e.write(sides[round%2]("f"), want)
		e.read(sides[(round+1)%2]("f"), want)
		equal(e, e.stat(sides[(round+1)%2]("f")).Size, int64(len(want)))
	}
}

func (e *env) shows(path string) {
	e.Helper()
	e.eventually(path+" shows", func() error { _, err := os.Lstat(path); return err })
}

func (e *env) vanishes(path string) {
	e.Helper()
	e.eventually(path+" vanishes", func() error {
		if _, err := os.Lstat(path); !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("still: %w", err)
		}
		return nil
	})
}

func namesShow(e *env) {
	e.vanishes(e.there("d"))
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.shows(e.there("d"))
	e.write(e.there("d", "f"), "from the other")
	e.shows(e.at("d", "f"))
	e.read(e.at("d", "f"), "from the other")
	e.ok(os.Rename(e.at("d", "f"), e.at("d", "g")))
	e.vanishes(e.there("d", "f"))
	e.read(e.there("d", "g"), "from the other")
	e.ok(os.Rename(e.there("d"), e.there("e")))
	e.vanishes(e.at("d"))
	e.read(e.at("e", "g"), "from the other")
	e.ok(os.Remove(e.at("e", "g")))
	e.vanishes(e.there("e", "g"))
	e.ok(os.Remove(e.there("e")))
	e.vanishes(e.at("e"))
	list, err := os.ReadDir(e.peer)
	e.ok(err)
	equal(e, len(list), 0)
}

func appendFromTwo(e *env) {
	const records = 200
	e.write(e.at("log"), "")
	e.shows(e.there("log"))
	paths := []string{e.at("log"), e.there("log")}
	e.all(len(paths), func(i int) error {
		f, err := os.OpenFile(paths[i], os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		for n := range records {
			if _, err := fmt.Fprintf(f, "writer %02d record %04d\n", i, n); err != nil {
				return err
			}
		}
		return f.Close()
	})
	for _, path := range paths {
		got, err := os.ReadFile(path)
		e.ok(err)
		checkRecords(e, got, len(paths), records)
	}
}

func alternateBlocks(e *env) {
	const block, blocks = 4096, 128
	e.write(e.at("f"), string(make([]byte, block*blocks)))
	paths := []string{e.at("f"), e.there("f")}
	e.shows(paths[1])
	e.all(len(paths), func(i int) error {
		f, err := os.OpenFile(paths[i], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		for n := i; n < blocks; n += 2 {
			if _, err := f.WriteAt(bytes.Repeat([]byte{byte(n + 1)}, block), int64(n*block)); err != nil {
				return err
			}
		}
		return f.Close()
	})
	var want []byte
	for n := range blocks {
		want = append(want, bytes.Repeat([]byte{byte(n + 1)}, block)...)
	}
	for _, path := range paths {
		e.read(path, string(want))
	}
}

func oneMakerWins(e *env) {
	for round := range 30 {
		paths := []string{e.at(fmt.Sprint("f", round)), e.there(fmt.Sprint("f", round))}
		results := make([]error, len(paths))
		e.all(len(paths), func(i int) error {
			f, err := os.OpenFile(paths[i], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			results[i] = err
			if err != nil {
				return nil
			}
			_, err = fmt.Fprint(f, i)
			return errors.Join(err, f.Close())
		})
		winner := 0
		if results[0] != nil {
			winner = 1
		}
		e.ok(results[winner])
		e.want(results[1-winner], syscall.EEXIST)
		e.read(paths[1-winner], fmt.Sprint(winner))
	}
}

func locksBetween(e *env) {
	e.write(e.at("f"), "x")
	e.shows(e.there("f"))
	a, b := e.open(e.at("f"), os.O_RDWR, 0), e.open(e.there("f"), os.O_RDWR, 0)
	e.ok(try(a, unix.F_WRLCK, 0, 10))
	e.wantBusy(try(b, unix.F_WRLCK, 5, 1))
	e.ok(try(b, unix.F_WRLCK, 10, 1))
	e.ok(try(a, unix.F_UNLCK, 0, 10))
	e.ok(try(b, unix.F_WRLCK, 5, 1))
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	e.wantBusy(unix.Flock(int(b.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_UN))
	e.ok(unix.Flock(int(b.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	// Under a lock, each sees what the other wrote: a counter loses nothing.
	e.write(e.at("count"), "0")
	paths := []string{e.at("count"), e.there("count")}
	e.shows(paths[1])
	const rounds = 25
	e.all(len(paths), func(i int) error {
		for range rounds {
			if err := increment(paths[i]); err != nil {
				return err
			}
		}
		return nil
	})
	e.read(e.at("count"), fmt.Sprint(2*rounds))
}

// increment adds one to the number in a file, under a lock of the whole.
func increment(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
	buf := make([]byte, 20)
	n, _ := f.ReadAt(buf, 0) // an end of file is expected
	count := 0
	if _, err := fmt.Sscan(string(buf[:n]), &count); err != nil {
		return fmt.Errorf("reading %q: %w", buf[:n], err)
	}
	_, err = f.WriteAt([]byte(fmt.Sprint(count+1)), 0)
	return errors.Join(err, f.Sync(), unix.Flock(int(f.Fd()), unix.LOCK_UN))
}

func changesHeard(e *env) {
	e.write(e.at("f"), "the first content")
	e.shows(e.there("f"))
	f := e.open(e.there("f"), os.O_RDONLY, 0)
	for round := range 5 {
		// The kernel of the second mount has the pages now.
		_, err := f.ReadAt(make([]byte, 4), 0)
		e.ok(err)
		want := fmt.Sprintf("content of round %d, %s", round, bytes.Repeat([]byte("x"), 5000*round))
		e.write(e.at("f"), want)
		e.eventually("the change is heard of", func() error {
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil {
				return err
			}
			got := make([]byte, st.Size)
			n, err := f.ReadAt(got, 0)
			if err != nil || string(got[:n]) != want {
				return fmt.Errorf("%d bytes %.20q, %w", n, got[:n], err)
			}
			return nil
		})
	}
}

func attributesShow(e *env) {
	e.write(e.at("f"), "x")
	e.shows(e.there("f"))
	e.ok(os.Chmod(e.at("f"), 0o600))
	e.ok(os.Chown(e.at("f"), alice, staff))
	e.ok(unix.Setxattr(e.at("f"), "user.a", []byte("value"), 0))
	e.eventually("the attributes show", func() error {
		st := e.stat(e.there("f"))
		if st.Mode&0o777 != 0o600 || st.Uid != alice || st.Gid != staff {
			return fmt.Errorf("mode %o, %d:%d", st.Mode, st.Uid, st.Gid)
		}
		buf := make([]byte, 10)
		n, err := unix.Getxattr(e.there("f"), "user.a", buf)
		if err == nil && string(buf[:n]) != "value" {
			err = fmt.Errorf("value %q", buf[:n])
		}
		return err
	})
}

func unlinkedElsewhere(e *env) {
	want := string(bytes.Repeat([]byte("kept "), 20_000))
	e.write(e.at("f"), want)
	e.shows(e.there("f"))
	f := e.open(e.there("f"), os.O_RDWR, 0)
	e.ok(os.Remove(e.at("f")))
	e.vanishes(e.there("f"))
	got := make([]byte, len(want))
	_, err := f.ReadAt(got, 0)
	e.ok(err)
	e.same(got, []byte(want))
	_, err = f.WriteAt([]byte("KEPT"), 0)
	e.ok(err)
	_, err = f.ReadAt(got, 0)
	e.ok(err)
	equal(e, string(got[:5]), "KEPT ")
}

func makersFromTwo(e *env) {
	const each = 150 / scale
	dirs := []string{e.dir, e.peer}
	e.all(4, func(i int) error {
		for n := range each {
			path := filepath.Join(dirs[i%2], fmt.Sprintf("%d-%d", i, n))
			if err := os.WriteFile(path, []byte(fmt.Sprint(i, n)), 0o644); err != nil {
				return err
			}
			if n%3 == 0 {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, dir := range dirs {
		e.eventually("both list all", func() error {
			list, err := os.ReadDir(dir)
			if err == nil && len(list) != 4*(each-(each+2)/3) {
				err = fmt.Errorf("%d names", len(list))
			}
			return err
		})
		e.read(filepath.Join(dir, "3-1"), "3 1")
		e.read(filepath.Join(dir, fmt.Sprint("0-", each-1)), fmt.Sprint(0, each-1))
	}
}

func directoryGoneElsewhere(e *env) {
	for _, replace := range []bool{false, true} {
		e.ok(os.Mkdir(e.at("d"), 0o750))
		e.eventually("the directory shows elsewhere", func() error {
			_, err := os.Stat(e.there("d"))
			return err
		})
		d := e.open(e.there("d"), os.O_RDONLY, 0)
		before := e.fstat(d)
		if replace {
			e.ok(os.Mkdir(e.at("other"), 0o755))
			e.ok(unix.Rename(e.at("other"), e.at("d")))
		} else {
			e.ok(unix.Rmdir(e.at("d")))
		}
		after := e.fstat(d)
		equal(e, after.Ino, before.Ino)
		equal(e, after.Nlink, 0)
		var st unix.Stat_t
		err := unix.Stat(e.there("d"), &st)
		switch {
		case !replace:
			e.want(err, unix.ENOENT)
		case err != nil || st.Ino == before.Ino || st.Mode&0o7777 != 0o755:
			e.Fatalf("the name shows object %d of mode %o, %v; the one that is gone is %d", st.Ino, st.Mode, err, before.Ino)
		}
		if replace {
			e.ok(unix.Rmdir(e.at("d")))
		}
	}
}
