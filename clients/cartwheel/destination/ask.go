package destination

import (
	"context"
	"encoding/json"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// op is what errors of a choice say that they come from.
const op fault.Op = "destination.Choose"

// ask asks a node at the object's home, else the nearest ones. Where this
// client's own site is the home, it asks only nodes there: another site than the
// directory's helps no program. With anywhere, because the directory's slice is
// full, it asks the others then. Objects stay where the first one puts them, so
// the nearer of the two nearest at home is measured.
func (d *Chooser) ask(ctx context.Context, dir *pb.Attr, cues *pb.Cues, home ids.Site, anywhere bool) (ids.Slice, error) {
	var failed error = fault.E(fault.Unreachable, op, string(home), "no node of the site is known")
	var nodes, others []ids.Node
	for _, n := range d.opt.Cluster.Nearest() {
		if cues.GetSite() != "" || d.SiteOf(n) == home {
			nodes = append(nodes, n)
		} else if anywhere {
			others = append(others, n)
		}
	}
	if cues.GetSite() == "" {
		d.opt.Cluster.Settle(ctx, nodes)
	}
	for _, n := range append(nodes, others...) {
		s, err := d.askOne(ctx, n, dir, cues)
		if row, known := d.opt.Router.Known(s); err == nil && known && row.Closed {
			// This node has yet to hear that the slice is full; another may know.
			err = fault.Errorf(fault.Again, op, string(n), "the node names slice %d, which takes no more", s)
		}
		if err == nil || fault.Is(err, fault.Invalid) || ctx.Err() != nil {
			return s, err
		}
		failed = err
	}
	return 0, failed
}

func (d *Chooser) askOne(ctx context.Context, n ids.Node, dir *pb.Attr, cues *pb.Cues) (ids.Slice, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var resp pb.PlaceResponse
	body, err := d.opt.Cluster.Call(ctx, n, wire.Operation, method.Place, &pb.PlaceRequest{Parent: dir.Object, Cues: cues}, nil, &resp)
	body.Release()
	if err == nil && resp.Refusal != nil {
		err = fault.E(fault.Kind(resp.Refusal.Kind), op, string(n), resp.Refusal.Message)
	}
	if err != nil {
		return 0, err
	}
	var row geoconfig.SliceRow
	if err := json.Unmarshal(resp.Row, &row); err != nil {
		return 0, fault.Wrap(fault.Corrupt, op, string(n), err)
	}
	d.opt.Router.Learn(row)
	return ids.Slice(resp.Slice), nil
}
