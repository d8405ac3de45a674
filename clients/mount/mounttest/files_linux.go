package mounttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func fileCases() []testCase {
	return []testCase{
		{"create opens a new file and O_EXCL refuses an old one", 1, createExclusive},
		{"O_TRUNC empties and a read-only descriptor does not write", 1, openModes},
		{"O_APPEND goes to the end from several descriptors", 1, appendAtOnce},
		{"pread and pwrite at any offset", 1, writeAnywhere},
		{"random writes and truncations agree with a model", 1, agreeWithModel},
		{"an unlinked file lives while it is open", 1, unlinkedOpen},
		{"a replaced file lives while it is open", 1, replacedOpen},
		{"shared mappings and read and write see one another", 1, mapShared},
		{"a private mapping stays private", 1, mapPrivate},
		{"direct and synchronous writes", 1, directAndSync},
		{"fsync of files and directories", 1, syncEverything},
		{"a file without a name, and its first name", 1, nameless},
		{"copy_file_range copies", 1, copyRange},
		{"a program runs from the mount and is busy meanwhile", 1, runProgram},
		{"many descriptors of one file", 1, manyDescriptors},
		{"a large file comes back whole", 1, largeFile},
	}
}

func createExclusive(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	equal(e, e.fstat(f).Mode, unix.S_IFREG|0o640)
	_, err := os.OpenFile(e.at("f"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	e.want(err, syscall.EEXIST)
	_, err = os.OpenFile(e.at("missing"), os.O_RDWR, 0)
	e.want(err, syscall.ENOENT)
	_, err = os.OpenFile(e.at("f", "x"), os.O_CREATE|os.O_RDWR, 0o644)
	e.want(err, syscall.ENOTDIR)
	_, err = os.OpenFile(e.dir, os.O_WRONLY, 0)
	e.want(err, syscall.EISDIR)
	// Opening with O_CREAT what exists leaves its mode alone.
	g := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o777)
	equal(e, e.fstat(g).Mode, unix.S_IFREG|0o640)
}

func openModes(e *env) {
	e.write(e.at("f"), "some content")
	f := e.open(e.at("f"), os.O_RDONLY, 0)
	_, err := f.Write([]byte("x"))
	e.want(err, syscall.EBADF)
	w := e.open(e.at("f"), os.O_WRONLY|os.O_TRUNC, 0)
	_, err = w.Read(make([]byte, 1))
	e.want(err, syscall.EBADF)
	equal(e, e.fstat(f).Size, 0)
	_, err = w.WriteString("new")
	e.ok(err)
	e.read(e.at("f"), "new")
	got := make([]byte, 10)
	n, err := f.ReadAt(got, 0)
	if n != 3 || !errors.Is(err, io.EOF) {
		e.Fatalf("read %d bytes, %v", n, err)
	}
}

func appendAtOnce(e *env) {
	const writers, records = 8, 50
	e.all(writers, func(i int) error {
		f, err := os.OpenFile(e.at("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		for n := range records {
			if _, err := fmt.Fprintf(f, "writer %02d record %04d\n", i, n); err != nil {
				return err
			}
		}
		return f.Close()
	})
	got, err := os.ReadFile(e.at("log"))
	e.ok(err)
	checkRecords(e, got, writers, records)
	// pwrite on such a descriptor appends too.
	f := e.open(e.at("log"), os.O_APPEND|os.O_WRONLY, 0)
	_, err = unix.Pwrite(int(f.Fd()), []byte("end\n"), 0)
	e.ok(err)
	e.read(e.at("log"), string(got)+"end\n")
}

// checkRecords looks for every record of every writer, once.
func checkRecords(e *env, got []byte, writers, records int) {
	e.Helper()
	lines := bytes.Split(bytes.TrimSuffix(got, []byte("\n")), []byte("\n"))
	seen := map[string]int{}
	for _, line := range lines {
		seen[string(line)]++
	}
	for i := range writers {
		for n := range records {
			if line := fmt.Sprintf("writer %02d record %04d", i, n); seen[line] != 1 {
				e.Fatalf("%q is there %d times; odd lines: %q", line, seen[line], oddLines(lines))
			}
		}
	}
	equal(e, len(lines), writers*records)
}

// oddLines answers the first lines that no writer wrote, and where they are.
func oddLines(lines [][]byte) []string {
	var odd []string
	at := 0
	for _, line := range lines {
		writer, record := 0, 0
		n, err := fmt.Sscanf(string(line), "writer %02d record %04d", &writer, &record)
		if (n != 2 || err != nil) && len(odd) < 3 {
			odd = append(odd, fmt.Sprintf("%d: %.60s", at, line))
		}
		at += len(line) + 1
	}
	return odd
}

func writeAnywhere(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	want := make([]byte, 300_000)
	for _, offset := range []int{299_990, 4090, 0, 131_070, 4096, 65_535} {
		data := []byte(fmt.Sprintf("at %06d.", offset))
		copy(want[offset:], data)
		_, err := f.WriteAt(data, int64(offset))
		e.ok(err)
	}
	equal(e, e.fstat(f).Size, 300_000)
	got := make([]byte, len(want))
	_, err := f.ReadAt(got, 0)
	e.ok(err)
	e.same(got, want)
	e.read(e.at("f"), string(want))
}

// agreeWithModel does the same to a file and to a slice of bytes.
func agreeWithModel(e *env) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 7))
		path := e.at(fmt.Sprint("f", seed))
		f := e.open(path, os.O_CREATE|os.O_RDWR, 0o644)
		var model []byte
		for step := range 300 {
			offset, length := random.IntN(200_000), random.IntN(30_000)
			switch random.IntN(5) {
			case 0:
				e.ok(f.Truncate(int64(offset)))
				model = resize(model, offset)
			case 1:
				f.Close()
				f = e.open(path, os.O_RDWR, 0)
			case 2:
				got := make([]byte, length)
				n, err := f.ReadAt(got, int64(offset))
				if err != nil && !errors.Is(err, io.EOF) {
					e.Fatal(err)
				}
				from := min(offset, len(model))
				e.same(got[:n], model[from:min(offset+length, len(model))])
			default:
				data := bytes.Repeat([]byte{byte(step + 1)}, length)
				_, err := f.WriteAt(data, int64(offset))
				e.ok(err)
				if length > 0 {
					model = resize(model, max(len(model), offset+length))
					copy(model[offset:], data)
				}
			}
			if size := e.fstat(f).Size; size != int64(len(model)) {
				e.Fatalf("seed %d, step %d: size %d, want %d", seed, step, size, len(model))
			}
		}
		e.read(path, string(model))
	}
}

