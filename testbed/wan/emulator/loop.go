package emulator

import (
	"encoding/binary"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/wan"
	"cartwheel.dev/testbed/wan/link"
)

const (
	early   = 150_000 // ns that packets may leave early, so that one waking serves several
	asleep  = 20_000  // ns of waiting from which the thread has slept
	batch   = 32      // packets read from one site before the others' turn
	longest = 1 << 30 // ns to wait when nothing is due
	answers = 10 * time.Second
)

// loop moves the packets. All but do and stop belongs to the goroutine of run.
type loop struct {
	base  time.Time
	tuns  []*tun
	epoll int
	bell  int // an eventfd: somebody put a task into tasks
	tasks chan func(now int64)
	ended chan struct{}

	net     *link.Net
	arena   *arena
	site    map[uint32]int // of an address
	scratch []byte         // where packets are read to
	altered []byte         // where they are damaged
	empty   []int64        // when each site was last known to have nothing to read
	events  []unix.EpollEvent
	late    wan.Histogram
	waited  wan.Histogram
	lost    []wan.Lost
	names   []string
	over    bool
}

// tasksLimit bounds the tasks that wait for the loop; further callers of do wait.
const tasksLimit = 16

func newLoop(c *wan.Config, tuns []*tun, base time.Time) (*loop, error) {
	l := &loop{
		base: base, tuns: tuns, epoll: -1, bell: -1, tasks: make(chan func(int64), tasksLimit), ended: make(chan struct{}), site: map[uint32]int{},
		net: link.New(c.Seed, compile(c, base)), scratch: make([]byte, largest), altered: make([]byte, largest),
		empty: make([]int64, len(tuns)), events: make([]unix.EpollEvent, len(tuns)+1), lost: make([]wan.Lost, len(tuns)),
	}
	for i, s := range c.Sites {
		l.names = append(l.names, s.Name)
		for _, h := range s.Hosts {
			a := h.Addr.As4()
			l.site[binary.BigEndian.Uint32(a[:])] = i
		}
		a := s.Gateway().As4()
		l.site[binary.BigEndian.Uint32(a[:])] = i
	}
	var err error
	if l.arena, err = newArena(); err != nil {
		return nil, err
	}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	for i, t := range append(tuns[:len(tuns):len(tuns)], &tun{fd: l.bell}) {
		if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, t.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// do has the loop's thread run a task between packets, and waits for it.
func (l *loop) do(task func(now int64)) error {
	done := make(chan struct{})
	timeout := time.NewTimer(answers)
	defer timeout.Stop()
	select {
	case l.tasks <- func(now int64) { task(now); close(done) }:
	case <-timeout.C:
		return fault.E(fault.TimedOut, "emulator.do", "", "the emulator's thread does not answer")
	}
	_, _ = unix.Write(l.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it fails only when it rings already
	select {
	case <-done:
		return nil
	case <-l.ended:
		return fault.E(fault.Closed, "emulator.do", "", "the emulator's thread has ended")
	case <-timeout.C:
		return fault.E(fault.TimedOut, "emulator.do", "", "the emulator's thread does not answer")
	}
}

// stop ends the loop.
func (l *loop) stop() error { return l.do(func(int64) { l.over = true }) }

func (l *loop) now() int64 { return int64(time.Since(l.base)) }

// run moves packets until it is stopped.
func (l *loop) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.ended)
	defer l.close()
	for !l.over {
		now := l.emit(l.now())
		timeout := int64(longest)
		if at, ok := l.net.Next(); ok {
			timeout = max(0, at-now)
		}
		n, errno := wait(l.epoll, l.events, timeout)
		woke := l.now()
		if errno != 0 && errno != unix.EINTR {
			return fault.Wrap(fault.IO, "emulator.run", "epoll", errno)
		}
		if woke-now > asleep {
			for i := range l.empty {
				l.empty[i] = max(l.empty[i], woke)
			}
		}
		for _, e := range l.events[:max(n, 0)] {
			if int(e.Fd) == len(l.tuns) {
				l.serve()
			} else if err := l.receive(int(e.Fd)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loop) close() {
	l.arena.close()
	unix.Close(l.epoll)
	unix.Close(l.bell)
}

// serve does what others asked for.
func (l *loop) serve() {
	_, _ = read(l.bell, l.scratch[:8]) // it says how often it rang, which nobody asked
	for {
		select {
		case task := <-l.tasks:
			task(l.now())
		default:
			return
		}
	}
}

// receive reads what a site sends.
func (l *loop) receive(from int) error {
	for range batch {
		n, errno := read(l.tuns[from].fd, l.scratch)
		now := l.now()
		switch errno {
		case 0:
		case unix.EAGAIN:
			l.empty[from] = now
			return nil
		case unix.EINTR, unix.EIO: // EIO: the device is not turned on yet
			return nil
		default:
			return fault.Wrap(fault.IO, "emulator.receive", l.names[from], errno)
		}
		l.waited.Add(time.Duration(now - l.empty[from]))
		l.admit(now, from, l.scratch[:n])
		if at, ok := l.net.Next(); ok && at <= now {
			l.emit(now)
		}
	}
	return nil
}

// admit hands a packet to the links, in as many parts as they want.
func (l *loop) admit(now int64, from int, b []byte) {
	s, ok := examine(b)
	to, known := l.site[s.to]
	if !ok || !known || to == from {
		l.lost[from].Unknown++
		return
	}
	if s.segments == 1 {
		if s.segment > 0 { // a big packet that is not
			b[1], b[4], b[5] = gsoNone, 0, 0
		}
		l.admitPart(now, from, to, b, s, 0, 1)
		return
	}
	step := max(1, l.net.Whole(from, to)/(s.segment+s.headers))
	for first := 0; first < s.segments; first += step {
		l.admitPart(now, from, to, b, s, first, min(first+step, s.segments))
	}
}

func (l *loop) admitPart(now int64, from, to int, b []byte, s shape, first, last int) {
	whole := last-first == s.segments
	bytes := len(b)
	if !whole {
		bytes = partBytes(b, s, first, last)
	}
	ref, slot, ok := l.arena.take(bytes)
	if !ok {
		l.lost[from].Memory++
		return
	}
	if whole {
		copy(slot, b)
	} else {
		part(slot, b, s, first, last)
	}
	wire := bytes - headerSize + (last-first-1)*s.headers
	l.arena.keep(ref, l.net.Admit(now, link.Packet{From: from, To: to, Bytes: wire, Segments: last - first, Ref: ref}))
}

// emit writes what is due, and returns the time after it.
func (l *loop) emit(now int64) int64 {
	for {
		out, ok := l.net.Pop(now + early)
		if !ok {
			return now
		}
		if out.Fate == link.Arrived {
			now = l.now()
			l.late.Add(time.Duration(now - out.At))
			l.send(out)
		}
		l.arena.drop(out.Ref)
	}
}

func (l *loop) send(out link.Out) {
	b := l.arena.bytes(out.Ref)
	if out.Corrupt || out.Garble {
		b = l.altered[:copy(l.altered, b)]
		if s, _ := examine(b); out.Corrupt {
			corrupt(b, s, out.Chance)
		} else {
			garble(b, s, out.Chance)
		}
	}
	for {
		switch errno := write(l.tuns[out.To].fd, b); errno {
		case 0:
			return
		case unix.EINTR:
		default:
			// The kernel may refuse what was corrupted.
			if !out.Corrupt {
				l.lost[out.To].Unwanted++
			}
			return
		}
	}
}

// report copies the counters.
func (l *loop) report(s *wan.Stats) {
	s.Late, s.Wait, s.Held = l.late, l.waited, l.arena.held()
	n := len(l.names)
	for i, c := range l.net.Counts() {
		if i/n == i%n {
			continue
		}
		s.Pairs[wan.Pair{From: l.names[i/n], To: l.names[i%n]}] = wan.Counters{
			Packets: c.Packets, Bytes: c.Bytes, Delivered: c.Delivered, Through: c.Through,
			Loss: c.Fates[link.Lost], Queue: c.Fates[link.QueueFull], UpQueue: c.Fates[link.UplinkFull], DownQueue: c.Fates[link.DownlinkFull],
			Cut: c.Fates[link.Cut], Off: c.Fates[link.Off],
			Doubled: c.Doubled, Reordered: c.Reordered, Corrupted: c.Corrupted, Garbled: c.Garbled,
		}
	}
}
