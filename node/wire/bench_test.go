package wire_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// benchPair makes two connected hosts that echo.
func benchPair(b *testing.B, options ...wiretest.Option) (from, to *wire.Host) {
	b.Helper()
	options = append(options, func(_ int, o *wire.Options) { o.Times = wire.DefaultTimes() })
	from, to = wiretest.Pair(b, options...)
	for _, h := range []*wire.Host{from, to} {
		serveEcho(h)
		h.Inline(failing, func(r *wire.Request) { r.Reply(nil) }) // takes a body, gives none
	}
	for _, c := range []wire.Class{wire.Beacon, wire.Operation, wire.Chunk} {
		if _, err := from.Call(context.Background(), to.KeyID(), c, echo, nil, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	return from, to
}

func benchCalls(b *testing.B, inFlight int, method wire.Method, options ...wiretest.Option) {
	from, to := benchPair(b, options...)
	id := to.KeyID()
	request := &pb.ReadHeader{Slice: 3, Epoch: 17, Session: 5, Client: 1 << 60}
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range inFlight {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var out pb.ReadHeader
			for left.Add(-1) >= 0 {
				if _, err := from.Call(context.Background(), id, wire.Operation, method, request, nil, &out); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkCall1(b *testing.B)         { benchCalls(b, 1, echo) }
func BenchmarkCall8(b *testing.B)         { benchCalls(b, 8, echo) }
func BenchmarkCall64(b *testing.B)        { benchCalls(b, 64, echo) }
func BenchmarkCall64Spawn(b *testing.B)   { benchCalls(b, 64, spawned) }
func BenchmarkChunkPut256K(b *testing.B)  { benchChunks(b, failing, 256<<10) }
func BenchmarkChunkBoth256K(b *testing.B) { benchChunks(b, echo, 256<<10) }
func BenchmarkChunkPut4M(b *testing.B)    { benchChunks(b, failing, 4<<20) }

// The same over Unix sockets.
func BenchmarkLocalCall1(b *testing.B)  { benchCalls(b, 1, echo, wiretest.Local(b)) }
func BenchmarkLocalCall8(b *testing.B)  { benchCalls(b, 8, echo, wiretest.Local(b)) }
func BenchmarkLocalCall64(b *testing.B) { benchCalls(b, 64, echo, wiretest.Local(b)) }
func BenchmarkLocalChunkPut256K(b *testing.B) {
	benchChunks(b, failing, 256<<10, wiretest.Local(b))
}
func BenchmarkLocalChunkBoth256K(b *testing.B) {
	benchChunks(b, echo, 256<<10, wiretest.Local(b))
}
func BenchmarkLocalChunkPut4M(b *testing.B) { benchChunks(b, failing, 4<<20, wiretest.Local(b)) }

// benchChunks counts the bytes of bodies one way; echo sends as many back.
func benchChunks(b *testing.B, method wire.Method, size int, options ...wiretest.Option) {
	from, to := benchPair(b, options...)
	id := to.KeyID()
	body := [][]byte{pattern(size, 1)}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for left.Add(-1) >= 0 {
				got, err := from.Call(context.Background(), id, wire.Chunk, method, nil, body, nil)
				if err != nil {
					b.Error(err)
					return
				}
				got.Release()
			}
		}()
	}
	wg.Wait()
}

func BenchmarkSend(b *testing.B) {
	from, to := benchPair(b)
	id := to.KeyID()
	var got atomic.Int64
	done := make(chan struct{})
	to.Message(note, func(m wire.Message) {
		m.Payload.Release()
		if got.Add(1) == int64(b.N) {
			close(done)
		}
	})
	payload := pattern(512, 0)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for from.Send(id, wire.Operation, note, payload) != nil {
			wiretest.Wait(b, "room", func() bool { return from.Queued(id, wire.Operation) < 1<<20 })
		}
	}
	<-done
}
