package wire_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestLimits_Kept(t *testing.T) {
	a, b := wiretest.Pair(t, func(i int, o *wire.Options) {
		l := &o.Limits.Class[wire.Operation]
		l.Header, l.Body = 1000, 100_000
		if i == 1 {
			l.Calls, l.Held, l.Header, l.Body = 4, 150_000, 2000, 200_000
			o.Limits.Workers, o.Limits.Backlog = 1, 1
		}
	})
	ctx := within(t, 10*time.Second)
	id := b.KeyID()
	serveEcho(b)
	requests := make(chan *wire.Request, 10)
	b.Inline(hanging, func(r *wire.Request) { requests <- r })
	next := func() *wire.Request {
		select {
		case r := <-requests:
			return r
		case <-ctx.Done():
			t.Fatal("no request arrives")
			return nil
		}
	}
	overloaded := func(err error) bool { return fault.Is(err, fault.Overloaded) && wire.Answered(err) }

	t.Run("a message too large to send", func(t *testing.T) {
		big := &pb.ReadHeader{Principal: &pb.Principal{Groups: make([]uint32, 5000)}}
		for i := range big.Principal.Groups {
			big.Principal.Groups[i] = 1 << 30
		}
		if _, err := a.Call(ctx, id, wire.Operation, echo, big, nil, nil); !fault.Is(err, fault.TooLarge) || wire.Answered(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a body too large to send", func(t *testing.T) {
		if _, err := a.Call(ctx, id, wire.Operation, echo, nil, [][]byte{make([]byte, 100_001)}, nil); !fault.Is(err, fault.TooLarge) {
			t.Errorf("call: got %v", err)
		}
		if err := a.Send(id, wire.Operation, note, make([]byte, 100_001)); !fault.Is(err, fault.TooLarge) {
			t.Errorf("send: got %v", err)
		}
	})
	t.Run("a frame larger than the receiver takes ends the connection", func(t *testing.T) {
		b.Inline(failing, func(r *wire.Request) { r.Reply(nil, make([]byte, 150_000)) }) // b may send it, a may not take it
		if _, err := a.Call(ctx, id, wire.Operation, failing, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bodies held", func(t *testing.T) {
		first := make(chan error, 1)
		go func() {
			_, err := a.Call(ctx, id, wire.Operation, hanging, nil, [][]byte{make([]byte, 100_000)}, nil)
			first <- err
		}()
		r := next()
		if _, err := a.Call(ctx, id, wire.Operation, echo, nil, [][]byte{make([]byte, 60_000)}, nil); !overloaded(err) {
			t.Errorf("second body: got %v", err)
		}
		r.Reply(nil)
		if err := <-first; err != nil {
			t.Errorf("first body: %v", err)
		}
		if _, err := a.Call(ctx, id, wire.Operation, echo, nil, [][]byte{make([]byte, 60_000)}, nil); err != nil {
			t.Errorf("after the first: %v", err)
		}
	})
	t.Run("requests under way", func(t *testing.T) {
		ended := make(chan error, 5)
		for range 5 {
			go func() {
				_, err := a.Call(ctx, id, wire.Operation, hanging, nil, nil, nil)
				ended <- err
			}()
		}
		if err := <-ended; !overloaded(err) {
			t.Errorf("the fifth: got %v", err)
		}
		for range 4 {
			r := next()
			r.Reply(nil)
			r.Reply(nil) // does nothing
		}
		for range 4 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("requests waiting for a worker", func(t *testing.T) {
		release := make(chan struct{})
		b.Spawn(hanging, func(_ context.Context, r *wire.Request) { <-release; r.Reply(nil) })
		ended := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := a.Call(ctx, id, wire.Operation, hanging, nil, nil, nil)
				ended <- err
			}()
		}
		if err := <-ended; !overloaded(err) {
			t.Errorf("the third: got %v", err)
		}
		close(release)
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestQueue_FullRefusesMessagesAndDelaysCalls(t *testing.T) {
	a, b := wiretest.Pair(t, func(_ int, o *wire.Options) {
		o.Limits.Class[wire.Chunk].Body, o.Limits.Class[wire.Chunk].Queue = 1<<20, 1<<20
	})
	block := make(chan struct{})
	unblock := sync.OnceFunc(func() { close(block) })
	defer unblock()
	b.Message(note, func(m wire.Message) { m.Payload.Release(); <-block }) // wrong, on purpose: it stops reading
	serveEcho(b)
	id := b.KeyID()
	wiretest.Wait(t, "a connection", func() bool { return a.Send(id, wire.Chunk, note, nil) == nil })
	payload := make([]byte, 512<<10)
	var err error
	for range 100 { // what the sockets take, and then the queue
		if err = a.Send(id, wire.Chunk, note, payload); err != nil {
			break
		}
		if a.Queued(id, wire.Chunk) > 2<<20 {
			t.Fatalf("%d bytes are queued", a.Queued(id, wire.Chunk))
		}
		time.Sleep(2 * time.Millisecond)
	}
	if !fault.Is(err, fault.Overloaded) {
		t.Fatalf("got %v, want overloaded", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Call(ctx, id, wire.Chunk, echo, nil, nil, nil); !fault.Is(err, fault.TimedOut) {
		t.Errorf("a call behind a full queue: got %v", err)
	}
	if _, err := a.Call(within(t, 5*time.Second), id, wire.Beacon, echo, nil, nil, nil); err != nil {
		t.Errorf("another class: %v", err)
	}
	unblock()
	if _, err := a.Call(within(t, 10*time.Second), id, wire.Chunk, echo, nil, nil, nil); err != nil {
		t.Errorf("once it drains: %v", err)
	}
}

func TestReplyOwned_ReleasesBodiesOnce(t *testing.T) {
	t.Run("TCP", func(t *testing.T) { testBodiesAreGivenBack(t) })
	t.Run("Unix sockets", func(t *testing.T) { testBodiesAreGivenBack(t, wiretest.Local(t)) })
}

func testBodiesAreGivenBack(t *testing.T, options ...wiretest.Option) {
	t.Helper()
	a, b := wiretest.Pair(t, options...)
	var arrived, given atomic.Int32
	b.Inline(echo, func(r *wire.Request) {
		arrived.Add(1)
		r.ReplyOwned(func() { given.Add(1) }, nil, pattern(300_000, 1))
	})
	ctx := within(t, time.Minute)
	call := func() error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := a.Call(ctx, b.KeyID(), wire.Chunk, echo, nil, nil, nil)
		return err
	}
	for range 10 {
		for range 4 {
			_ = call() // lost ones count too
		}
		go b.Disconnect(a.KeyID())
		_ = call()
		wiretest.Wait(t, "the next connection", func() bool { return call() == nil })
	}
	// Calls that never arrived gave nothing; all that did give back once.
	last := int32(-1)
	wiretest.Wait(t, "bodies to be given back", func() bool {
		g := given.Load()
		settled := g == last && g >= arrived.Load()
		last = g
		return settled
	})
	if g, n := given.Load(), arrived.Load(); g > n {
		t.Errorf("given back %d times for %d calls", g, n)
	}
}

func TestKey_SaveLoadSign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := wire.LoadKey(path); !fault.Is(err, fault.NotFound) {
		t.Errorf("no key: got %v", err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("a key was made where one was only to be read: %v", err)
	}
	k, err := wire.MakeKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info.Mode(), err)
	}
	again, err := wire.MakeKey(path)
	if err != nil || again.KeyID() != k.KeyID() {
		t.Errorf("loading again: %v, %s and %s", err, again.KeyID(), k.KeyID())
	}
	if id, err := wire.PublicID(k.Public()); err != nil || id != k.KeyID() {
		t.Errorf("id of the public key: %s, %v", id, err)
	}
	signature, err := k.Sign([]byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Verify(k.Public(), []byte("data"), signature); err != nil {
		t.Error(err)
	}
	if err := wire.VerifyID(k.KeyID(), []byte("data"), signature); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"other data":        wire.Verify(k.Public(), []byte("date"), signature),
		"other key":         wire.Verify(wiretest.Key(t, 3).Public(), []byte("data"), signature),
		"no key":            wire.Verify([]byte("no"), []byte("data"), signature),
		"by ID, other data": wire.VerifyID(k.KeyID(), []byte("date"), signature),
		"other ID":          wire.VerifyID(wiretest.Key(t, 3).KeyID(), []byte("data"), signature),
		"no ID":             wire.VerifyID("no", []byte("data"), signature),
	} {
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.LoadKey(path); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a damaged key: got %v", err)
	}
}

func TestKey_RefusedIfOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file's mode says nothing on Windows")
	}
	path := filepath.Join(t.TempDir(), "key")
	if _, err := wire.MakeKey(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for name, load := range map[string]func(string) (wire.Key, error){"load": wire.LoadKey, "make": wire.MakeKey} {
			_, err := load(path)
			if !fault.Is(err, fault.Permission) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("%s with mode %o: got %v, want the file and the remedy", name, mode, err)
			}
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.LoadKey(path); err != nil {
		t.Errorf("root with a key that is its owner's alone: got %v", err)
	}
}

func TestOptions_SamplesAndStamps(t *testing.T) {
	type sample struct {
		rtt time.Duration
		at  *wire.Coordinate
	}
	samples := make(chan sample, 10)
	stamps := make(chan uint64, 10)
	m := wiretest.New(t, 2, func(i int, o *wire.Options) {
		o.HLC = func() uint64 { return uint64(1000 + i) }
		if i == 0 {
			o.OnSample = func(_ string, rtt time.Duration, at *wire.Coordinate) {
				if at != nil {
					c := *at
					at = &c
				}
				samples <- sample{rtt, at}
			}
			o.OnHLC = func(_ string, hlc uint64) { stamps <- hlc }
		}
	})
	a, b := m.Hosts[0], m.Hosts[1]
	b.Spawn(spawned, func(_ context.Context, r *wire.Request) {
		if r.HLC != 1000 {
			t.Errorf("the request's stamp is %d", r.HLC)
		}
		time.Sleep(200 * time.Millisecond)
		r.Reply(nil)
	})
	b.SetCoordinate(wire.Coordinate{Vector: [8]float32{1, -2}, Height: 3, Error: 0.5, Dimensions: 2})
	if _, err := a.Call(within(t, 5*time.Second), b.KeyID(), wire.Beacon, spawned, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	s := <-samples
	if s.rtt <= 0 || s.rtt > 150*time.Millisecond {
		t.Errorf("rtt %v includes the peer's own time", s.rtt)
	}
	if s.at == nil || *s.at != (wire.Coordinate{Vector: [8]float32{1, -2}, Height: 3, Error: 0.5, Dimensions: 2}) {
		t.Errorf("coordinate %v", s.at)
	}
	if got := <-stamps; got != 1001 {
		t.Errorf("stamp %d", got)
	}
}

func TestLimits_PeerThatTakesNoAnswersIsCut(t *testing.T) {
	a, b := wiretest.Pair(t, func(i int, o *wire.Options) {
		if i == 1 {
			o.Limits.Class[wire.Chunk].Body, o.Limits.Class[wire.Chunk].Queue = 1<<20, 2<<20
		}
	})
	block := make(chan struct{})
	defer close(block)
	a.Message(note, func(m wire.Message) { m.Payload.Release(); <-block }) // a stops reading
	var asked atomic.Int32
	body := pattern(1<<20, 1)
	b.Inline(echo, func(r *wire.Request) { asked.Add(1); r.Reply(nil, body) })
	id := b.KeyID()
	ctx := within(t, 10*time.Second)
	if _, err := a.Call(ctx, id, wire.Chunk, echo, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Send(a.KeyID(), wire.Chunk, note, nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1000)
	for range cap(ended) - 1 {
		if err := a.Start(id, wire.Chunk, echo, nil, nil, 0, func(r *wire.Answer) { r.Body.Release(); ended <- r.Err }); err != nil {
			break // cut already
		}
	}
	last, same := int32(0), 0
	wiretest.Wait(t, "refusals to stop the answers", func() bool {
		if n := b.Queued(a.KeyID(), wire.Chunk); n > 4<<20 {
			t.Fatalf("%d bytes of answers are queued", n)
		}
		if n := asked.Load(); n != last {
			last, same = n, 0
		}
		same++
		return same > 50 // a quarter of a second
	})
	if !b.Connected(a.KeyID(), wire.Chunk) {
		t.Error("the peer was cut, not refused")
	}
	if last < 3 || last > 100 {
		t.Errorf("%d of %d requests were answered to a peer that takes nothing", last, cap(ended))
	}
}
