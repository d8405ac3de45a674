// Package remote is a geoconfig.Store that another process holds, reached over
// wire. A call that gets no answer is repeated with growing pauses until
// Options.Patience ends; batches have keys, so repeating one never applies it
// twice. It caches nothing. Like every store it is safe for concurrent use; the
// host stays the caller's, who has told it the server's addresses.
package remote

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

var _ geoconfig.Store = (*Store)(nil)

// Options configure a Store. Only Peer is needed.
type Options struct {
	// Peer is the server's peer ID.
	Peer string
	// Cluster, if set, is the one that the server must be of: others are
	// refused with WrongCluster.
	Cluster ids.Cluster
	// Attempt bounds one try of a call: 2 s if 0.
	Attempt time.Duration
	// Patience bounds a call with all its tries, unless its context ends
	// sooner: 10 s if 0. Follow has patience from one answer to the next.
	Patience time.Duration
	// Hold is how long the server keeps a follower that has nothing to learn:
	// 20 s if 0.
	Hold time.Duration
}

// Pauses between tries, before jitter.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Store is a connection to a server.
type Store struct {
	host    *wire.Host
	options Options
	seed    maphash.Seed // of the jitter
	ctx     context.Context
	end     context.CancelFunc
	once    sync.Once
	known   atomic.Uint64 // see Know
}

// Open returns the store that a server holds. It does not connect yet.
func Open(h *wire.Host, o Options) *Store {
	if o.Attempt == 0 {
		o.Attempt = 2 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Hold == 0 {
		o.Hold = 20 * time.Second
	}
	s := &Store{host: h, options: o, seed: maphash.MakeSeed()}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Know has each call tell that its caller obeys no store of a lower generation. A
// server whose store is of one refuses it, as WrongCluster. It never falls.
func (s *Store) Know(g ids.Generation) {
	for was := s.known.Load(); uint64(g) > was; was = s.known.Load() {
		if s.known.CompareAndSwap(was, uint64(g)) {
			return
		}
	}
}

// Close implements geoconfig.Store. The server's store stays open.
func (s *Store) Close() error {
	s.once.Do(s.end)
	return nil
}

// request is one call of the protocol.
type request struct {
	op      fault.Op
	method  wire.Method
	message proto.Message
	body    []byte
	answer  proto.Message
	rows    *geoconfig.Rows // of the answer's body, if it has one
	hold    time.Duration   // that an attempt may take longer
}

// call makes tries until one is answered for good.
func (s *Store) call(ctx context.Context, r request) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, r.op, "", err)
	}
	if s.ctx.Err() != nil {
		return s.closed(r.op)
	}
	ctx, stop := context.WithTimeout(ctx, s.options.Patience+r.hold)
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	for pause, try := firstPause, 0; ; try++ {
		err := s.attempt(ctx, r)
		if err == nil || final(err) {
			return fault.Wrap(fault.Other, r.op, "", err)
		}
		if ctx.Err() == nil {
			s.pause(ctx, pause, try)
			pause = min(2*pause, lastPause)
		}
		if s.ctx.Err() != nil {
			return s.closed(r.op)
		}
		if ctx.Err() != nil {
			return s.gaveUp(ctx, r.op, err)
		}
	}
}

func (s *Store) closed(op fault.Op) error {
	return fault.E(fault.Closed, op, s.options.Peer, "the store was closed")
}

// gaveUp says why there is no answer: the caller's word where it gave one,
// otherwise what the last try met.
func (s *Store) gaveUp(ctx context.Context, op fault.Op, last error) error {
	kind := fault.KindOf(ctx.Err())
	if kind == fault.TimedOut && fault.Is(last, fault.Unreachable) {
		kind = fault.Unreachable
	}
	return &fault.Error{Kind: kind, Op: op, Subject: s.options.Peer, Cause: last,
		Public: "no answer from geo-config: changes wait until it is back, everything configured goes on"}
}

// final reports whether an error settles the call: the server answered, and not
// that it cannot serve just now; or this end cannot send.
func final(err error) bool {
	switch fault.KindOf(err) {
	case fault.Overloaded, fault.Again, fault.Unreachable, fault.TimedOut, fault.Canceled:
		return false
	case fault.Closed:
		return !wire.Answered(err) // the server stops and may come back; this host does not
	}
	return true
}

