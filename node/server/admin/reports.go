// Package admin answers the people who run a cluster: what a node knows of itself
// and of its slices, where an object is, and what administrators order. It shows
// what other parts know and has them do what is ordered. Each order is in the
// audit log before it is carried out. Reports and Orders are safe for concurrent
// use.
package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Loop is what reports ask of the node's loop.
type Loop interface {
	Ask(context.Context, func(*replica.Node, replica.Time)) error
	Published(ids.Slice) *operate.Published
	EachPublished(func(*operate.Published) bool)
}

// Roster is this node's copy of the configuration.
type Roster interface {
	Slice(ids.Slice) (geoconfig.SliceRow, bool)
	Slices() []geoconfig.SliceRow
	Node(ids.Node) (geoconfig.Node, bool)
	Nodes() []geoconfig.Node
}

// Store is the node's disk.
type Store interface {
	Usage() store.Usage
	Incarnation() ids.Incarnation
}

// Space says how much room the node has.
type Space interface {
	Capacity(store.Usage) int64
	Free(store.Usage) int64
	IsFull() bool
}

// Host is the node's connections.
type Host interface {
	Addresses() []string
	Path(peer string) (wire.Path, bool)
}

// GeoConfig is the configuration store.
type GeoConfig interface {
	Properties(context.Context) (geoconfig.Properties, error)
}

// ReportsOptions are what Reports are made of. Every field is needed.
type ReportsOptions struct {
	Self    ids.Node
	Site    ids.Site
	Cluster func() ids.Cluster
	Version string
	Loop    Loop
	Roster  Roster
	Store   Store
	Space   Space
	Host    Host
	Standing
	// Sessions counts the clients' sessions and their leases.
	Sessions func() (sessions, leases int)
	// Clients lists the clients that are connected, at most limit.
	Clients func(limit int) []identity.Who
	// Findings are those of the site audit.
	Findings func() []status.Finding
	// Leading lists the rows of the slices that this node acts for.
	Leading func() []geoconfig.SliceRow
	// Waiting lists the side logs of this node that are not merged yet.
	Waiting func() []*pb.Waiting
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// Reached refuses a user an object that it may not reach.
	Reached func(ctx context.Context, w *identity.Who, o ids.Object, ticket []byte) error
	// Scrub tells how far the reading of all that is stored is, with at most so many of
	// the chunks that are lost.
	Scrub func(lost int) status.Scrub
	// Moved is how much content went to members that lacked it, in bytes.
	Moved func() int64
	// Drill tells of the drill that the node takes part in; nil: of none.
	Drill func() *status.Drill
	// Copies lists the copies of slices that the node makes, and those that wait.
	Copies func() []status.Copy
	// Balance tells how the node's disk stands to its marks.
	Balance func() status.Balance
	// ReserveBytes of the disk are never given to clients.
	ReserveBytes int64
	// Began is when the node started, by Clock.
	Began time.Duration
	Clock func() time.Duration
}

// Standing tells how the configuration stands with the node. Every field is needed.
type Standing struct {
	// GeoConfig is the configuration store, which is away since Away; zero: it is
	// there.
	GeoConfig GeoConfig
	Away      func() time.Time
	// Refused is why the store that answers is not obeyed; nil: it is, or none answers.
	Refused func() error
	// Generation is that of the configuration that the node knows.
	Generation func() ids.Generation
}

// Reports tell what a node knows. They change nothing.
type Reports struct{ o ReportsOptions }

// NewReports returns the reports of a node.
func NewReports(o ReportsOptions) *Reports { return &Reports{o: o} }

// Status answers with what Node tells, and to administrators and nodes with the
// clients that they ask for.
func (s *Reports) Status(ctx context.Context, w *identity.Who, req *pb.StatusRequest) (proto.Message, error) {
	out := s.Node(ctx)
	if !w.Admin && !w.Trusted && !w.Node {
		out.Disk = nil // it tells what others store
		out.Scrub.Lost = nil
	}
	if req.Clients > 0 && (w.Admin || w.Node) {
		out.Clients = s.Clients(int(min(req.Clients, MaxClients)))
	}
	encoded, err := json.Marshal(out)
	return &pb.StatusResponse{Status: encoded}, fault.Wrap(fault.Corrupt, "admin.Status", "", err)
}

