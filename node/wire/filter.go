package wire

import (
	"sync"
	"time"

	"cartwheel.dev/node/wire/framing"
)

// Verdict is what happens to a frame that is about to be sent.
type Verdict struct {
	Drop  bool
	Delay time.Duration // frames keep their order within a connection
}

// Filter injects faults in tests. It sees every outgoing frame: answers with their
// call's method, heartbeats as method 0. It sees MethodDial before a dial, which
// Drop makes fail. For a relayed connection, peer is the relay at the end
// that chose the relay, and the other end asks no filter.
type Filter func(peer string, class Class, method Method) Verdict

// delays holds back the frames that a filter delays, in front of a queue.
type delays struct {
	queue *framing.Queue
	spawn func(func()) bool // starts a goroutine; false: the host is closed

	mu      sync.Mutex // guards below
	frames  []delayed
	running bool
	stopped bool
	wake    chan struct{} // closed by stop
}

type delayed struct {
	due     time.Time
	encoded []byte
}

// add queues an encoded frame after a while, behind those that are delayed
// already. False means that it cannot be sent any more.
func (d *delays) add(encoded []byte, delay time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	due := time.Now().Add(delay)
	if n := len(d.frames); n > 0 && d.frames[n-1].due.After(due) {
		due = d.frames[n-1].due
	}
	d.frames = append(d.frames, delayed{due, encoded})
	if d.running {
		return true
	}
	d.running = true
	if d.wake == nil {
		d.wake = make(chan struct{})
	}
	return d.spawn(d.release)
}

// release queues delayed frames when they are due, until none is left.
func (d *delays) release() {
	for {
		d.mu.Lock()
		if d.stopped || len(d.frames) == 0 {
			d.running = false
			d.mu.Unlock()
			return
		}
		first := d.frames[0]
		d.frames = d.frames[1:]
		wake := d.wake
		d.mu.Unlock()
		t := time.NewTimer(time.Until(first.due))
		select {
		case <-t.C:
		case <-wake:
			t.Stop()
			return
		}
		if arena, state := d.queue.Begin(false, false); state == framing.Open {
			d.queue.Commit(d.queue.Append(false, append(arena, first.encoded...), nil, nil))
		}
	}
}

// stop throws the delayed frames away.
func (d *delays) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.stopped = true
	if d.wake != nil {
		close(d.wake)
	}
}
