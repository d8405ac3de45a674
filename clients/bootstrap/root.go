package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

const (
	rootSlice = ids.Slice(1)
	// rootLimit bounds the nodes' first agreement; rootPoll is how often they
	// are asked.
	rootLimit = 30 * time.Second
	rootPoll  = 20 * time.Millisecond
)

// AwaitRoot waits until some node serves the root's slice, which the nodes make
// once they have found one another. path is a contact file.
func AwaitRoot(ctx context.Context, path string, nodes []ids.Node) error {
	const op fault.Op = "bootstrap.AwaitRoot"
	file, err := contact.Load(path)
	if err != nil {
		return err
	}
	c, err := contact.New(contact.Options{File: file, Name: "founding"})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it was only asked
	ctx, cancel := context.WithTimeout(ctx, rootLimit)
	defer cancel()
	tick := time.NewTicker(rootPoll)
	defer tick.Stop()
	var last error
	for {
		for _, id := range nodes {
			serves, err := servesRoot(ctx, c, id)
			if serves {
				return nil
			}
			if err != nil {
				last = err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, op, "the root's slice", errors.Join(ctx.Err(), last))
		}
	}
}

func servesRoot(ctx context.Context, c *contact.Cluster, id ids.Node) (bool, error) {
	var a pb.SliceListResponse
	if _, err := c.Call(ctx, id, wire.Operation, method.SliceList, &pb.SliceListRequest{}, nil, &a); err != nil {
		return false, err
	}
	for _, data := range a.Slices {
		var s status.Slice
		if err := json.Unmarshal(data, &s); err != nil {
			return false, err
		}
		if s.ID == rootSlice && s.Serving {
			return true, nil
		}
	}
	return false, nil
}
