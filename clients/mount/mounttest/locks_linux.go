package mounttest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func lockCases() []testCase {
	return []testCase{
		{"byte-range locks keep others out of their bytes", 1, rangeLocks},
		{"flock keeps other descriptors out", 1, wholeLocks},
		{"closing gives up locks", 1, closeUnlocks},
		{"closing a reader's descriptor gives up locks", 1, readersClose},
		{"closing what was opened beside a writer gives up locks", 1, besideWriter},
		{"a waiting lock is granted, or interrupted", 1, waitForLock},
	}
}

// try takes or gives up an open file description's lock.
func try(f *os.File, kind int16, start, length int64) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: start, Len: length})
}

func (e *env) wantBusy(err error) {
	e.Helper()
	if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		e.Fatalf("got %v, want a lock that is held", err)
	}
}

func rangeLocks(e *env) {
	e.write(e.at("f"), "0123456789")
	a, b := e.open(e.at("f"), os.O_RDWR, 0), e.open(e.at("f"), os.O_RDWR, 0)
	e.ok(try(a, unix.F_WRLCK, 10, 10))
	e.wantBusy(try(b, unix.F_RDLCK, 15, 1))
	e.wantBusy(try(b, unix.F_WRLCK, 0, 0))
	e.ok(try(b, unix.F_WRLCK, 0, 10))
	e.ok(try(b, unix.F_WRLCK, 20, 0))
	// Splitting: the middle is given up, the ends stay.
	e.ok(try(a, unix.F_UNLCK, 13, 4))
	e.ok(try(b, unix.F_WRLCK, 13, 4))
	e.wantBusy(try(b, unix.F_WRLCK, 12, 1))
	e.wantBusy(try(b, unix.F_WRLCK, 17, 1))
	// Turning into a read lock lets readers in.
	e.ok(try(a, unix.F_RDLCK, 10, 3))
	e.ok(try(b, unix.F_RDLCK, 11, 1))
	e.wantBusy(try(b, unix.F_WRLCK, 11, 1))
	probe := unix.Flock_t{Type: unix.F_WRLCK, Start: 17, Len: 100}
	e.ok(unix.FcntlFlock(b.Fd(), unix.F_OFD_GETLK, &probe))
	equal(e, probe.Type, unix.F_WRLCK)
	equal(e, probe.Start, 17)
	equal(e, probe.Len, 3)
	// A process's own lock conflicts with a description's.
	e.ok(try(b, unix.F_UNLCK, 0, 0))
	e.ok(unix.FcntlFlock(a.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 500, Len: 1}))
	e.wantBusy(try(b, unix.F_WRLCK, 500, 1))
	probe = unix.Flock_t{Type: unix.F_WRLCK, Start: 500, Len: 1}
	e.ok(unix.FcntlFlock(b.Fd(), unix.F_OFD_GETLK, &probe))
	equal(e, probe.Type, unix.F_WRLCK)
	equal(e, probe.Len, 1)
}

