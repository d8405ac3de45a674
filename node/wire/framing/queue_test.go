package framing

import (
	"bytes"
	"slices"
	"testing"
)

// order reads what was written and names the frames by their numbers.
func order(t *testing.T, written []byte) []uint64 {
	t.Helper()
	var out []uint64
	for rest := written; len(rest) > 0; {
		var f Frame
		if err := f.Parse(rest, Limits{Header: 1 << 16, Body: 1 << 16}); err != nil {
			t.Fatalf("behind %v: %v", out, err)
		}
		out = append(out, f.ID)
		rest = rest[FixedSize+int(f.Header)+int(f.Body):]
	}
	return out
}

// put queues a frame as a connection does.
func put(t *testing.T, q *Queue, f Frame, body [][]byte, done func()) State {
	t.Helper()
	for _, part := range body {
		f.Body += uint32(len(part))
	}
	ahead := done == nil && f.Kind != Cancel && q.MayOvertake(body)
	arena, state := q.Begin(ahead, true)
	if state == Open {
		q.Commit(q.Append(ahead, f.Append(arena), body, done))
	}
	return state
}

// during calls a function before the write of that number, from 1.
type during struct {
	bytes.Buffer
	writes, at int
	do         func()
}

func (d *during) Write(b []byte) (int, error) {
	if d.writes++; d.writes == d.at {
		d.do()
	}
	return d.Buffer.Write(b)
}

func TestQueue_SmallFramesOvertakeLargeBodies(t *testing.T) {
	large := [][]byte{make([]byte, copyBody+1), []byte("between"), make([]byte, copyBody+1)}
	small := [][]byte{[]byte("small")}
	for name, tt := range map[string]struct {
		overtake    bool
		first, then []uint64
	}{
		// 6 comes while 1 is written: behind all of it, before the next large one.
		"overtaking": {true, []uint64{5, 1, 6, 2, 3, 4}, nil},
		"in order":   {false, []uint64{1, 2, 3, 4, 5}, []uint64{6}},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewQueue(1 << 20)
			q.Overtake = tt.overtake
			put := func(id uint64, k Kind, body [][]byte, done func()) {
				t.Helper()
				if got := put(t, q, Frame{Kind: k, ID: id}, body, done); got != Open {
					t.Fatalf("frame %d: the queue is %v", id, got)
				}
			}
			given := 0
			put(1, Call, large, nil)
			put(2, Call, large, nil)
			put(3, Answer, small, func() { given++ }) // its body is waited for: it does not overtake
			put(4, Cancel, nil, nil)                  // it must come behind the call that it cancels
			put(5, Call, small, nil)
			w := &during{at: 3, do: func() { put(6, Call, small, nil) }}
			b, _ := q.Take()
			if err := q.Write(b, w); err != nil {
				t.Fatal(err)
			}
			if got := order(t, w.Bytes()); !slices.Equal(got, tt.first) || given != 1 {
				t.Errorf("got %v, given back %d times; want %v, once", got, given, tt.first)
			}
			if q.IsEmpty() != (tt.then == nil) {
				t.Fatal("something else is left than should be")
			}
			if tt.then != nil {
				w.Reset()
				b, _ = q.Take()
				if err := q.Write(b, w); err != nil || !slices.Equal(order(t, w.Bytes()), tt.then) {
					t.Errorf("then got %v, %v; want %v", order(t, w.Bytes()), err, tt.then)
				}
			}
			if q.size != 0 {
				t.Errorf("%d bytes are left in the account", q.size)
			}
		})
	}
}

func TestQueue_FullHasRoomForSmallFrames(t *testing.T) {
	q := NewQueue(1 << 20)
	q.Overtake = true
	send := func(n int) State { return put(t, q, Frame{Kind: Call}, [][]byte{make([]byte, n)}, nil) }
	for send(copyBody+1) == Open {
	}
	n := 0
	for send(copyBody) == Open {
		n += copyBody
	}
	if n < aheadLimit-2*copyBody || n > aheadLimit+copyBody {
		t.Errorf("%d bytes of small frames were taken, want about %d", n, aheadLimit)
	}
}

// TestQueue_WriterSendsTheRestOfInlineWrites also if the queue was closed
// meanwhile.
func TestQueue_WriterSendsTheRestOfInlineWrites(t *testing.T) {
	for name, written := range map[string]int{"a part": 2, "nothing": 0, "all": 5} {
		t.Run(name, func(t *testing.T) {
			q := NewQueue(1 << 20)
			q.Inline, q.asleep = true, true
			given := 0
			arena, state := q.Begin(false, true)
			if state != Open {
				t.Fatalf("the queue is %v", state)
			}
			b := q.TryInline(q.Append(false, append(arena, "frame"...), nil, func() { given++ }))
			if b == nil {
				t.Fatal("there is no inline write")
			}
			q.Close()
			q.FinishInline(b, written)
			select {
			case <-q.wake:
			default:
				t.Error("the writer was not woken")
			}
			if _, ok := q.Take(); ok {
				t.Error("something is to be written to what is closed")
			}
			q.Drop()
			if given != 1 {
				t.Errorf("the body was released %d times, want once", given)
			}
		})
	}
}
