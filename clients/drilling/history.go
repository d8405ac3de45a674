package drilling

import (
	"context"
	"encoding/json"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// historyLimit bounds the question to one node, geo-config's part included.
const historyLimit = 10 * time.Second

// History asks the nodes, one after the other, for the drills that are over, the oldest
// first. A drill to add comes as JSON of drill.Record; empty: none.
func History(ctx context.Context, c *contact.Cluster, add []byte) ([]drill.Record, error) {
	const op fault.Op = "drilling.History"
	var err error = fault.E(fault.Unreachable, op, "", "no node is known")
	for _, id := range c.Nearest() {
		a := &pb.DrillsResponse{}
		limited, cancel := context.WithTimeout(ctx, historyLimit)
		var b *wire.Buffer
		b, err = c.Call(limited, id, wire.Operation, method.Drills, &pb.DrillsRequest{Add: add}, nil, a)
		b.Release()
		cancel()
		if fault.Is(err, fault.Permission) {
			return nil, err
		}
		if err != nil {
			continue
		}
		out := make([]drill.Record, len(a.Drills))
		for i, body := range a.Drills {
			if err := json.Unmarshal(body, &out[i]); err != nil {
				return nil, fault.Wrap(fault.Corrupt, op, string(id), err)
			}
		}
		return out, nil
	}
	return nil, err
}
