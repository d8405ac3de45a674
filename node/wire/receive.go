package wire

import (
	"bufio"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

// readBuffer holds many small frames. Bodies larger than its content are read past
// it, straight to where they stay.
const readBuffer = 64 << 10

// localReadBuffer is smaller, so that less of a large body is copied. Without
// encryption nothing else copies it.
const localReadBuffer = 16 << 10

// run reads frames until the connection ends.
func (l *link) run() {
	size := readBuffer
	if l.isLocal() {
		size = localReadBuffer
	}
	var err error
	if !l.isAdmitted() {
		few := bufio.NewReaderSize(l.conn, strangerBuffer)
		for err == nil && !l.admission.admitted.Load() {
			err = l.readFrame(few)
		}
		r := bufio.NewReaderSize(few, size) // what few holds comes first, then nothing is copied twice
		for err == nil {
			err = l.readFrame(r)
		}
	} else {
		r := bufio.NewReaderSize(l.conn, size)
		for err == nil {
			err = l.readFrame(r)
		}
	}
	l.fail(&fault.Error{Kind: fault.Unreachable, Op: opLink, Subject: l.peer.id, Public: "the connection ended", Cause: err})
}

func (l *link) readFrame(r *bufio.Reader) error {
	var f framing.Frame
	b, err := r.Peek(framing.FixedSize)
	if err != nil {
		return err
	}
	if !l.welcome.Load() {
		l.welcome.Store(true)
	}
	if err := f.Parse(b, l.limits.frame()); err != nil {
		return err
	}
	size := framing.FixedSize + f.CoordinateSize()
	if size > framing.FixedSize {
		if b, err = r.Peek(size); err != nil {
			return err
		}
		f.ParseCoordinate(b[framing.FixedSize:])
	}
	if !l.isAdmitted() {
		return l.readStranger(r, &f, size)
	}
	if _, err := r.Discard(size); err != nil {
		return err
	}
	if f.Flags&framing.IsWide != 0 && !l.readsWide.Load() {
		l.readsWide.Store(true)
	}
	if f.HLC != 0 && l.host.options.OnHLC != nil {
		l.host.options.OnHLC(l.peer.id, f.HLC)
	}
	if f.Kind != framing.Heartbeat {
		l.traffic.Add(1)
	}
	if f.IsStamped() {
		l.measured(l.sampler.read(l.host.now(), &f), &f)
	}
	switch f.Kind {
	case framing.Call:
		return l.readCall(r, &f)
	case framing.Answer, framing.Error:
		return l.readAnswer(r, &f)
	case framing.OneWay:
		return l.readMessage(r, &f)
	case framing.Cancel:
		l.canceled(f.ID)
	}
	return nil
}

func (l *link) readMessage(r *bufio.Reader, f *framing.Frame) error {
	m := l.host.methods[f.Method].Load()
	if m == nil || m.message == nil {
		return l.reader.discard(r, int(f.Header)+int(f.Body))
	}
	header, err := l.reader.readBuffer(r, f.Header)
	if err != nil {
		return err
	}
	header.Release() // one-way frames have none
	body, err := l.reader.readPayload(r, f.Body)
	if err != nil {
		return err
	}
	m.message(Message{Peer: l.peer.id, Class: l.class, Method: f.Method, HLC: f.HLC, Payload: body})
	return nil
}
