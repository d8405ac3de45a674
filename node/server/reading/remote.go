package reading

import (
	"context"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Caller reaches other nodes.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Remote reads at other nodes. It has no state and is safe for concurrent use.
type Remote struct {
	Self   ids.Node
	Row    func(ids.Slice) (geoconfig.SliceRow, bool)
	Caller Caller
}

// Attr reads the attributes of an object at the node that acts for its slice, as of a
// time where that is not 0. It gives its worker back while it waits.
func (r *Remote) Attr(ctx context.Context, o ids.Object, asOf hlc.Time) (*pb.Attr, error) {
	const op fault.Op = "reading.Attr"
	row, ok := r.Row(o.Slice())
	if !ok || row.Active == r.Self {
		return nil, fault.E(fault.Again, op, o.String(), "no node acts for the slice now")
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	var answer pb.GetAttrResponse
	b, err := r.Caller.Call(ctx, string(row.Active), wire.Operation, method.GetAttr,
		&pb.GetAttrRequest{Header: &pb.ReadHeader{Slice: uint32(row.ID), AsOf: uint64(asOf)}, Object: uint64(o)}, nil, &answer)
	b.Release()
	switch {
	case err != nil:
		return nil, err
	case answer.Refusal != nil || answer.Attr == nil:
		return nil, fault.E(fault.Again, op, o.String(), "the slice changes hands")
	}
	return answer.Attr, nil
}
