package view

import (
	"time"

	"cartwheel.dev/geo-config/ids"
)

// Overview is the cluster on one page.
type Overview struct {
	Cluster  ids.Cluster `json:"cluster"`
	Healthy  bool        `json:"healthy"`
	Sentence string      `json:"sentence" doc:"How the cluster is, in words."`
	Causes   []Cause     `json:"causes" nullable:"false" doc:"What is wrong, the worst first."`
	Counts   Counts      `json:"counts"`
	Capacity Capacity    `json:"capacity"`
	Feature  Feature     `json:"feature"`
	Versions []Version   `json:"versions" nullable:"false" doc:"What the nodes that answer run; more than one while they are being updated."`
	// Served names the node that answered.
	Served    Served       `json:"served_by"`
	Revision  ids.Revision `json:"revision"`
	Freshness Freshness    `json:"freshness"`
}

// Feature is how new the nodes are by the features that they know.
type Feature struct {
	Level int `json:"level" doc:"The level that is switched on: the lowest that a node knows."`
	Known int `json:"known" doc:"The highest level that the answering node knows."`
}

// Version is a version with the nodes that run it.
type Version struct {
	Version string     `json:"version"`
	Nodes   []ids.Node `json:"nodes" nullable:"false"`
}

// Served is the node that answered.
type Served struct {
	Node    ids.Node `json:"node"`
	Site    ids.Site `json:"site"`
	Version string   `json:"version"`
}

// Cause is one thing that is wrong, or that an operator should know.
type Cause struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity" enum:"critical,warning"`
	Text     string `json:"text"`
	// Subject is what it is about, as a path of the API: nodes/ID, slices/7.
	Subject string `json:"subject,omitempty"`
}

// Counts are how many of each there are.
type Counts struct {
	Sites                int  `json:"sites" doc:"Sites at which nodes stand."`
	SitesUp              int  `json:"sites_up" doc:"Sites with a node that answers."`
	Nodes                int  `json:"nodes"`
	NodesUp              int  `json:"nodes_up"`
	Slices               int  `json:"slices"`
	SlicesProtected      int  `json:"slices_protected"`
	SlicesUnderProtected int  `json:"slices_under_protected"`
	SlicesUnavailable    int  `json:"slices_unavailable" doc:"Slices whose active does not answer."`
	Sessions             *int `json:"sessions,omitempty" doc:"Clients' sessions at all nodes that answer; absent: no node answered."`
}

// Capacity is the room of all nodes that ever answered.
type Capacity struct {
	CapacityBytes int64 `json:"capacity_bytes"`
	UsedBytes     int64 `json:"used_bytes"`
	FreeBytes     int64 `json:"free_bytes"`
	// Nodes is how many nodes the figures are of.
	Nodes int `json:"nodes"`
}

// Network is the distances between the nodes.
type Network struct {
	Nodes     []NetworkNode `json:"nodes" nullable:"false"`
	Links     []NetworkLink `json:"links" nullable:"false"`
	Freshness Freshness     `json:"freshness"`
}

// NetworkNode is a node with its position.
type NetworkNode struct {
	ID         ids.Node    `json:"id"`
	Site       ids.Site    `json:"site"`
	Reachable  bool        `json:"reachable"`
	Coordinate *Coordinate `json:"coordinate,omitempty"`
	AsOfAt     *time.Time  `json:"as_of_at,omitempty"`
}

// NetworkLink is the way from one node to another, as the first one measured it.
type NetworkLink struct {
	From     ids.Node `json:"from"`
	FromSite ids.Site `json:"from_site"`
	To       ids.Node `json:"to"`
	ToSite   ids.Site `json:"to_site"`
	Path     string   `json:"path" doc:"direct, local, via ID, or empty: there is no connection."`
	// MeasuredMS is smoothed; absent: it was never measured.
	MeasuredMS  *float64 `json:"measured_ms,omitempty"`
	LeastMS     *float64 `json:"least_ms,omitempty"`
	PredictedMS *float64 `json:"predicted_ms,omitempty" doc:"By coordinates; absent: not known."`
	AgeMS       *int64   `json:"age_ms,omitempty" doc:"The age of the newest measurement."`
}

// Probe says what to measure.
type Probe struct {
	From  ids.Node   `json:"from,omitempty" maxLength:"128" doc:"The node that measures; absent: the one that answers."`
	To    []ids.Node `json:"to,omitempty" maxItems:"64" doc:"The nodes that it measures; absent: all others."`
	Times int        `json:"times,omitempty" minimum:"1" maximum:"20" default:"5" doc:"Round trips to each."`
}

