package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/usage"
	"cartwheel.dev/node/tree"
)

// pastOf is what the nodes of a fleet say of what they store.
type pastOf struct {
	scrub *status.Scrub // nil: the nodes tell nothing of it
	disk  *status.Disk

	mu      sync.Mutex // guards the rest
	ordered []string   // scrubs: node and rate
	counted []string   // pages: node and slice
}

// tell adds to what a node says of itself.
func (p *pastOf) tell(s *status.Node) { s.Scrub, s.Disk, s.WaitingBytes = p.scrub, p.disk, 5 }

func (f *fleet) Scrub(_ context.Context, id ids.Node, rate int64) (uint64, error) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	f.past.ordered = append(f.past.ordered, fmt.Sprint(id, " ", rate))
	return 7, f.silent(id)
}

func (f *fleet) Space(_ context.Context, id ids.Node, slice ids.Slice, _ []byte) (usage.Told, error) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	f.past.counted = append(f.past.counted, fmt.Sprint(id, " ", slice))
	if slice == 3 {
		return usage.Told{}, fault.E(fault.Unreachable, "api_test.Space", "", "no word of it")
	}
	a := func(bytes uint64) tree.Amount { return tree.Amount{Count: 1, Bytes: bytes} }
	return usage.Told{Objects: 4, Stored: 1000, Usage: tree.Usage{Named: a(800), Repeated: 200, Older: a(300), Snapshots: a(100), Waiting: a(50), Deleted: a(70), Replaced: a(60)}}, f.silent(id)
}

func scrubbed() *status.Scrub {
	return &status.Scrub{PeriodNS: 14 * 24 * time.Hour, Round: 8, Running: true, Ordered: true, Phase: "chunks", DoneShare: 0.25, BeganAtNS: 1e18, EndedRound: 7, EndedAtNS: 1e18 - 1, TookNS: time.Hour,
		Last: status.ScrubCounts{ReadBytes: 9, Damaged: 2, Repaired: 1}, LostChunks: 1,
		Lost:      []status.LostChunk{{Chunk: "c1", Slices: []ids.Slice{2}, SinceNS: 1e18, Objects: []ids.Object{5}, Unasked: true}},
		Different: []status.DifferentState{{Slice: 3, Serial: 4, With: "n1", AtNS: 1e18, ActiveDiffers: true}}}
}

func TestScrub_ShowsWhatNodesFound(t *testing.T) {
	f := newFleet(t, 1)
	f.past.scrub = scrubbed()
	f.away.Store(new(ids.Node("n2")))
	l := get[view.List[view.Scrub]](f, "/scrub")
	if l.Total != 2 || l.Items[1].Node != "n2" || l.Items[1].Report != nil || len(l.Freshness.Unreachable) != 1 {
		t.Fatalf("got %+v, want n2 without a report", l)
	}
	r := l.Items[0].Report
	if r == nil || r.Round != 8 || !r.Running || !r.Ordered || r.Phase != "chunks" || r.DoneShare != 0.25 || r.BeganAt.UnixNano() != 1e18 || r.EndedRound != 7 || r.TookMS != 3_600_000 || r.PeriodMS != 14*24*3_600_000 {
		t.Fatalf("got %+v", r)
	}
	if r.Last.Damaged != 2 || r.Last.Repaired != 1 || r.LostChunks != 1 || len(r.Different) != 1 || r.Different[0].With != "n1" || !r.Different[0].ActiveDiffers {
		t.Errorf("got %+v", r)
	}
	if len(r.Lost) != 1 || r.Lost[0].Chunk != "c1" || len(r.Lost[0].Objects) != 1 || !r.Lost[0].Unasked {
		t.Errorf("an administrator got %+v, want the lost chunk", r.Lost)
	}
	w := f.request(http.MethodGet, "/api/v1/scrub", "operator", nil)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "c1") || !strings.Contains(w.Body.String(), `"lost_chunks":1`) {
		t.Errorf("an operator got %d %s, want the number alone", w.Code, w.Body)
	}
}

