package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

const (
	helloMethod = 1
	otherMethod = 2
	noteMethod  = 3
)

// doorkeeper is a host that admits who said hello.
type doorkeeper struct {
	*Host
	users   atomic.Pointer[map[string]string] // by peer: the account
	served  atomic.Int32
	noted   atomic.Int32
	stamped atomic.Int32
}

func keepDoor(t *testing.T, change func(*Options)) *doorkeeper {
	t.Helper()
	d := &doorkeeper{}
	d.users.Store(&map[string]string{})
	key, err := NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	times := DefaultTimes()
	times.Hello = time.Hour // where a test does not wait for it
	o := Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Times: times, Limits: DefaultLimits(), Hello: helloMethod,
		Admit: func(peer string) (string, bool) { user, ok := (*d.users.Load())[peer]; return user, ok },
		OnHLC: func(string, uint64) { d.stamped.Add(1) }}
	if change != nil {
		change(&o)
	}
	if d.Host, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Host.Close(); err != nil {
			t.Error(err)
		}
	})
	d.Inline(helloMethod, func(r *Request) { d.greet(r.Peer, string(r.Header())); r.Reply(nil) })
	d.Inline(otherMethod, func(r *Request) { d.served.Add(1); r.Reply(nil) })
	d.Message(noteMethod, func(m Message) { d.noted.Add(1); m.Payload.Release() })
	if err := d.Listen(); err != nil {
		t.Fatal(err)
	}
	return d
}

// greet lets a peer in; an empty name puts it out.
func (d *doorkeeper) greet(peer, name string) {
	users := map[string]string{}
	for k, v := range *d.users.Load() {
		users[k] = v
	}
	if users[peer] = name; name == "" {
		delete(users, peer)
	}
	d.users.Store(&users)
}

// rawPeer writes frames byte by byte after a proper handshake.
type rawPeer struct {
	t *testing.T
	c libp2p.CapableConn
	d *directConn
	*Host
}

func knock(t *testing.T, at *Host, class Class) *rawPeer { return knockAs(t, testHost(t), at, class) }

func knockAs(t *testing.T, as, at *Host, class Class) *rawPeer {
	t.Helper()
	p := &rawPeer{t: t, Host: as}
	c, err := as.transport.connect(t.Context(), ma.StringCast(at.Addresses()[0]), at.options.Key.id, direct(class))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if p.c = c; !c.As(&p.d) {
		t.Fatal("not a connection of this package")
	}
	return p
}

func (p *rawPeer) send(f framing.Frame, content []byte) error {
	_, err := p.d.Write(append(f.Append(nil), content...))
	return err
}

// trickle sends bytes one by one, so that the connection is never silent, until
// they are sent, the host hangs up or stop is called.
func (p *rawPeer) trickle(content []byte) (stop func()) {
	ctx, end := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for _, b := range content {
			if _, err := p.d.Write([]byte{b}); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { end(); <-done }
}

// hello sends a call of the hello method with a name.
func (p *rawPeer) hello(name string) {
	if err := p.send(framing.Frame{Kind: framing.Call, Method: helloMethod, Header: uint32(len(name)), ID: 77}, []byte(name)); err != nil {
		p.t.Error(err)
	}
}

// next reads frames until one is no heartbeat; an error: the host hung up.
func (p *rawPeer) next() (f framing.Frame, header []byte, err error) {
	if err = p.d.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return
	}
	for {
		var head [framing.FixedSize]byte
		if _, err = io.ReadFull(p.d, head[:]); err != nil {
			return
		}
		f.Kind, f.Header, f.Body = framing.Kind(head[0]), binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
		f.ID = binary.LittleEndian.Uint64(head[16:])
		header = make([]byte, f.Header+f.Body)
		if _, err = io.ReadFull(p.d, header); err != nil || f.Kind != framing.Heartbeat {
			return
		}
	}
}

