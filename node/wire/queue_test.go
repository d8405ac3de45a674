package wire

import (
	"bytes"
	"slices"
	"testing"
)

// order reads what was written and names the frames by their numbers.
func order(t *testing.T, l *link, written []byte) []uint64 {
	t.Helper()
	var out []uint64
	for rest := written; len(rest) > 0; {
		var f frame
		if err := f.parse(rest, l.limits); err != nil {
			t.Fatalf("behind %v: %v", out, err)
		}
		out = append(out, f.id)
		rest = rest[frameSize+int(f.header)+int(f.body):]
	}
	return out
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

func TestSmallFramesOvertakeLargeBodiesWhereTheyMay(t *testing.T) {
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
			l := bareLink(t)
			l.queue.overtake = tt.overtake
			put := func(id uint64, k kind, body [][]byte, done func()) {
				t.Helper()
				if r, err := l.send(&outgoing{frame: frame{kind: k, id: id}, body: body, done: done}, true); r != sendDone || err != nil {
					t.Fatalf("frame %d: %v, %v", id, r, err)
				}
			}
			given := 0
			put(1, kindCall, large, nil)
			put(2, kindCall, large, nil)
			put(3, kindAnswer, small, func() { given++ }) // lent: given back in its turn
			put(4, kindCancel, nil, nil)                  // it must come behind what it cancels
			put(5, kindCall, small, nil)
			w := &during{at: 3, do: func() { put(6, kindCall, small, nil) }}
			b, _ := l.queue.take()
			if err := l.queue.write(b, w); err != nil {
				t.Fatal(err)
			}
			if got := order(t, l, w.Bytes()); !slices.Equal(got, tt.first) || given != 1 {
				t.Errorf("got %v, given back %d times; want %v, once", got, given, tt.first)
			}
			if l.queue.empty() != (tt.then == nil) {
				t.Fatal("something else is left than should be")
			}
			if tt.then != nil {
				w.Reset()
				b, _ = l.queue.take()
				if err := l.queue.write(b, w); err != nil || !slices.Equal(order(t, l, w.Bytes()), tt.then) {
					t.Errorf("then got %v, %v; want %v", order(t, l, w.Bytes()), err, tt.then)
				}
			}
			if l.queue.size != 0 {
				t.Errorf("%d bytes are left in the account", l.queue.size)
			}
		})
	}
}

func TestAFullQueueHasRoomForSmallFramesUpToALimit(t *testing.T) {
	l := bareLink(t)
	l.queue.overtake = true
	send := func(n int) sendResult {
		r, err := l.send(&outgoing{frame: frame{kind: kindCall}, body: [][]byte{make([]byte, n)}}, true)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for send(copyBody+1) == sendDone {
	}
	n := 0
	for send(copyBody) == sendDone {
		n += copyBody
	}
	if n < aheadLimit-2*copyBody || n > aheadLimit+copyBody {
		t.Errorf("%d bytes of small frames were taken, want about %d", n, aheadLimit)
	}
}
