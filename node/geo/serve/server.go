// Package serve answers for a geoconfig.Store over wire: what the process
// `cartwheeld geo-config` runs beside its embedded store. It decides nothing
// itself, and keeps only the waiting followers: each has a goroutine until its
// answer, its hold or its connection ends, and Close ends them all. The store
// stays the caller's to close.
package serve

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

const op fault.Op = "serve.Serve"

// MaxHold is the longest that a follower waits for one answer.
const MaxHold = time.Minute

// Options configure a Server. The zero value will do.
type Options struct {
	// Allow says whether a peer may read, or change, the configuration. Nil
	// allows whomever the host admits. It must not block.
	Allow func(peer string, change bool) error
	// MayChange says whether a peer that Allow lets change something may make
	// this change. Nil allows all. It must not block.
	MayChange func(peer string, b *geoconfig.Batch) error
	// Superseded hears of a caller that Allow lets read and that obeys only stores of
	// this generation and later, which the store is not: another one took its place.
	// Nil: nobody hears it. It must not block.
	Superseded func(peer string, by ids.Generation)
	// Followers bounds the calls that wait for changes; further ones are
	// answered Overloaded and come again. 0 means 4096.
	Followers int
}

// Server is a store on a host.
type Server struct {
	store   geoconfig.Store
	options Options
	most    int // bytes of an answer's body
	ctx     context.Context
	end     context.CancelCauseFunc
	wg      sync.WaitGroup // followers

	mu        sync.Mutex // guards below
	closed    bool
	followers int
	// cluster is the store's row as it was read last; nil: the store has had none.
	// Its ID never changes, and its generation never falls.
	cluster *geoconfig.Cluster
}

// Serve registers the store's methods on a host.
func Serve(h *wire.Host, store geoconfig.Store, o Options) *Server {
	if o.Followers == 0 {
		o.Followers = 4096
	}
	s := &Server{store: store, options: o, most: h.MaxPayload(wire.Operation)}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	h.Spawn(method.GeoRead, s.read)
	h.Spawn(method.GeoApply, s.apply)
	h.Spawn(method.GeoSettle, s.settle)
	h.Spawn(method.GeoProperties, s.properties)
	h.Inline(method.GeoFollow, s.follow)
	return s
}

// Close ends the followers' calls and waits for them. Calls that come later
// are answered Closed.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end(fault.E(fault.Closed, op, "", "the geo-config server is stopping"))
	s.wg.Wait()
	return nil
}

// caller is what every request says of whom it means.
type caller interface {
	GetCluster() string
	GetGeneration() uint64
}

// admit checks the peer, and that both mean the same cluster and no later store.
func (s *Server) admit(ctx context.Context, peer string, c caller, change bool) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if s.options.Allow != nil {
		if err := s.options.Allow(peer, change); err != nil {
			return err
		}
	}
	if c.GetCluster() == "" && c.GetGeneration() == 0 {
		return nil
	}
	s.mu.Lock()
	own := s.cluster
	s.mu.Unlock()
	wanted := ids.Generation(c.GetGeneration())
	if own == nil || own.Generation < wanted {
		rows, err := s.store.Read(ctx, geoconfig.Query{})
		if err != nil || rows.Cluster == nil {
			return err
		}
		own = rows.Cluster
		s.mu.Lock()
		s.cluster = own
		s.mu.Unlock()
	}
	switch {
	case c.GetCluster() != "" && string(own.ID) != c.GetCluster():
		return fault.Errorf(fault.WrongCluster, op, c.GetCluster(), "this geo-config is of cluster %s, not %s: check the address", own.ID, c.GetCluster())
	case own.Generation < wanted:
		if s.options.Superseded != nil {
			s.options.Superseded(peer, wanted)
		}
		return fault.Errorf(fault.WrongCluster, op, string(own.ID),
			"this geo-config is of generation %d, and one of generation %d took its place: stop it, and start the newer one", own.Generation, wanted)
	}
	return nil
}

func (s *Server) read(ctx context.Context, r *wire.Request) {
	var m pb.GeoReadRequest
	var q geoconfig.Query
	err := r.Decode(&m)
	if err == nil {
		err = s.admit(ctx, r.Peer, &m, false)
	}
	if err == nil {
		err = decode(m.Query, &q)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	rows, err := s.store.Read(ctx, q)
	if err != nil {
		r.Fail(err)
		return
	}
	body, err := encode(rows)
	if err == nil && len(body) > s.most {
		err = fault.Errorf(fault.TooLarge, op, "", "the answer takes %d bytes: ask for less", len(body))
	}
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(&pb.GeoReadResponse{}, body)
}

func (s *Server) apply(ctx context.Context, r *wire.Request) {
	var m pb.GeoApplyRequest
	var b geoconfig.Batch
	err := r.Decode(&m)
	if err == nil {
		err = s.admit(ctx, r.Peer, &m, true)
	}
	if err == nil {
		err = decode(r.Body(), &b)
	}
	if err == nil && s.options.MayChange != nil {
		err = s.options.MayChange(r.Peer, &b)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	rev, err := s.store.Apply(ctx, b)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(&pb.GeoApplyResponse{Revision: uint64(rev)})
}

func (s *Server) settle(ctx context.Context, r *wire.Request) {
	var m pb.GeoSettleRequest
	err := r.Decode(&m)
	if err == nil {
		err = s.admit(ctx, r.Peer, &m, true)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	rev, applied, err := s.store.Settle(ctx, m.Key)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(&pb.GeoSettleResponse{Revision: uint64(rev), Applied: applied})
}

func (s *Server) properties(ctx context.Context, r *wire.Request) {
	var m pb.GeoPropertiesRequest
	err := r.Decode(&m)
	if err == nil {
		err = s.admit(ctx, r.Peer, &m, false)
	}
	var body []byte
	if err == nil {
		var p geoconfig.Properties
		if p, err = s.store.Properties(ctx); err == nil {
			body, err = encode(p)
		}
	}
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(&pb.GeoPropertiesResponse{Properties: body})
}

func decode(b []byte, out any) error {
	return fault.Wrap(fault.Invalid, op, "", json.Unmarshal(b, out))
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return b, fault.Wrap(fault.Other, op, "", err)
}