func (p *rawPeer) cut(why string) {
	p.t.Helper()
	for {
		if _, _, err := p.next(); err != nil {
			if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
				p.t.Errorf("%s: the connection stays", why)
			}
			return
		}
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func (d *doorkeeper) untouched(t *testing.T) {
	t.Helper()
	if d.served.Load() != 0 || d.noted.Load() != 0 || d.stamped.Load() != 0 {
		t.Errorf("a stranger was served %d times, heard %d times, and its clock looked at %d times", d.served.Load(), d.noted.Load(), d.stamped.Load())
	}
}

func TestStranger_RefusedUnread(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(p *rawPeer) error
	}{
		{"a large body announced, and no more", func(p *rawPeer) error {
			return p.send(framing.Frame{Kind: framing.Call, Method: otherMethod, Body: 8 << 20, ID: 1}, nil)
		}},
		{"a large hello announced, and no more", func(p *rawPeer) error {
			return p.send(framing.Frame{Kind: framing.Call, Method: helloMethod, Header: 4 << 20, ID: 1}, nil)
		}},
		{"a large one-way frame announced", func(p *rawPeer) error {
			return p.send(framing.Frame{Kind: framing.OneWay, Method: noteMethod, Body: 8 << 20}, nil)
		}},
		{"heartbeats with a clock far ahead", func(p *rawPeer) error {
			for range 1000 {
				if p.send(framing.Frame{Kind: framing.Heartbeat, HLC: 1 << 62}, nil) != nil {
					break // cut
				}
			}
			return nil
		}},
		{"small calls and one-way frames, without reading", func(p *rawPeer) error {
			for i := range uint64(1000) {
				if p.send(framing.Frame{Kind: framing.Call, Method: otherMethod, ID: i}, nil) != nil || p.send(framing.Frame{Kind: framing.OneWay, Method: noteMethod}, nil) != nil {
					break // cut
				}
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := keepDoor(t, nil)
			p := knock(t, d.Host, Operation)
			if err := test.do(p); err != nil {
				t.Fatal(err)
			}
			p.cut(test.name)
			d.untouched(t)
			eventually(t, "its place to be free", func() bool { return d.Strangers() == 0 })
		})
	}
}

func TestStranger_CutWithoutHello(t *testing.T) {
	for _, class := range []Class{Beacon, Operation, Chunk} {
		d := keepDoor(t, func(o *Options) { o.Times.Hello = 300 * time.Millisecond })
		p := knock(t, d.Host, class)
		stop := p.trickle((&framing.Frame{Kind: framing.Call, Method: helloMethod, ID: 1}).Append(nil))
		p.cut(class.String())
		stop()
		d.untouched(t)
	}
}

func TestHello_AdmitsAllConnections(t *testing.T) {
	d := keepDoor(t, nil)
	as := testHost(t)
	p, chunks := knockAs(t, as, d.Host, Operation), knockAs(t, as, d.Host, Chunk)
	if err := p.send(framing.Frame{Kind: framing.Call, Method: otherMethod, ID: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if f, header, err := p.next(); err != nil || f.Kind != framing.Error || f.ID != 5 || framing.ParseFault(header, "").Kind != fault.Unauthorized {
		t.Errorf("a call before hello: got %+v, %v; want unauthorized", f, err)
	}
	d.untouched(t)
	p.hello("ann")
	if f, _, err := p.next(); err != nil || f.Kind != framing.Answer || f.ID != 77 {
		t.Errorf("hello: got %+v, %v", f, err)
	}
	for _, q := range []*rawPeer{p, chunks} {
		if err := q.send(framing.Frame{Kind: framing.Call, Method: otherMethod, Header: 1 << 20, ID: 6, HLC: 5}, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if f, _, err := q.next(); err != nil || f.Kind != framing.Answer || f.ID != 6 {
			t.Errorf("a large call after hello: got %+v, %v", f, err)
		}
	}
	if d.served.Load() != 2 || d.stamped.Load() != 2 {
		t.Errorf("served %d, and %d stamps seen; want 2 and 2", d.served.Load(), d.stamped.Load())
	}
	eventually(t, "the places to be free", func() bool { return d.Strangers() == 0 })
}

func TestRecheck_CutsPeersNoLongerAdmitted(t *testing.T) {
	d := keepDoor(t, nil)
	as, staying := testHost(t), knock(t, d.Host, Operation)
	p, chunks := knockAs(t, as, d.Host, Operation), knockAs(t, as, d.Host, Chunk)
	for _, q := range []*rawPeer{p, staying} {
		q.hello("ann")
		if _, _, err := q.next(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both to be admitted", func() bool { return d.Strangers() == 0 })
	d.greet(as.id, "")
	d.Recheck()
	p.cut("operations")
	chunks.cut("chunks")
	staying.hello("ann")
	if _, _, err := staying.next(); err != nil {
		t.Errorf("another peer was cut: %v", err)
	}
}

func TestReader_CutsFramesThatTrickle(t *testing.T) {
	d := keepDoor(t, func(o *Options) { o.Times.Frame = 200 * time.Millisecond })
	p := knock(t, d.Host, Operation)
	p.hello("ann")
	if _, _, err := p.next(); err != nil {
		t.Fatal(err)
	}
	if err := p.send(framing.Frame{Kind: framing.Call, Method: otherMethod, Body: 1000, ID: 1}, nil); err != nil {
		t.Fatal(err)
	}
	stop := p.trickle(make([]byte, 999))
	p.cut("a frame that does not end")
	stop()
	if d.served.Load() != 0 {
		t.Error("it was served")
	}
}

// answered reads the answer to a call: an error of a kind, or none.
func (p *rawPeer) answered(id uint64, want fault.Kind) {
	p.t.Helper()
	f, header, err := p.next()
	got := fault.None
	if err == nil && f.Kind == framing.Error {
		got = framing.ParseFault(header, "").Kind
	}
	if err != nil || f.ID != id || got != want {
		p.t.Errorf("call %d: got %+v, %v, %v; want %v", id, f, got, err, want)
	}
}

// blockUntil is a handler that answers once the channel is closed.
func blockUntil(release <-chan struct{}) func(context.Context, *Request) {
	return func(_ context.Context, r *Request) {
		<-release
		r.Reply(nil)
	}
}