func TestScrub_IsOrderedAndRecorded(t *testing.T) {
	f := newFleet(t, 1)
	order := func(id, role string, body any, headers ...string) *httptest.ResponseRecorder {
		return f.request(http.MethodPost, "/api/v1/nodes/"+id+"/scrub", role, body, headers...)
	}
	for range 2 {
		w := order("n2", "administrator", map[string]any{"rate_bytes": 1 << 20}, "Idempotency-Key", "k")
		var b view.ScrubBegun
		if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil || w.Code != http.StatusOK || b.Node != "n2" || b.Round != 7 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	if w := order("n1", "administrator", map[string]any{}); w.Code != http.StatusOK {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if want := []string{"n2 1048576", "n2 1048576", "n1 0"}; !slices.Equal(f.past.ordered, want) {
		t.Errorf("got %q, want %q", f.past.ordered, want)
	}
	r := f.records("node.scrub")
	if len(r) != 2 || r[1].Who != "test" || r[1].Subject != "nodes/n2" || !strings.Contains(r[1].Detail, "1048576 bytes a second (from 192.0.2.1)") {
		t.Errorf("got %+v, want a record of each order", r)
	}
	f.away.Store(new(ids.Node("n2")))
	for _, test := range []struct {
		id, role string
		body     any
		match    string
		code     int
	}{
		{"none", "administrator", map[string]any{}, "", http.StatusNotFound},
		{"n2", "administrator", map[string]any{}, "", http.StatusBadGateway},
		{"n1", "administrator", map[string]any{"rate_bytes": -1}, "", http.StatusUnprocessableEntity},
		{"n1", "administrator", map[string]any{"rate_bytes": int64(1) << 41}, "", http.StatusUnprocessableEntity},
		{"n1", "administrator", map[string]any{}, `"9999"`, http.StatusPreconditionFailed},
		{"n1", "operator", map[string]any{}, "", http.StatusForbidden},
	} {
		if w := order(test.id, test.role, test.body, "If-Match", test.match); w.Code != test.code {
			t.Errorf("%s as %s with %v: got %d %s, want %d", test.id, test.role, test.body, w.Code, w.Body, test.code)
		}
	}
}

func TestSpace_ShowsDisksAndCountsSlices(t *testing.T) {
	f := newFleet(t, 3)
	f.past.disk = &status.Disk{JournalBytes: 1, MetadataBytes: 2, ChunkBytes: 100, LiveBytes: 70, RetainedBytes: 25, EmptyBytes: 3}
	s := get[view.Space](f, "/space")
	if len(s.Nodes) != 2 || s.Nodes[0].Disk == nil || s.Nodes[0].Disk.RetainedBytes != 25 || s.Nodes[0].Disk.WaitingBytes != 5 || s.Count != nil {
		t.Fatalf("got %+v", s)
	}
	if s.Sum.ChunkBytes != 200 || s.Sum.LiveBytes != 140 || s.Sum.WaitingBytes != 10 || s.Sum.EmptyBytes != 6 {
		t.Errorf("got %+v, want the sum of both", s.Sum)
	}
	if w := f.request(http.MethodPost, "/api/v1/space", "viewer", nil); w.Code != http.StatusForbidden {
		t.Errorf("counted by a viewer: got %d", w.Code)
	}
	if w := f.request(http.MethodPost, "/api/v1/slices/2/hand-over", "operator", map[string]string{"node": "n2"}); w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	deadline := time.Now().Add(10 * time.Second)
	for get[view.List[view.Slice]](f, "/slices?q=2").Items[0].Active != "n2" && time.Now().Before(deadline) {
		f.refresh()
	}
	f.away.Store(new(ids.Node("n1"))) // n2 is asked then
	if w := f.request(http.MethodPost, "/api/v1/space", "operator", nil); w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	for s.Count == nil && time.Now().Before(deadline) {
		s = get[view.Space](f, "/space")
	}
	c := s.Count
	if c == nil || s.Counting != nil || c.Slices != 3 || c.FailedTotal != 1 || c.Failed[0].Slice != 3 || !strings.Contains(c.Failed[0].Text, "no word of it") {
		t.Fatalf("got %+v, %+v; want that slice 3 failed", c, s.Counting)
	}
	if c.Objects != 8 || c.LiveBytes != 2000 || c.ChunkBytes != 1600 || c.SharedBytes != 400 || c.OlderBytes != 600 || c.SnapshotBytes != 200 || c.WaitingBytes != 100 || c.DeletedFiles.Bytes != 140 || c.OlderVersions.Count != 2 {
		t.Errorf("got %+v, want the sums of two slices", c)
	}
	// The answering node comes first, also where it is not the active. Slice 3 has one
	// up-to-date copy: the other one is not asked.
	if want := []string{"n1 1", "n2 1", "n1 2", "n2 2", "n1 3"}; !slices.Equal(f.past.counted, want) {
		t.Errorf("asked %q, want %q", f.past.counted, want)
	}
}
