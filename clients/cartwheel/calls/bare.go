package calls

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Bare runs an operation of root's exactly once under no session, and learns
// nothing from its answer: what this client has cached is taken back from it, as
// from any other. After an error that is no refusal the outcome may be unknown.
func (s *Sender) Bare(ctx context.Context, slice ids.Slice, op *pb.Operation) (*pb.Result, error) {
	if op.TimeNs == 0 {
		op.TimeNs = s.opt.Wall().UnixNano()
	}
	req := &pb.OperateRequest{Principal: &pb.Principal{}, Operation: op, Hlc: uint64(s.opt.HLC.Last())}
	resp, _, err := s.opt.Operator.Operate(ctx, slice, req, nil, nil)
	if err != nil {
		return nil, OutcomeOpen(err)
	}
	return resp.Result, nil
}