func resize(b []byte, n int) []byte {
	if n <= len(b) {
		return b[:n:n]
	}
	return append(b, make([]byte, n-len(b))...)
}

func unlinkedOpen(e *env) {
	e.write(e.at("f"), "content")
	f := e.open(e.at("f"), os.O_RDWR, 0)
	e.ok(os.Remove(e.at("f")))
	equal(e, e.fstat(f).Nlink, 0)
	_, err := f.WriteAt([]byte("CON"), 0)
	e.ok(err)
	got := make([]byte, 7)
	_, err = f.ReadAt(got, 0)
	e.ok(err)
	equal(e, string(got), "CONtent")
	e.ok(f.Truncate(3))
	equal(e, e.fstat(f).Size, 3)
	e.ok(f.Chmod(0o600))
	equal(e, e.fstat(f).Mode&0o777, 0o600)
	// Another file of the name is another file.
	e.write(e.at("f"), "other")
	e.read(e.at("f"), "other")
	equal(e, e.fstat(f).Size, 3)
	_, err = unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	e.ok(err)
}

func replacedOpen(e *env) {
	e.write(e.at("old"), "the old one")
	f := e.open(e.at("old"), os.O_RDWR, 0)
	e.write(e.at("new"), "new")
	e.ok(os.Rename(e.at("new"), e.at("old")))
	got := make([]byte, 11)
	_, err := f.ReadAt(got, 0)
	e.ok(err)
	equal(e, string(got), "the old one")
	equal(e, e.fstat(f).Nlink, 0)
	e.read(e.at("old"), "new")
}

