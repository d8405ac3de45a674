package advisory

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
)

// Claim takes in what a client had before a takeover: locks, and files that it
// has open, whose last name may be gone. It answers what is lost, and waits for
// other nodes only where the request shows no ticket.
func (s *Server) Claim(ctx context.Context, w *identity.Who, req *pb.ClaimRequest) (proto.Message, error) {
	if err := w.Is(req.Client); err != nil {
		return nil, err
	}
	req.Client = w.Client
	id := ids.Slice(req.Slice)
	if refused := s.o.Reading.Refused(id); refused != nil {
		return &pb.ClaimResponse{Refusal: refused}, nil
	}
	who, out := s.o.Asker(w), &pb.ClaimResponse{}
	claimed := make([]lock.Lock, 0, len(req.Locks))
	for _, l := range req.Locks {
		if s.o.Reading.Reached(ctx, &who, ids.Object(l.Object), method.Ticket(req.Tickets, l.Object)) != nil {
			out.Lost = append(out.Lost, l)
			continue
		}
		claimed = append(claimed, lockOf(req.Client, l))
	}
	s.mu.Lock()
	ended, err := s.beginLocked(req.Client, req.Session)
	var lost []lock.Lock
	if err == nil {
		lost = s.table.Claim(claimed)
	}
	s.mu.Unlock()
	s.answerEnded(ended)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		out.Lost = append(out.Lost, lockTo(&lost[i]))
	}
	for _, o := range req.Open { // the last unlink asks who has it open
		if s.o.Reading.Reached(ctx, &who, ids.Object(o), method.Ticket(req.Tickets, o)) == nil {
			s.o.Sessions.Opened(req.Session, ids.Object(o))
			s.o.Sessions.Grant(req.Session, id, 0, ids.Object(o), pb.Grant_FILE)
		}
	}
	return out, ctx.Err()
}
