// Package view has the types of the admin API's answers, as JSON shows them, and
// makes them from rows and from what nodes said. It is pure, and all of it may be
// called from anywhere.
package view

import (
	"fmt"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// Freshness says how much of an answer is known, and since when.
type Freshness struct {
	AsOfAt time.Time `json:"as_of_at" doc:"The age of the oldest live value in the answer."`
	// Unreachable nodes did not answer: of them only the last word is known.
	Unreachable []Unreachable `json:"unreachable" nullable:"false" doc:"Nodes that do not answer. Their values are the last known ones."`
	GeoConfig   GeoConfig     `json:"geo_config"`
}

// Unreachable is a node that did not answer.
type Unreachable struct {
	Node       ids.Node   `json:"node"`
	Site       ids.Site   `json:"site"`
	Reason     string     `json:"reason"`
	LastSeenAt *time.Time `json:"last_seen_at,omitempty" doc:"When it last answered this node; absent: never."`
}

// GeoConfig says how the answering node stands with the configuration store.
type GeoConfig struct {
	Reachable bool         `json:"reachable"`
	AwayMS    int64        `json:"away_ms,omitempty" doc:"For how long the store has not answered."`
	Revision  ids.Revision `json:"revision" doc:"Up to which change this node knows the configuration."`
}

// List is a page of a list.
type List[T any] struct {
	Items     []T          `json:"items" nullable:"false"`
	Next      string       `json:"next,omitempty" doc:"The cursor of the next page; absent: there is none."`
	Total     int          `json:"total" doc:"How many match in all."`
	Revision  ids.Revision `json:"revision"`
	Freshness Freshness    `json:"freshness"`
}

// None is the request of a route that takes no values, or an answer without any.
type None struct{}

// Answer is an answer with a body, and the row's revision as its ETag where it is of
// one row.
type Answer[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// One is the answer about one row of a revision.
func One[T any](r ids.Revision, body T) *Answer[T] { return &Answer[T]{ETag(r), body} }

// ETag is a revision as HTTP shows it.
func ETag(r ids.Revision) string { return fmt.Sprintf(`"%d"`, r) }

// ListOf is a whole list in one page.
func ListOf[T any](items []T, f Freshness) *Answer[List[T]] {
	return &Answer[List[T]]{Body: List[T]{Items: NotNil(items), Total: len(items), Revision: f.GeoConfig.Revision, Freshness: f}}
}

// NotNil returns a list that is [] in JSON where it has no items.
func NotNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Site is a place with its nodes.
type Site struct {
	Name          ids.Site     `json:"name"`
	Location      string       `json:"location,omitempty"`
	Nodes         []ids.Node   `json:"nodes" nullable:"false"`
	NodesUp       int          `json:"nodes_up"`
	SlicesActive  int          `json:"slices_active" doc:"Slices whose active stands here."`
	SlicesHome    int          `json:"slices_home" doc:"Slices whose home this is."`
	CapacityBytes int64        `json:"capacity_bytes"`
	UsedBytes     int64        `json:"used_bytes"`
	Revision      ids.Revision `json:"revision"`
}

// Node is a storage node: its row, and its own last word.
type Node struct {
	ID          ids.Node        `json:"id"`
	Site        ids.Site        `json:"site"`
	Addresses   []string        `json:"addresses" nullable:"false"`
	Incarnation ids.Incarnation `json:"incarnation"`
	Version     string          `json:"version,omitempty"`
	State       string          `json:"state" enum:"up,unreachable,never_started"`
	Draining    bool            `json:"draining" doc:"Its slices are leaving it."`
	Left        *Left           `json:"left,omitempty" doc:"What it still has; absent: it is not being drained."`
	Coordinate  Coordinate      `json:"coordinate"`
	Revision    ids.Revision    `json:"revision"`
	// Live is what the node last said of itself; absent: it never answered.
	Live *NodeLive `json:"live,omitempty"`
}

// NodeLive is what a node says of itself.
type NodeLive struct {
	AsOfAt        time.Time `json:"as_of_at"`
	UptimeMS      int64     `json:"uptime_ms"`
	CapacityBytes int64     `json:"capacity_bytes"`
	UsedBytes     int64     `json:"used_bytes"`
	FreeBytes     int64     `json:"free_bytes"`
	ReadOnly      bool      `json:"read_only" doc:"There is no space: reads go on."`
	SlicesActive  int       `json:"slices_active"`
	SlicesStandby int       `json:"slices_standby"`
	SlicesJunior  int       `json:"slices_junior"`
	Sessions      int       `json:"sessions"`
	ObjectLeases  int       `json:"object_leases"`
	GeoConfig     bool      `json:"geo_config_reachable"`
}

// Coordinate is a position from which round trips are predicted.
type Coordinate struct {
	VectorMS []float64 `json:"vector_ms" nullable:"false"`
	HeightMS float64   `json:"height_ms"`
	Error    float64   `json:"error" doc:"The relative error, 0 to 1."`
}

// Slice is a slice as its row has it.
type Slice struct {
	ID         ids.Slice    `json:"id"`
	State      string       `json:"state" enum:"protected,under_protected,unavailable"`
	Epoch      ids.Epoch    `json:"epoch"`
	Active     ids.Node     `json:"active"`
	ActiveSite ids.Site     `json:"active_site"`
	Members    []Member     `json:"members" nullable:"false"`
	Policy     Policy       `json:"policy"`
	Copies     int          `json:"copies" doc:"Members that are up to date."`
	Closed     bool         `json:"closed" doc:"It takes no new objects."`
	Revision   ids.Revision `json:"revision"`
}

// Member is a member of a slice.
type Member struct {
	Node   ids.Node `json:"node"`
	Site   ids.Site `json:"site"`
	State  string   `json:"state" enum:"normal,recovering,migrating,failed"`
	Active bool     `json:"active"`
}

// Policy is what a slice must satisfy.
type Policy struct {
	Home        ids.Site `json:"home"`
	Level       int      `json:"level" doc:"Copies."`
	Sites       int      `json:"sites" doc:"Different sites of the copies; 0: as many as there are."`
	Kind        string   `json:"kind" enum:"ordinary,write_once"`
	CoherenceMS int64    `json:"coherence_ms" doc:"How long standbys may lag; 0: not at all."`
}

// SliceDetail is a slice with what its active says and why its copies stand where
// they do.
type SliceDetail struct {
	Slice
	// Live is the active's word; absent: it is not known.
	Live *SliceLive `json:"live,omitempty"`
	// WhyHere has a reason for each copy.
	WhyHere   []Reason  `json:"why_here" nullable:"false"`
	Freshness Freshness `json:"freshness"`
}

// SliceLive is what a slice's active says of it.
type SliceLive struct {
	AsOfAt      time.Time  `json:"as_of_at"`
	Serving     bool       `json:"serving"`
	Why         string     `json:"why,omitempty" doc:"Why it does not serve."`
	Commit      ids.Serial `json:"commit"`
	Objects     uint64     `json:"objects"`
	StoredBytes *int64     `json:"stored_bytes,omitempty" doc:"What one copy stores; absent: not known."`
}

// Reason says why a copy is where it is.
type Reason struct {
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	Text string   `json:"text"`
}