func mapShared(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	e.ok(f.Truncate(10_000))
	m, err := unix.Mmap(int(f.Fd()), 0, 10_000, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	e.ok(err)
	copy(m[5000:], "through the mapping")
	got := make([]byte, 19)
	_, err = f.ReadAt(got, 5000)
	e.ok(err)
	equal(e, string(got), "through the mapping")
	_, err = f.WriteAt([]byte("through write"), 100)
	e.ok(err)
	equal(e, string(m[100:113]), "through write")
	e.ok(unix.Msync(m, unix.MS_SYNC))
	e.ok(unix.Munmap(m))
	e.ok(f.Close())
	whole, err := os.ReadFile(e.at("f"))
	e.ok(err)
	equal(e, len(whole), 10_000)
	equal(e, string(whole[5000:5019]), "through the mapping")
	equal(e, string(whole[100:113]), "through write")
}

func mapPrivate(e *env) {
	e.write(e.at("f"), "original content")
	f := e.open(e.at("f"), os.O_RDONLY, 0)
	m, err := unix.Mmap(int(f.Fd()), 0, 16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	e.ok(err)
	copy(m, "CHANGED!")
	e.ok(unix.Munmap(m))
	e.read(e.at("f"), "original content")
}

func directAndSync(e *env) {
	block, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	e.ok(err)
	defer unix.Munmap(block)
	copy(block, bytes.Repeat([]byte("direct! "), 1024))
	f, err := os.OpenFile(e.at("direct"), os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o644)
	if errors.Is(err, syscall.EINVAL) {
		e.Skip("the mount does not offer O_DIRECT")
	}
	e.ok(err)
	defer f.Close()
	_, err = f.WriteAt(block, 4096)
	e.ok(err)
	want := string(make([]byte, 4096)) + string(block)
	clear(block)
	_, err = f.ReadAt(block, 4096)
	e.ok(err)
	equal(e, string(block), want[4096:])
	e.read(e.at("direct"), want)
	for _, flag := range []int{unix.O_SYNC, unix.O_DSYNC} {
		s := e.open(e.at("sync"), os.O_CREATE|os.O_RDWR|os.O_TRUNC|flag, 0o644)
		_, err = s.WriteString("on disk")
		e.ok(err)
		e.read(e.at("sync"), "on disk")
	}
}

func syncEverything(e *env) {
	f := e.open(e.at("f"), os.O_CREATE|os.O_RDWR, 0o644)
	_, err := f.WriteString("content")
	e.ok(err)
	e.ok(f.Sync())
	e.ok(unix.Fdatasync(int(f.Fd())))
	e.ok(unix.SyncFileRange(int(f.Fd()), 0, 7, unix.SYNC_FILE_RANGE_WRITE))
	d := e.open(e.dir, os.O_RDONLY, 0)
	e.ok(d.Sync())
	e.ok(unix.Syncfs(int(d.Fd())))
}

func nameless(e *env) {
	fd, err := unix.Open(e.dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EISDIR) {
		e.Skip("the mount does not offer O_TMPFILE")
	}
	e.ok(err)
	f := os.NewFile(uintptr(fd), "nameless")
	defer f.Close()
	_, err = f.WriteString("hidden")
	e.ok(err)
	left, err := os.ReadDir(e.dir)
	e.ok(err)
	equal(e, len(left), 0)
	equal(e, e.fstat(f).Nlink, 0)
	e.ok(unix.Linkat(fd, "", unix.AT_FDCWD, e.at("named"), unix.AT_EMPTY_PATH))
	e.read(e.at("named"), "hidden")
	equal(e, e.stat(e.at("named")).Nlink, 1)
}

func copyRange(e *env) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 130_000)
	for i := range want {
		want[i] += byte(i >> 12)
	}
	e.write(e.at("from"), string(want))
	from, to := e.open(e.at("from"), os.O_RDWR, 0), e.open(e.at("to"), os.O_CREATE|os.O_RDWR, 0o644)
	// What was just written is copied too, and what is written there before stays.
	_, err := from.WriteAt([]byte("new"), 50)
	e.ok(err)
	copy(want[50:], "new")
	got := make([]byte, 1_000_000)
	_, err = to.WriteAt([]byte("before"), 1)
	e.ok(err)
	copy(got[1:], "before")
	for _, each := range []struct{ in, out, length int64 }{{40, 7, 200_000}, {100, 200_007, 700_000}, {1_500_000, 500_000, 500_000}} {
		copy(got[each.out:], want[each.in:each.in+each.length])
		for left := each.length; left > 0; {
			n, err := unix.CopyFileRange(int(from.Fd()), &each.in, int(to.Fd()), &each.out, int(left), 0)
			e.ok(err)
			if n == 0 {
				e.Fatal("copied nothing")
			}
			left -= int64(n)
		}
	}
	e.read(e.at("to"), string(got))
	e.ok(to.Close())
	e.read(e.at("to"), string(got))
}

func runProgram(e *env) {
	program, err := os.ReadFile("/bin/sleep")
	if err != nil {
		e.Skipf("no program to copy: %v", err)
	}
	e.ok(os.WriteFile(e.at("sleep"), program, 0o755))
	e.ok(exec.Command(e.at("sleep"), "0").Run())
	cmd := exec.Command(e.at("sleep"), "30")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.ok(cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	_, err = os.OpenFile(e.at("sleep"), os.O_WRONLY, 0)
	e.want(err, syscall.ETXTBSY)
	// A refused open has not emptied it.
	for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		_, err = os.OpenFile(e.at("sleep"), flags|os.O_TRUNC, 0)
		e.want(err, syscall.ETXTBSY)
	}
	e.read(e.at("sleep"), string(program))
	e.ok(os.Chmod(e.at("sleep"), 0o644))
	e.want(exec.Command(e.at("sleep"), "0").Run(), syscall.EACCES)
}

func manyDescriptors(e *env) {
	e.write(e.at("f"), "")
	var files []*os.File
	for range 200 {
		files = append(files, e.open(e.at("f"), os.O_RDWR, 0))
	}
	for i, f := range files {
		_, err := f.WriteAt([]byte{byte(i)}, int64(i))
		e.ok(err)
	}
	got, err := os.ReadFile(e.at("f"))
	e.ok(err)
	for i := range files {
		equal(e, got[i], byte(i))
	}
}

func largeFile(e *env) {
	want := make([]byte, 24<<20/scale)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(want) // never fails
	e.ok(os.WriteFile(e.at("f"), want, 0o644))
	got, err := os.ReadFile(e.at("f"))
	e.ok(err)
	e.same(got, want)
	f := e.open(e.at("f"), os.O_RDONLY, 0)
	e.ok(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	got, err = os.ReadFile(e.at("f"))
	e.ok(err)
	e.same(got, want)
}
