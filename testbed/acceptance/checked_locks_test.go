package acceptance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// inode identifies a directory, whatever its name.
func inode(path string) (string, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	return strconv.FormatUint(st.Ino, 10), err
}

// putDir gives a new directory a name, if no other has it.
func (p *checkedProgram) putDir() error {
	_, path := p.own()
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	id, err := inode(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(path, "id"), []byte(contentOf(id, 1)), 0o644); err != nil {
		return fmt.Errorf("in a new directory: %w", err)
	}
	at := p.anyOf("dirs")
	r, err := p.do(event{What: didLink, At: at, ID: id}, takenOnly, func() error { return syscall.Rename(path, p.path(at)) })
	if err == nil && r == isTaken {
		err = os.RemoveAll(path)
	}
	return err
}

func (p *checkedProgram) moveDir() error {
	from, to := p.anyOf("dirs"), p.anyOf("dirs")
	if from == to {
		return nil
	}
	_, err := p.do(event{What: didMove, At: from, To: to}, either, func() error { return syscall.Rename(p.path(from), p.path(to)) })
	return err
}

// takeDir takes a directory from its name and removes it.
func (p *checkedProgram) takeDir() error {
	_, path := p.own()
	e := event{What: didTake, At: p.anyOf("dirs"), Begin: now()}
	err := syscall.Rename(p.path(e.At), path)
	e.End = now()
	if e.Result, err = result(err, missingOnly); err != nil {
		return err
	}
	if e.Result == "" {
		if e.ID, err = inode(path); err != nil {
			return err
		}
		content, err := os.ReadFile(filepath.Join(path, "id"))
		if err = errors.Join(err, isFileOf(e.ID, content)); err != nil {
			return fmt.Errorf("in a directory that was taken: %w", err)
		}
	}
	p.say(e)
	return os.RemoveAll(path)
}

func isFileOf(id string, content []byte) error {
	if string(content) != contentOf(id, 1) {
		return fmt.Errorf("%.80q in directory %s", content, id)
	}
	return nil
}

// findDir opens a directory and reads the file in it, which may be gone with it.
func (p *checkedProgram) findDir() error {
	e := event{What: didFind, At: p.anyOf("dirs"), Begin: now()}
	fd, err := syscall.Open(p.path(e.At), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	e.End = now()
	if e.Result, err = result(err, missingOnly); err != nil {
		return wrapped("open of a directory", err)
	}
	if e.Result != "" {
		p.say(e)
		return nil
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat of an open directory: %w", err)
	}
	e.ID = strconv.FormatUint(st.Ino, 10)
	p.say(e)
	file, err := syscall.Openat(fd, "id", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if r, err := result(err, goneToo); err != nil || r != "" {
		return wrapped("open in an open directory", err)
	}
	f := os.NewFile(uintptr(file), e.At+"/id")
	defer f.Close()
	content := make([]byte, len(contentOf(e.ID, 1)))
	if _, err := f.ReadAt(content, 0); err != nil {
		return fmt.Errorf("read in an open directory: %w", err)
	}
	return isFileOf(e.ID, content)
}

// The registers are blocks of one file.
const (
	registers     = 4
	registerBytes = 4096
)

// register picks one of them.
func (p *checkedProgram) register() (name string, offset int64) {
	i := p.chance.IntN(registers)
	return fmt.Sprint("register", i), int64(i) * registerBytes
}

func (p *checkedProgram) set() error {
	p.made++
	id := fmt.Sprintf("%d.%d", p.Number, p.made)
	at, offset := p.register()
	e := event{What: didSet, At: at, ID: id, Begin: now()}
	f, err := os.OpenFile(p.path("registers"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(id+strings.Repeat("\n", registerBytes-len(id))), offset)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write of a register: %w", err)
	}
	e.End = now()
	p.say(e)
	return nil
}

func (p *checkedProgram) get() error {
	at, offset := p.register()
	e := event{What: didGet, At: at, Begin: now()}
	f, err := os.Open(p.path("registers"))
	if err != nil {
		return err
	}
	block := make([]byte, registerBytes)
	_, err = f.ReadAt(block, offset)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read of a register: %w", err)
	}
	e.ID, e.End = strings.TrimRight(string(block), "\n"), now()
	if strings.Contains(e.ID, "\n") {
		return fmt.Errorf("%s is torn: %.80q", at, e.ID)
	}
	p.say(e)
	return nil
}

// patiently repeats a call that a signal interrupts.
func patiently(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// counterBytes is the length of a counter in its file.
const counterBytes = 16

func counterAt(f *os.File, offset int64) (int, error) {
	b := make([]byte, counterBytes)
	if _, err := f.ReadAt(b, offset); err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// counted is one life of a lock: take, look, add one if the lock is exclusive,
// release. What is written under a lock that was lost answers EIO.
func (p *checkedProgram) counted(f *os.File, e event, offset int64, lock func(how int) error, exclusive bool) error {
	how, release := syscall.LOCK_SH, syscall.LOCK_UN
	if exclusive {
		how = syscall.LOCK_EX
	}
	if err := patiently(func() error { return lock(how) }); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	e.Begin = now()
	value, err := counterAt(f, offset)
	if err != nil {
		return fmt.Errorf("read under a lock: %w", err)
	}
	e.Value = value
	if exclusive {
		_, err = f.WriteAt(fmt.Appendf(nil, "%*d", counterBytes, value+1), offset)
		if err == nil {
			err = f.Sync() // its answer tells whether the lock was lost
		}
		if e.Result, err = result(err, lostOnly); err != nil {
			return fmt.Errorf("write under a lock: %w", err)
		}
	}
	e.End = now()
	p.say(e)
	if e.Result == isLost {
		return nil // it is released by the close, whose answer is the same
	}
	if p.chance.IntN(2) == 0 {
		return nil // likewise by the close
	}
	return patiently(func() error { return lock(release) })
}

func (p *checkedProgram) flock(exclusive bool) error {
	e := event{What: didLook, At: fmt.Sprint("count", p.chance.IntN(2))}
	if exclusive {
		e.What = didCount
	}
	f, err := os.OpenFile(p.path(e.At), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = p.counted(f, e, 0, func(how int) error { return syscall.Flock(int(f.Fd()), how) }, exclusive)
	_, lost := result(f.Close(), lostOnly)
	return errors.Join(err, lost)
}

func (p *checkedProgram) count() error { return p.flock(true) }
func (p *checkedProgram) look() error  { return p.flock(false) }

// ranges is how many parts of one file have a lock and a counter each.
const ranges = 3

func (p *checkedProgram) countRange() error {
	i := p.chance.IntN(ranges)
	f, err := os.OpenFile(p.path("ranges"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	offset := int64(i) * counterBytes
	kinds := map[int]int16{syscall.LOCK_EX: syscall.F_WRLCK, syscall.LOCK_SH: syscall.F_RDLCK, syscall.LOCK_UN: syscall.F_UNLCK}
	lock := func(how int) error {
		return syscall.FcntlFlock(f.Fd(), syscall.F_SETLKW, &syscall.Flock_t{Type: kinds[how], Start: offset, Len: counterBytes})
	}
	err = p.counted(f, event{What: didCount, At: fmt.Sprint("range", i)}, offset, lock, true)
	_, lost := result(f.Close(), lostOnly)
	return errors.Join(err, lost)
}