// maxLost bounds the list of lost chunks in a report. Of more, the first ones are listed.
const maxLost = 100

// MaxClients bounds a list of clients. Of more, the first ones are listed.
const MaxClients = 10_000

// Clients lists the clients that are connected to the node, at most limit.
func (s *Reports) Clients(limit int) []status.Client {
	var out []status.Client
	for _, w := range s.o.Clients(limit) {
		out = append(out, status.Client{User: w.User, Name: w.Name, Site: w.Site})
	}
	return out
}

// Node tells what the node knows of itself.
func (s *Reports) Node(ctx context.Context) status.Node {
	u := s.o.Store.Usage()
	out := status.Node{
		ID: s.o.Self, Site: s.o.Site, Cluster: s.o.Cluster(), Version: s.o.Version,
		Incarnation: s.o.Store.Incarnation(), Addresses: s.o.Host.Addresses(), UptimeNS: s.o.Clock() - s.o.Began,
		CapacityBytes: s.o.Space.Capacity(u), UsedBytes: u.Journal + u.Chunks + u.Meta, FreeBytes: u.Disk.Free, ReadOnly: s.o.Space.IsFull(),
		PackBytes: u.Packs, WaitingBytes: u.Waiting, MovedBytes: s.o.Moved(), Scrub: new(s.o.Scrub(maxLost)), Drill: s.o.Drill(), Moves: status.Moves{Balance: new(s.o.Balance()), Copies: s.o.Copies()},
		GeoConfig: s.geoConfig(ctx), Findings: s.o.Findings(),
	}
	out.GeoConfig.Generation = s.o.Generation()
	live := uint64(0)
	s.o.Loop.EachPublished(func(p *operate.Published) bool {
		// A slice that cannot be read here has nothing that is known to be live.
		if state, err := tree.ReadState(s.o.Committed(p.Slice)); err == nil {
			live += state.Stored
		}
		switch p.Role {
		case replica.RoleActive, replica.RoleLeading, replica.RoleYielding:
			out.SlicesActive++
		case replica.RoleStandby:
			out.SlicesStandby++
		case replica.RoleJunior:
			out.SlicesJunior++
		}
		return true
	})
	out.Disk = diskOf(u, int64(live))
	out.Sessions, out.ObjectLeases = s.o.Sessions()
	for _, n := range s.o.Roster.Nodes() {
		if n.ID != s.o.Self {
			path, up := s.o.Host.Path(string(n.ID))
			out.Peers = append(out.Peers, status.Peer{ID: n.ID, Site: n.Site, Connected: up, RTTNS: path.RTT})
		}
	}
	return out
}

// diskOf tells what the disk is used for. live is what the current files of all slices here
// store, without holes and before deduplication.
func diskOf(u store.Usage, live int64) *status.Disk {
	needed := u.Chunks - u.Waiting
	live = min(live, needed)
	return &status.Disk{
		JournalBytes: u.Journal, MetadataBytes: u.Meta, ChunkBytes: u.Chunks,
		LiveBytes: live, RetainedBytes: needed - live, EmptyBytes: max(u.Packs-u.Chunks, 0),
	}
}

// propertiesLimit bounds how long a report waits for the configuration store. It is
// below what those who ask a node wait for, so that a store which has just gone does
// not make the node look gone too.
const propertiesLimit = 500 * time.Millisecond

// geoConfig tells whether the configuration store is there, and of what kind.
func (s *Reports) geoConfig(ctx context.Context) status.GeoConfig {
	if err := s.o.Refused(); err != nil {
		return status.GeoConfig{AwayNS: time.Since(s.o.Away()), Warning: "the geo-config that answers is refused, and changes wait: " + fault.Explain(err)}
	}
	if away := s.o.Away(); !away.IsZero() {
		return status.GeoConfig{AwayNS: time.Since(away), Warning: "geo-config is away: what is configured goes on, changes wait"}
	}
	ctx, cancel := context.WithTimeout(ctx, propertiesLimit)
	defer cancel()
	p, err := s.o.GeoConfig.Properties(ctx)
	if err != nil { // it has just gone, and who follows it has not noticed yet
		return status.GeoConfig{Warning: "geo-config does not answer: what is configured goes on, changes wait"}
	}
	out := status.GeoConfig{Reachable: true, Kind: p.Name, SinglePoint: p.SinglePoint}
	if out.SinglePoint {
		out.Warning = "geo-config is a single process: while it is away, changes wait"
	}
	return out
}

