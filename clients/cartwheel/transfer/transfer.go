// Package transfer carries the bytes of files between this client and the nodes
// of a slice: it puts chunks through the chain of members, gets them from the
// nearest one, and proves to nodes which chunks a user has. What changes a file
// passes through to the caller's functions. It keeps no bytes and knows no open
// file.
package transfer

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/route"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// Options set up a Service. None may be missing.
type Options struct {
	Router  *route.Router
	Cluster *contact.Cluster
	Tickets *tickets.Table
	Clock   boottime.Func
	// Commit makes written ranges part of a file, as content.Remote says.
	Commit func(context.Context, content.Commit) (*pb.Result, error)
	// Version returns a regular file's attributes with Content.
	Version func(context.Context, ids.Object) (*pb.Attr, error)
}

// Service is the nodes as the content engine uses them. It remembers only along which
// chains chunks travel, and is safe for use by many goroutines. Its methods block until a node
// answers or their context ends; the errors are those of the nodes, or Missing
// and Corrupt where fewer bytes came than were asked for.
type Service struct {
	router  *route.Router
	cluster *contact.Cluster
	tickets *tickets.Table
	chains  chains
	commit  func(context.Context, content.Commit) (*pb.Result, error)
	version func(context.Context, ids.Object) (*pb.Attr, error)
}

var (
	_ content.Remote  = (*Service)(nil)
	_ content.Starter = (*Service)(nil)
)

// New returns a Service.
func New(o Options) *Service {
	return &Service{router: o.Router, cluster: o.Cluster, tickets: o.Tickets, chains: chains{clock: o.Clock}, commit: o.Commit, version: o.Version}
}

// Commit implements content.Remote.
func (s *Service) Commit(ctx context.Context, c content.Commit) (*pb.Result, error) {
	return s.commit(ctx, c)
}

// Version implements content.Remote.
func (s *Service) Version(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	return s.version(ctx, o)
}

// What errors about content say that they come from.
const (
	getOp   fault.Op = "cartwheel.GetChunks"
	rangeOp fault.Op = "cartwheel.Range"
)

// response is what an answer about content has.
type response interface {
	proto.Message
	GetRefusal() *pb.Refusal
}

// bulk sends a request about content to the active of a slice and returns the
// body of the answer. Small ones go beside operations, large ones apart. Where no
// caller waits within a limit of its own, it goes on while bytes come.
func (s *Service) bulk(ctx context.Context, slice ids.Slice, class wire.Class, m wire.Method, req proto.Message, body [][]byte,
	fresh func() response) ([]byte, error) {
	var out []byte
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, contentMost)
		defer cancel()
	}
	err := s.router.Active(ctx, slice, func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		ctx, cancel := wire.Patient(ctx, s.cluster.Host(), string(node), class, activeStall, contentMost)
		defer cancel()
		resp := fresh()
		buffer, err := s.cluster.Call(ctx, node, class, m, req, body, resp)
		if err == nil {
			out = buffer.Bytes() // left to the garbage collector: it is kept
		}
		return resp.GetRefusal(), err
	})
	return out, err
}

const (
	// replicaStall is for how long nothing may come from another member than the
	// active, which is asked instead then. A member that is merely slow is waited
	// for: what it sends crosses the way in any case.
	replicaStall = 5 * time.Second
	// activeStall is the same for the active, which is then asked again.
	activeStall = 15 * time.Second
	// contentMost bounds the wait for a member that sends, but not the answer.
	contentMost = 5 * time.Minute
)

// immutable sends a request about what never changes to the nearest normal
// member of a slice; where that one lacks some of it or does not answer, to the
// active, and on eventual terms to each of the others before that.
func (s *Service) immutable(ctx context.Context, slice ids.Slice, class wire.Class, m wire.Method, req proto.Message,
	fresh func() response, whole func(body []byte) bool) ([]byte, error) {
	row, known := s.router.Known(slice)
	if known && timeouts.Eventual(ctx) {
		if out, ok := s.atAnyMember(ctx, row, class, m, req, fresh, whole); ok {
			return out, nil
		}
		return s.bulk(ctx, slice, class, m, req, nil, fresh)
	}
	if near := s.cluster.Closest(row.Active, row.Normals()); known && near != row.Active {
		short, cancel := wire.Patient(ctx, s.cluster.Host(), string(near), class, replicaStall, contentMost)
		defer cancel()
		resp := fresh()
		buffer, err := s.cluster.Call(short, near, class, m, req, nil, resp)
		if err == nil && resp.GetRefusal() == nil && whole(buffer.Bytes()) {
			return buffer.Bytes(), nil
		}
		if ctx.Err() == nil && short.Err() != nil {
			s.cluster.Avoid(near)
		}
	}
	return s.bulk(ctx, slice, class, m, req, nil, fresh)
}

// atAnyMember sends a request about what never changes to the normal members of a
// slice, the nearest first, until one has all of it; false: none has. Each gets an
// equal part of the time that is left.
func (s *Service) atAnyMember(ctx context.Context, row geoconfig.SliceRow, class wire.Class, m wire.Method, req proto.Message,
	fresh func() response, whole func(body []byte) bool) ([]byte, bool) {
	nodes := row.Normals()
	s.cluster.Sort(nodes)
	for i, n := range nodes {
		part, cancel := timeouts.Part(ctx, len(nodes)-i+1)
		resp := fresh()
		buffer, err := s.cluster.Call(part, n, class, m, req, nil, resp)
		late := part.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil && resp.GetRefusal() == nil && whole(buffer.Bytes()) {
			return buffer.Bytes(), true
		}
		if late {
			s.cluster.Avoid(n)
		}
	}
	return nil, false
}
