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

// Filter injects faults in tests. It sees every outgoing frame, answers with
// their call's method, heartbeats as method 0, and MethodDial before a dial,
// which Drop makes fail. For a relayed connection, peer is the relay at the end
// that chose the relay, and the other end asks no filter.
type Filter func(peer string, class Class, method Method) Verdict

// SetFilter installs f, or removes the filter when f is nil.
func (h *Host) SetFilter(f Filter) {
	if f == nil {
		h.filter.Store(nil)
		return
	}
	h.filter.Store(&f)
}

// filtered asks the filter about a frame.
func (l *link) filtered(f Filter, m Method) Verdict {
	switch {
	case !l.relayed:
		return f(l.peer.id, l.class, m)
	case l.via != "":
		return f(l.via, l.class, m)
	}
	return Verdict{}
}

// delays holds back the frames that a filter delays.
type delays struct {
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

// sendLater encodes the frame with its body and sends it after a while.
func (l *link) sendLater(o *outgoing, delay time.Duration) (sendResult, error) {
	l.stamp(&o.Frame)
	encoded, err := l.encode(nil, o)
	if err != nil {
		return sendBad, err
	}
	for _, part := range o.body {
		encoded = append(encoded, part...)
	}
	d := &l.delays
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return sendDead, nil
	}
	due := time.Now().Add(delay)
	if n := len(d.frames); n > 0 && d.frames[n-1].due.After(due) {
		due = d.frames[n-1].due
	}
	d.frames = append(d.frames, delayed{due, encoded})
	if !d.running {
		d.running = true
		if d.wake == nil {
			d.wake = make(chan struct{})
		}
		if !l.host.spawn(l.releaseDelayed) {
			return sendDead, nil
		}
	}
	o.finish()
	return sendDone, nil
}

// releaseDelayed queues delayed frames when they are due, until none is left.
func (l *link) releaseDelayed() {
	d := &l.delays
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
		if arena, state := l.queue.Begin(false, false); state == framing.Open {
			l.queue.Commit(l.queue.Append(false, append(arena, first.encoded...), nil, nil))
		}
	}
}

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
