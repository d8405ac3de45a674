package prefetch

import (
	"bytes"
	"context"

	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// ask asks the active for files of one slice, keeps what comes, and returns
// which came. Content is asked for where no nearer node has it.
func (a *Files) ask(ctx context.Context, list []ids.Object) (came []ids.Object) {
	slice := list[0].Slice()
	req := &pb.FilesRequest{Objects: make([]uint64, len(list))}
	for i, o := range list {
		req.Objects[i] = uint64(o)
		req.Tickets = append(req.Tickets, a.opt.Tickets.Of(o).Reached)
	}
	var mark names.Mark
	var resp *pb.FilesResponse
	var body *wire.Buffer
	var by ids.Node
	err := a.opt.Router.Active(ctx, slice, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		mark, resp, by = a.opt.Names.MarkObject(0), &pb.FilesResponse{}, node
		req.Header = &pb.ReadHeader{Slice: uint32(slice), Epoch: uint64(epoch), Session: a.opt.Sessions.With(ctx, node), Client: a.opt.Cluster.Client()}
		if known, ok := a.opt.Router.Known(slice); ok && a.opt.Cluster.Closest(node, known.Normals()) == node {
			req.DataBytes = aheadData
		}
		body.Release() // of an attempt before
		var err error
		body, err = a.opt.Cluster.Call(ctx, node, wire.Chunk, method.Files, req, nil, resp)
		return resp.GetRefusal(), err
	})
	defer func() { body.Release() }()
	if err != nil {
		return nil // their opens ask
	}
	data := body.Bytes()
	for _, f := range resp.Files {
		n := int(f.DataLength)
		if n > len(data) || f.Attr == nil {
			return nil
		}
		if n > 0 {
			a.opt.Keep(f.Attr, bytes.Clone(data[:n]))
			data = data[n:]
		}
	}
	a.opt.Names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
		for _, f := range resp.Files {
			came = append(came, ids.Object(f.Attr.Object))
			l.Attr(f.Attr, false)
		}
	})
	return came
}
