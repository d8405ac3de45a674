package command

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const (
	// restLeast and restMost bound the pause behind a page. It is as long as the page took,
	// so that the question takes half of one goroutine of a node at most.
	restLeast, restMost = 2 * time.Millisecond, time.Second
	// overloadedMost bounds how often a page is asked for again at a node that has too much
	// to do.
	overloadedMost = 5
)

// fillSpace asks the nodes for the figures of the replicas: all nodes at once, and each for
// one slice after the other. It fails only where it is given up.
func (e *env) fillSpace(c *contact.Cluster, v *spaceView) error {
	defer e.progress("asking the nodes what their slices hold")()
	byNode := map[ids.Node][]*replicaSpace{}
	sliceOf := map[*replicaSpace]ids.Slice{}
	for i := range v.Slices {
		for j := range v.Slices[i].Replicas {
			r := &v.Slices[i].Replicas[j]
			byNode[r.Node], sliceOf[r] = append(byNode[r.Node], r), v.Slices[i].Slice
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex // guards v.Withheld
	for id, list := range byNode {
		all.Go(func() {
			for _, r := range list {
				err := askSpace(e.ctx, c, id, sliceOf[r], r)
				if err == nil {
					continue
				}
				r.Error = explain(err)
				if fault.Is(err, fault.Permission) {
					mu.Lock()
					v.Withheld = true
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if e.ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, "command.fillSpace", v.Path, e.ctx.Err())
	}
	if v.Withheld {
		for i := range v.Slices {
			v.Slices[i].Replicas = nil
		}
	}
	return nil
}

// askSpace adds up the pages of a slice's space at one node.
func askSpace(ctx context.Context, c *contact.Cluster, id ids.Node, slice ids.Slice, into *replicaSpace) error {
	req := &pb.SpaceRequest{Slice: uint32(slice)}
	for first := true; first || len(req.Behind) > 0; first = false {
		began := c.Now()
		a, err := askPage(ctx, c, id, req)
		if err != nil {
			return err
		}
		var page tree.Usage
		if err := json.Unmarshal(a.Space, &page); err != nil {
			return fault.Wrap(fault.Corrupt, "command.askSpace", string(id), err)
		}
		into.Add(&page)
		if first {
			into.Objects, into.Stored = a.Objects, a.StoredBytes
		}
		req.Behind = a.Next
		if len(a.Next) > 0 && !contact.Pause(ctx, min(max(c.Now()-began, restLeast), restMost)) {
			return fault.Wrap(fault.Canceled, "command.askSpace", string(id), ctx.Err())
		}
	}
	return nil
}

// askPage asks for one page, again where the node has too much to do.
func askPage(ctx context.Context, c *contact.Cluster, id ids.Node, req *pb.SpaceRequest) (*pb.SpaceResponse, error) {
	for try := 1; ; try++ {
		a := &pb.SpaceResponse{}
		bounded, cancel := context.WithTimeout(ctx, askLimit)
		body, err := c.Call(bounded, id, wire.Operation, method.Space, req, nil, a)
		cancel()
		body.Release()
		if !fault.Is(err, fault.Overloaded) || try == overloadedMost || !contact.Pause(ctx, restMost) {
			return a, err
		}
	}
}