// Probed is what a node measured just now.
type Probed struct {
	From       ids.Node     `json:"from"`
	FromSite   ids.Site     `json:"from_site"`
	Links      []ProbedLink `json:"links" nullable:"false"`
	MeasuredAt time.Time    `json:"measured_at"`
}

// ProbedLink is a way with its new round trips.
type ProbedLink struct {
	NetworkLink
	RoundTripsMS []float64 `json:"round_trips_ms" nullable:"false" doc:"In the order in which they were measured."`
	Error        string    `json:"error,omitempty" doc:"Why there are fewer than asked for."`
}

// Activity is a record of the audit log.
type Activity struct {
	Number     uint64       `json:"number"`
	RecordedAt time.Time    `json:"recorded_at"`
	Who        string       `json:"who"`
	Action     string       `json:"action" doc:"As noun.verb, such as site.add."`
	Subject    string       `json:"subject"`
	Detail     string       `json:"detail,omitempty"`
	Revision   ids.Revision `json:"revision"`
}

// ActivityList is a page of the audit log.
type ActivityList struct {
	Items        []Activity   `json:"items" nullable:"false"`
	Next         string       `json:"next,omitempty" doc:"The cursor that goes on from here; absent: the log was searched to its end. A page with fewer items than asked for, or none, may have one."`
	SearchedToAt *time.Time   `json:"searched_to_at,omitempty" doc:"When the oldest record was made that was looked at; absent: there was none."`
	Revision     ids.Revision `json:"revision"`
	Freshness    Freshness    `json:"freshness"`
}

// Client is a client's session as a node knows it.
type Client struct {
	Node ids.Node `json:"node" doc:"The node that it is connected to."`
	Site ids.Site `json:"site" doc:"That node's site."`
	User ids.User `json:"user"`
	Name string   `json:"name" doc:"Its host and mount point, by its own word."`
	From string   `json:"from_site,omitempty" doc:"The site where it says that it stands."`
}

// Operation is work under way.
type Operation struct {
	Kind  string    `json:"kind" enum:"copy,catch_up"`
	Slice ids.Slice `json:"slice"`
	Node  ids.Node  `json:"node" doc:"The node that it makes or keeps up."`
	Site  ids.Site  `json:"site"`
	Text  string    `json:"text"`
	// TotalBytes is what the active's copy stores.
	TotalBytes *int64 `json:"total_bytes,omitempty" doc:"The size of the copy; absent: not known."`
	Behind     *int64 `json:"behind,omitempty" doc:"Operations that the node has not applied yet; absent: not known."`
}

// User is a key that may use the cluster.
type User struct {
	Name        ids.User     `json:"name"`
	Key         string       `json:"key"`
	UID         uint32       `json:"uid"`
	GIDs        []uint32     `json:"gids" nullable:"false"`
	TrustedHost bool         `json:"trusted_host" doc:"It acts as any uid."`
	Role        string       `json:"role" enum:"user,administrator"`
	Revision    ids.Revision `json:"revision"`
}

// Token adds one node at a site, once. Its secret is not kept.
type Token struct {
	Name      ids.User     `json:"name"`
	Site      ids.Site     `json:"site"`
	ExpiresAt time.Time    `json:"expires_at"`
	Expired   bool         `json:"expired"`
	Revision  ids.Revision `json:"revision"`
}

// Database is the configuration store.
type Database struct {
	Reachable   bool         `json:"reachable"`
	AwaySinceAt *time.Time   `json:"away_since_at,omitempty"`
	Name        string       `json:"name,omitempty" doc:"The kind of store; absent: not known yet."`
	SinglePoint *bool        `json:"single_point,omitempty" doc:"All changes wait while one process is away."`
	Durable     *bool        `json:"durable,omitempty" doc:"It keeps what it acknowledged over a loss of power."`
	Revision    ids.Revision `json:"revision"`
	AsOfAt      *time.Time   `json:"as_of_at,omitempty" doc:"When the store last told its properties."`
}

// Setting is a key of the answering node's configuration with its value.
type Setting struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Default bool   `json:"is_default"`
}

// Health says that the process answers, or that the node serves.
type Health struct {
	Status string `json:"status" enum:"ok"`
}
