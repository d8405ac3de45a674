package serve

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// follow gives each follower a goroutine of its own: waiting for a change on
// the host's workers would use them up.
func (s *Server) follow(r *wire.Request) {
	m := new(pb.GeoFollowRequest)
	if err := r.Decode(m); err != nil {
		r.Fail(err)
		return
	}
	s.mu.Lock()
	full, closed := s.followers >= s.options.Followers, s.closed
	if !full && !closed {
		s.followers++
		s.wg.Add(1)
	}
	s.mu.Unlock()
	switch {
	case closed:
		r.Fail(context.Cause(s.ctx))
	case full:
		r.Fail(fault.E(fault.Overloaded, op, "", "too many followers are waiting"))
	default:
		go s.wait(r, m)
	}
}

// wait answers one follower.
func (s *Server) wait(r *wire.Request, m *pb.GeoFollowRequest) {
	defer s.wg.Done()
	defer func() {
		s.mu.Lock()
		s.followers--
		s.mu.Unlock()
	}()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	if err := s.admit(ctx, r.Peer, m, false); err != nil {
		r.Fail(err)
		return
	}
	body, err := s.page(ctx, m)
	switch {
	case err == nil:
		r.Reply(&pb.GeoFollowResponse{}, body)
	case s.ctx.Err() != nil:
		r.Fail(context.Cause(s.ctx))
	default:
		r.Fail(err)
	}
}

// page waits for rows and encodes as many of them as one answer can carry. A
// single batch always fits: its limit is below the frame's.
func (s *Server) page(ctx context.Context, m *pb.GeoFollowRequest) ([]byte, error) {
	limit := int(min(m.Limit, geoconfig.MaxBatchRows))
	if limit == 0 {
		limit = geoconfig.MaxBatchRows
	}
	rows, err := s.held(ctx, m, limit)
	if err != nil {
		return nil, err
	}
	for {
		body, err := encode(rows)
		if err != nil || len(body) <= s.most {
			return body, err
		}
		if limit == 1 {
			return nil, fault.Errorf(fault.TooLarge, op, "", "one batch takes %d bytes", len(body))
		}
		limit = max(1, min(limit/2, count(rows)*s.most/len(body)/2)) // the end of a batch comes on top
		if rows, err = s.store.Follow(ctx, ids.Revision(m.Since), limit); err != nil {
			return nil, err
		}
	}
}

func count(rows geoconfig.Rows) int {
	return len(rows.Sites) + len(rows.Nodes) + len(rows.Slices) + len(rows.Users) + len(rows.Removed)
}

// held waits for the first change, for as long as the hold. Rows that are there
// already are read without it, so that a short hold never cuts that off.
func (s *Server) held(ctx context.Context, m *pb.GeoFollowRequest, limit int) (geoconfig.Rows, error) {
	since := ids.Revision(m.Since)
	now, err := s.store.Read(ctx, geoconfig.Query{})
	if err != nil {
		return geoconfig.Rows{}, err
	}
	if now.Revision > since {
		return s.store.Follow(ctx, since, limit)
	}
	if now.Revision < since {
		return geoconfig.Rows{}, fault.Errorf(fault.WrongCluster, op, "geo-config",
			"its database is at revision %d, and this follower has come to %d: the database is empty or an old copy. Stop it, and make a new one with cartwheel geo-config rebuild", now.Revision, since)
	}
	short, stop := context.WithTimeout(ctx, min(max(time.Duration(m.HoldNs), 0), MaxHold))
	defer stop()
	rows, err := s.store.Follow(short, since, limit)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return geoconfig.Rows{Revision: since}, nil
	}
	return rows, err
}
