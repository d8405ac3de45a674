// Package events tells those who watch a cluster over the admin API what changed: a
// Hub keeps the newest events, and each stream reads them at its own pace. Its
// memory is bounded, and a stream that is too slow gets a gap. A Hub is safe for
// concurrent use.
package events

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

const (
	// keptEvents is how many events a stream can resume over. One that missed more
	// gets a gap.
	keptEvents = 1024
	// maxKeys bounds the keys in one event. A change of more names the tables only.
	maxKeys = 200
	// heartbeat is how long a stream stays silent at most.
	heartbeat = 15 * time.Second
)

// RevisionEvent says that rows changed.
type RevisionEvent struct {
	Revision ids.Revision `json:"revision"`
	Tables   []string     `json:"tables" nullable:"false" doc:"The tables with a change."`
	Keys     []string     `json:"keys" nullable:"false" doc:"The rows that changed, as slices/7; empty where there are too many."`
	Complete bool         `json:"complete" doc:"Whether keys has all rows that changed."`
}

// AuditEvent says that the audit log may have new records.
type AuditEvent struct {
	Revision ids.Revision `json:"revision"`
}

// StatusEvent says that the cluster is in another state than before.
type StatusEvent struct {
	Healthy     bool       `json:"healthy"`
	Sentence    string     `json:"sentence"`
	Unreachable []ids.Node `json:"unreachable" nullable:"false"`
	GeoConfig   bool       `json:"geo_config_reachable"`
	AsOfAt      time.Time  `json:"as_of_at"`
}

// same reports whether nothing that people see is different.
func (e *StatusEvent) same(o *StatusEvent) bool {
	return e.Healthy == o.Healthy && e.Sentence == o.Sentence && fmt.Sprint(e.Unreachable) == fmt.Sprint(o.Unreachable) && e.GeoConfig == o.GeoConfig
}

// GapEvent says that events are missing: read again what is shown.
type GapEvent struct {
	Revision ids.Revision `json:"revision"`
}

// event is one notice in the ring.
type event struct {
	number uint64
	name   string
	data   any
}

// Hub keeps the newest events and wakes the streams.
type Hub struct {
	// life tells the numbers of this process from those of an earlier one.
	life string

	mu      sync.Mutex // guards the rest
	ring    []event    // at most keptEvents, the oldest first
	next    uint64
	changed chan struct{} // closed and replaced at each event, and at close
	readers int
	closed  bool
	last    *StatusEvent
	seen    ids.Revision
}

// New returns a Hub without events.
func New() *Hub {
	return &Hub{life: strconv.FormatUint(rand.Uint64(), 36), next: 1, changed: make(chan struct{})}
}

// Revision tells of changed rows, and that the audit log may have grown: nearly
// every batch carries a record.
func (h *Hub) Revision(keys []geoconfig.RowKey, revision ids.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(keys) > 0 {
		h.addLocked("revision", revisionEvent(keys, revision))
	}
	if revision > h.seen {
		h.seen = revision
		h.addLocked("audit", AuditEvent{revision})
	}
}

func revisionEvent(keys []geoconfig.RowKey, revision ids.Revision) RevisionEvent {
	e := RevisionEvent{Revision: revision, Tables: []string{}, Keys: []string{}, Complete: len(keys) <= maxKeys}
	tables := map[string]bool{}
	for _, k := range keys {
		if name := k.Table.String(); !tables[name] {
			tables[name] = true
			e.Tables = append(e.Tables, name)
		}
		if e.Complete {
			e.Keys = append(e.Keys, k.String())
		}
	}
	return e
}

// Status tells how the cluster is, where that is news.
func (h *Hub) Status(e StatusEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && h.last.same(&e) {
		return
	}
	h.last = &e
	h.addLocked("status", e)
}

// addLocked keeps an event and wakes the streams. h.mu is held.
func (h *Hub) addLocked(name string, data any) {
	if len(h.ring) == keptEvents {
		h.ring = append(h.ring[:0], h.ring[1:]...)
	}
	h.ring = append(h.ring, event{h.next, name, data})
	h.next++
	close(h.changed)
	h.changed = make(chan struct{})
}

// name is an event's ID on the wire.
func (h *Hub) name(number uint64) string { return h.life + "-" + strconv.FormatUint(number, 10) }

// begin says from which number a stream goes on that names the last event which it
// had; empty: it begins. gap: events between are gone.
func (h *Hub) begin(lastID string) (from uint64, gap bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers++
	if lastID == "" {
		return h.next, false
	}
	life, number, _ := strings.Cut(lastID, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	oldest := h.next - uint64(len(h.ring))
	if life != h.life || err != nil || n+1 < oldest || n >= h.next {
		return h.next, true
	}
	return n + 1, false
}

// end tells that a stream is over.
func (h *Hub) end() {
	h.mu.Lock()
	h.readers--
	h.mu.Unlock()
}

// HasReaders reports whether anybody reads the events.
func (h *Hub) HasReaders() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers > 0
}

// since returns the events from a number on, and a channel that is closed at the
// next one. gap: the reader was too slow and some are gone. over: the hub closed.
func (h *Hub) since(from uint64) (events []event, changed <-chan struct{}, gap, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := h.next - uint64(len(h.ring))
	if from < oldest {
		return nil, h.changed, true, h.closed
	}
	return append(events, h.ring[from-oldest:]...), h.changed, false, h.closed
}

// newest is the number that the next event will have, and the revision up to which
// events tell of changes.
func (h *Hub) newest() (uint64, ids.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next, h.seen
}

// Close ends the streams.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.changed)
		h.changed = make(chan struct{})
	}
}