// Statfs says how much room there is.
func (s *Reports) Statfs(context.Context, *identity.Who, *pb.StatfsRequest) (proto.Message, error) {
	u := s.o.Store.Usage()
	total, free := s.o.Space.Capacity(u), max(s.o.Space.Free(u)-s.o.ReserveBytes, 0)
	var objects uint64
	for _, row := range s.o.Leading() {
		state, err := tree.ReadState(s.o.Committed(row.ID))
		if err != nil {
			return nil, fault.Wrap(fault.IO, "admin.Statfs", "", err)
		}
		objects += state.Objects
	}
	// Another slice can always be made: what bounds objects is space.
	return &pb.StatfsResponse{TotalBytes: uint64(max(total, 0)), FreeBytes: uint64(free), Objects: objects, FreeObjects: uint64(free) / 512}, nil
}

// SliceList lists the slices as this node sees them.
func (s *Reports) SliceList(ctx context.Context, _ *identity.Who, _ *pb.SliceListRequest) (proto.Message, error) {
	statuses := map[ids.Slice]replica.Status{}
	rows := s.o.Roster.Slices()
	err := s.o.Loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		for _, row := range rows {
			if st, ok := core.Status(row.ID); ok {
				statuses[row.ID] = st
			}
		}
	})
	if err != nil {
		return nil, err
	}
	out := &pb.SliceListResponse{}
	for _, row := range rows {
		st, known := statuses[row.ID]
		encoded, err := json.Marshal(s.slice(row, st, known))
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, "admin.SliceList", "", err)
		}
		out.Slices = append(out.Slices, encoded)
	}
	return out, nil
}

// notServing says for people why a node does not serve a slice. A node that has
// nothing of the slice knows no role.
func notServing(role replica.RoleKind, known bool) string {
	switch {
	case !known:
		return "this node has nothing of it"
	case role == replica.RoleActive:
		return "the active is not ready yet"
	case role == replica.RoleLeading:
		return "the active's lease has ended"
	case role == replica.RoleYielding:
		return "the active hands the slice over"
	}
	return "this node is not the active (" + role.String() + ")"
}

// slice tells how one slice stands. known says that this node has a copy, whose
// status is st.
func (s *Reports) slice(row geoconfig.SliceRow, st replica.Status, known bool) status.Slice {
	out := status.Slice{SliceRow: row, Role: "none", Members: s.members(row)}
	if known {
		out.Role, out.Commit, out.Lacking = st.Role.String(), st.Commit, st.Lacking
		if out.Last = st.Last; st.LastTime != 0 {
			out.LastTime = st.LastTime.Wall().UTC()
		}
		m, listed := row.Member(s.o.Self)
		// A wiped disk looks whole, and is of another incarnation.
		out.Whole = st.Whole && listed && m.Incarnation == s.o.Store.Incarnation()
	}
	if p := s.o.Loop.Published(row.ID); p != nil {
		out.Applied = ids.Serial(p.Applied.Load())
		out.Serving = p.Serves(s.o.Clock())
	}
	if !out.Serving {
		out.Why = notServing(st.Role, known)
	}
	if state, err := tree.ReadState(s.o.Committed(row.ID)); err == nil {
		out.Objects, out.StoredBytes = state.Objects, new(int64(state.Stored))
	}
	normal := len(row.Normals())
	out.Protected = normal >= row.Policy.Level
	if !out.Protected {
		out.Lacks = fmt.Sprintf("%d of %d replicas are up to date", normal, row.Policy.Level)
	}
	return out
}

// members lists a slice's members with their sites, the active first.
func (s *Reports) members(row geoconfig.SliceRow) []status.Member {
	out := make([]status.Member, 0, len(row.Members))
	for _, m := range row.Members {
		n, _ := s.o.Roster.Node(m.Node)
		r := status.Member{Node: m.Node, Site: n.Site, State: m.State.String(), Active: m.Node == row.Active}
		if r.Active {
			out = append([]status.Member{r}, out...)
		} else {
			out = append(out, r)
		}
	}
	return out
}