func wholeLocks(e *env) {
	e.write(e.at("f"), "x")
	a, b := e.open(e.at("f"), os.O_RDWR, 0), e.open(e.at("f"), os.O_RDONLY, 0)
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_EX))
	e.wantBusy(unix.Flock(int(b.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_SH))
	e.ok(unix.Flock(int(b.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	e.wantBusy(unix.Flock(int(a.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	e.ok(unix.Flock(int(b.Fd()), unix.LOCK_UN))
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	// Byte ranges and whole-file locks do not meet.
	c := e.open(e.at("f"), os.O_RDWR, 0)
	e.ok(try(c, unix.F_WRLCK, 0, 0))
}

func closeUnlocks(e *env) {
	e.write(e.at("f"), "x")
	for _, each := range []struct {
		what string
		take func(*os.File) error
	}{
		{"flock", func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }},
		{"description's lock", func(f *os.File) error { return try(f, unix.F_WRLCK, 0, 0) }},
		{"process's lock", func(f *os.File) error {
			return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		}},
	} {
		a, err := os.OpenFile(e.at("f"), os.O_RDWR, 0)
		e.ok(err)
		// The kernel tells the file system of a close a moment later, of the
		// one that ended the round before too.
		e.eventually(each.what, func() error { return each.take(a) })
		e.ok(a.Close())
		e.eventually(each.what+" after close", func() error {
			b, err := os.OpenFile(e.at("f"), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer b.Close()
			if err := unix.Flock(int(b.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				return err
			}
			return try(b, unix.F_WRLCK, 0, 0)
		})
	}
}

// readersClose does the same with descriptors that cannot write, of which a
// kernel may not tell each close.
func readersClose(e *env) {
	e.write(e.at("f"), "x")
	writer := e.open(e.at("f"), os.O_RDWR, 0)
	process := func(f *os.File, kind int16) error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: kind})
	}
	for _, each := range []struct {
		what string
		take func(*os.File) error
	}{
		{"flock", func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }},
		{"description's lock", func(f *os.File) error { return try(f, unix.F_RDLCK, 0, 0) }},
		{"process's lock", func(f *os.File) error { return process(f, unix.F_RDLCK) }},
	} {
		a, err := os.OpenFile(e.at("f"), os.O_RDONLY, 0)
		e.ok(err)
		e.ok(each.take(a))
		var busy error
		if each.what == "flock" {
			busy = unix.Flock(int(writer.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		} else {
			busy = try(writer, unix.F_WRLCK, 0, 0)
		}
		e.wantBusy(busy)
		e.ok(a.Close())
		e.eventually(each.what+" after close", func() error {
			if err := unix.Flock(int(writer.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				return err
			}
			return try(writer, unix.F_WRLCK, 0, 0)
		})
		e.ok(unix.Flock(int(writer.Fd()), unix.LOCK_UN))
		e.ok(try(writer, unix.F_UNLCK, 0, 0))
	}
	// A process that closes any descriptor of a file loses its ranges there.
	a, err := os.OpenFile(e.at("f"), os.O_RDONLY, 0)
	e.ok(err)
	defer a.Close()
	e.ok(process(a, unix.F_RDLCK))
	other, err := os.OpenFile(e.at("f"), os.O_RDONLY, 0)
	e.ok(err)
	e.ok(other.Close())
	e.ok(try(writer, unix.F_WRLCK, 0, 0))
}

// besideWriter closes a descriptor that cannot write and was there before its
// process locked the file through another.
func besideWriter(e *env) {
	e.write(e.at("f"), "x")
	holder, other := e.open(e.at("f"), os.O_RDWR, 0), e.open(e.at("f"), os.O_RDWR, 0)
	reader, err := os.OpenFile(e.at("f"), os.O_RDONLY, 0)
	e.ok(err)
	e.ok(unix.FcntlFlock(holder.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
	e.wantBusy(try(other, unix.F_WRLCK, 0, 0))
	e.ok(reader.Close())
	e.ok(try(other, unix.F_WRLCK, 0, 0))
}

func waitForLock(e *env) {
	e.write(e.at("f"), "x")
	a, b := e.open(e.at("f"), os.O_RDWR, 0), e.open(e.at("f"), os.O_RDWR, 0)
	e.ok(try(a, unix.F_WRLCK, 0, 0))
	granted := make(chan error, 1)
	go func() {
		granted <- unix.FcntlFlock(b.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK})
	}()
	select {
	case err := <-granted:
		e.Fatalf("two hold one lock: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	e.ok(try(a, unix.F_UNLCK, 0, 0))
	select {
	case err := <-granted:
		for errors.Is(err, syscall.EINTR) { // the runtime's own signals interrupt too
			err = unix.FcntlFlock(b.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK})
		}
		e.ok(err)
	case <-time.After(10 * time.Second):
		e.Fatal("the lock is not granted")
	}
	interruptWaiter(e)
}

// interruptWaiter signals a process that waits for a lock: it must end soon,
// and its place in the queue with it.
func interruptWaiter(e *env) {
	program, err := exec.LookPath("flock")
	if err != nil {
		e.Skip("there is no flock command to interrupt")
	}
	a := e.open(e.at("f"), os.O_RDWR, 0)
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	waiter := exec.Command(program, e.at("f"), "true")
	waiter.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.ok(waiter.Start())
	ended := make(chan error, 1)
	go func() { ended <- waiter.Wait() }()
	select {
	case err := <-ended:
		e.Fatalf("the waiter did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	e.ok(waiter.Process.Signal(syscall.SIGTERM))
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		e.Fatal("a signal does not end the wait")
	}
	e.ok(unix.Flock(int(a.Fd()), unix.LOCK_UN))
	b := e.open(e.at("f"), os.O_RDWR, 0)
	e.ok(unix.Flock(int(b.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}
