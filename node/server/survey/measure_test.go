package survey

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

// world is a host whose peers are so far away; those of a negative distance never
// answer. It counts what was sent.
type world struct {
	fakeHost

	far  map[string]time.Duration
	sent chan string
}

func (w world) wait(ctx context.Context, peer string) error {
	w.sent <- peer
	far, known := w.far[peer]
	if !known {
		return fault.E(fault.Unreachable, "test", peer, "nobody is there")
	}
	if far < 0 {
		<-ctx.Done()
		return fault.Wrap(fault.TimedOut, "test", peer, ctx.Err())
	}
	time.Sleep(far)
	return nil
}

func (w world) Ping(ctx context.Context, peer string) (time.Duration, error) {
	began := time.Now()
	err := w.wait(ctx, peer)
	return time.Since(began), err
}

// Call has the node "other" measure a way that takes 70 ms to "b", and never ends
// to "dead".
func (w world) Call(ctx context.Context, peer string, _ wire.Class, m wire.Method, request proto.Message, _ [][]byte, answer proto.Message) (*wire.Buffer, error) {
	if err := w.wait(ctx, peer); err != nil {
		return nil, err
	}
	to := request.(*pb.NetRequest).Nodes[0]
	link := status.Link{To: ids.Node(to), ProbeNS: []time.Duration{70 * time.Millisecond}}
	if to == "dead" {
		link.ProbeNS, link.Error = nil, "it does not answer"
	}
	data, err := json.Marshal(status.Net{ID: "other", Links: []status.Link{link}})
	if m != method.Net || err != nil {
		return nil, fault.E(fault.NotSupported, "test", peer, "not that")
	}
	answer.(*pb.NetResponse).Net = data
	return nil, nil
}

func TestMeasure_EndsThoughANodeIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSurveyor(t, fakeRoster{}, &writer{})
		host := world{far: map[string]time.Duration{"b": 50 * time.Millisecond, "dead": -1, "other": 20 * time.Millisecond}, sent: make(chan string, 100)}
		s.o.Host = host
		for _, tt := range []struct {
			name string
			from ids.Node
			to   []ids.Node
			want map[ids.Node]time.Duration
			took time.Duration
			sent int
		}{
			{"one answers and one does not", "a", []ids.Node{"b", "dead"}, map[ids.Node]time.Duration{"b": 50 * time.Millisecond, "dead": 0}, measureTimeout, 2},
			{"so it is remembered", "a", []ids.Node{"b", "dead"}, map[ids.Node]time.Duration{"b": 50 * time.Millisecond, "dead": 0}, 0, 0},
			{"a node that cannot be reached", "a", []ids.Node{"b", "gone"}, map[ids.Node]time.Duration{"b": 50 * time.Millisecond, "gone": 0}, 0, 1},
			{"from another node", "other", []ids.Node{"b", "dead"}, map[ids.Node]time.Duration{"b": 70 * time.Millisecond, "dead": 0}, 20 * time.Millisecond, 2},
			{"from a node that does not answer", "dead", []ids.Node{"b", "c"}, map[ids.Node]time.Duration{}, measureTimeout, 2},
		} {
			began := time.Now()
			got := s.Measure(t.Context(), tt.from, tt.to)
			if took := time.Since(began); !maps.Equal(got, tt.want) || took != tt.took || len(host.sent) != tt.sent {
				t.Errorf("%s: got %v after %v and %d messages, want %v after %v and %d", tt.name, got, took, len(host.sent), tt.want, tt.took, tt.sent)
			}
			for len(host.sent) > 0 {
				<-host.sent
			}
		}
		time.Sleep(measureKept)
		if s.Measure(t.Context(), "a", []ids.Node{"b"}); len(host.sent) != 1 {
			t.Errorf("%d messages after a while, want to be measured anew", len(host.sent))
		}
	})
}

func TestMeasure_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSurveyor(t, fakeRoster{}, &writer{})
		s.o.Host = world{far: map[string]time.Duration{"dead": -1}, sent: make(chan string, 100)}
		ctx, cancel := context.WithTimeout(t.Context(), measureTimeout/4)
		defer cancel()
		began := time.Now()
		if got := s.Measure(ctx, "a", []ids.Node{"dead"}); len(got) != 0 || time.Since(began) != measureTimeout/4 {
			t.Errorf("got %v after %v, want nothing at the end of the context: it says nothing of the node", got, time.Since(began))
		}
	})
}