func (s *Store) attempt(ctx context.Context, r request) error {
	ctx, stop := context.WithTimeout(ctx, s.options.Attempt+r.hold)
	defer stop()
	var body [][]byte
	if r.body != nil {
		body = [][]byte{r.body}
	}
	got, err := s.host.Call(ctx, s.options.Peer, wire.Operation, r.method, r.message, body, r.answer)
	if err != nil {
		return err
	}
	defer got.Release()
	if r.rows == nil {
		return nil
	}
	*r.rows = geoconfig.Rows{}
	if err := json.Unmarshal(got.Bytes(), r.rows); err != nil {
		return fault.Wrap(fault.Corrupt, r.op, s.options.Peer, err)
	}
	return nil
}

// pause waits between half of d and d, so that many waiters do not come back
// at once.
func (s *Store) pause(ctx context.Context, d time.Duration, try int) {
	share := maphash.Comparable(s.seed, try) % 1024
	timer := time.NewTimer(d/2 + d/2*time.Duration(share)/1024)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Read implements geoconfig.Store.
func (s *Store) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	const op fault.Op = "remote.Read"
	query, err := json.Marshal(q)
	if err != nil {
		return geoconfig.Rows{}, fault.Wrap(fault.Invalid, op, "", err)
	}
	var rows geoconfig.Rows
	err = s.call(ctx, request{op: op, method: method.GeoRead, rows: &rows,
		message: &pb.GeoReadRequest{Cluster: string(s.options.Cluster), Generation: s.known.Load(), Query: query}})
	if err != nil {
		return geoconfig.Rows{}, err
	}
	return rows, nil
}

// Apply implements geoconfig.Store.
func (s *Store) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	const op fault.Op = "remote.Apply"
	body, err := json.Marshal(b)
	if err != nil {
		return 0, fault.Wrap(fault.Invalid, op, "", err)
	}
	var answer pb.GeoApplyResponse
	err = s.call(ctx, request{op: op, method: method.GeoApply, answer: &answer, body: body,
		message: &pb.GeoApplyRequest{Cluster: string(s.options.Cluster), Generation: s.known.Load()}})
	if err != nil {
		return 0, err
	}
	return ids.Revision(answer.Revision), nil
}

// Settle implements geoconfig.Store.
func (s *Store) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	var answer pb.GeoSettleResponse
	err := s.call(ctx, request{op: "remote.Settle", method: method.GeoSettle, answer: &answer,
		message: &pb.GeoSettleRequest{Cluster: string(s.options.Cluster), Generation: s.known.Load(), Key: key}})
	if err != nil {
		return 0, false, err
	}
	return ids.Revision(answer.Revision), answer.Applied, nil
}

// Follow implements geoconfig.Store.
func (s *Store) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	for {
		var rows geoconfig.Rows
		err := s.call(ctx, request{op: "remote.Follow", method: method.GeoFollow, rows: &rows, hold: s.options.Hold,
			message: &pb.GeoFollowRequest{Cluster: string(s.options.Cluster), Generation: s.known.Load(), Since: uint64(since),
				Limit: uint32(max(limit, 0)), HoldNs: int64(s.options.Hold)}})
		if err != nil {
			return geoconfig.Rows{}, err
		}
		if rows.Revision > since {
			return rows, nil
		}
	}
}

// Properties implements geoconfig.Store.
func (s *Store) Properties(ctx context.Context) (geoconfig.Properties, error) {
	const op fault.Op = "remote.Properties"
	var answer pb.GeoPropertiesResponse
	err := s.call(ctx, request{op: op, method: method.GeoProperties, answer: &answer,
		message: &pb.GeoPropertiesRequest{Cluster: string(s.options.Cluster), Generation: s.known.Load()}})
	if err != nil {
		return geoconfig.Properties{}, err
	}
	var p geoconfig.Properties
	if err := json.Unmarshal(answer.Properties, &p); err != nil {
		return geoconfig.Properties{}, fault.Wrap(fault.Corrupt, op, s.options.Peer, err)
	}
	return p, nil
}
