package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// trio is three cores over a perfect network and perfect disks.
type trio struct {
	nodes map[ids.Node]*Node
	order []ids.Node
	now   Time
	done  int
}

func newTrio(tb testing.TB) *trio {
	tr := &trio{nodes: map[ids.Node]*Node{}, order: []ids.Node{"a", "b", "c"}, now: time.Hour}
	row := &geoconfig.SliceRow{ID: 1, Epoch: 1, Active: "a", Policy: geoconfig.Policy{Level: 3}}
	for _, id := range tr.order {
		row.Members = append(row.Members, geoconfig.Member{Node: id, State: geoconfig.Normal, Incarnation: 1})
	}
	for i, id := range tr.order {
		tr.nodes[id] = New(Config{Self: id, Incarnation: 1, Boot: uint64(i + 1), Start: tr.now})
		tr.nodes[id].Learn(tr.now, row)
	}
	tr.lead(tb)
	return tr
}

// lead lets 5 s pass, after which the active leads under everybody's promise.
func (tr *trio) lead(tb testing.TB) {
	for range 100 {
		tr.now += 50 * time.Millisecond
		for _, id := range tr.order {
			tr.nodes[id].Tick(tr.now)
		}
		tr.settle(tb)
	}
	if s, _ := tr.nodes["a"].Status(1); s.Role != RoleLeading || tr.nodes["a"].Until(1) <= tr.now {
		tb.Fatalf("the active is %v", s.Role)
	}
}

// settle carries everything out until nothing is left.
func (tr *trio) settle(tb testing.TB) {
	for busy := true; busy; {
		busy = false
		for _, id := range tr.order {
			n := tr.nodes[id]
			out := n.Flush(tr.now)
			if out.Empty() {
				continue
			}
			busy = true
			for _, o := range out.Messages {
				b := AppendMessage(nil, o.Message)
				m, _, err := DecodeMessage(b)
				if err != nil {
					tb.Fatal(err)
				}
				tr.nodes[o.To].Receive(tr.now, id, m)
			}
			tr.done += len(out.Replies)
			if k := len(out.Records); k > 0 {
				n.Persisted(tr.now, out.Records[k-1].Position)
			}
		}
	}
}

func TestPropose_AnswersAndApplies(t *testing.T) {
	tr := newTrio(t)
	n := tr.nodes["a"]
	serial, last := n.Next(1)
	n.Propose(tr.now, Proposal{Token: 1, Entry: Entry{Slice: 1, Serial: serial, Time: last + 1, Client: 9}})
	tr.settle(t)
	for k := uint64(1); k <= 2; k++ { // the second is a retry
		n.Propose(tr.now, Proposal{Token: 2, Entry: Entry{Slice: 1, Time: last + 1 + hlc.Time(k), Client: 9, Number: 1, Lowest: 1,
			Data: []byte("x"), Result: []byte{byte(k)}}})
		out := n.Flush(tr.now)
		if k == 2 && (len(out.Replies) != 1 || out.Replies[0].Result[0] != 1 || len(out.Records) != 0) {
			t.Errorf("the retry gave %+v, want the first result", out.Replies)
		}
		for _, r := range out.Records {
			n.Persisted(tr.now, r.Position)
		}
		for _, o := range out.Messages {
			tr.nodes[o.To].Receive(tr.now, "a", o.Message)
		}
		tr.settle(t)
	}
	n.Propose(tr.now, Proposal{Entry: Entry{Slice: 1, Time: last + 9, Client: 10, Number: 1, Lowest: 1}})
	if out := n.Flush(tr.now); len(out.Replies) != 1 || out.Replies[0].Kind.String() != "expired" {
		t.Errorf("an unregistered client got %+v", out.Replies)
	}
}

// BenchmarkOperation is one operation through all three cores, with the
// encoding and decoding of every message, 1 KiB of data each.
func BenchmarkOperation(b *testing.B) {
	for name, batch := range map[string]int{"alone": 1, "batch8": 8} {
		b.Run(name, func(b *testing.B) {
			tr := newTrio(b)
			n := tr.nodes["a"]
			data := make([]byte, 1<<10)
			_, last := n.Next(1)
			n.Propose(tr.now, Proposal{Entry: Entry{Slice: 1, Time: last + 1, Client: 9}})
			tr.settle(b)
			_, last = n.Next(1)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += batch {
				for k := range batch {
					number := uint64(i + k + 1)
					n.Propose(tr.now, Proposal{Entry: Entry{Slice: 1, Time: last + hlc.Time(number), Client: 9, Number: number, Lowest: number,
						Data: data, Result: data[:40]}})
				}
				tr.settle(b)
			}
			b.StopTimer()
			if tr.done < b.N {
				b.Fatalf("%d of %d answered", tr.done, b.N)
			}
		})
	}
}
