package command

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

// askLimit bounds what a command asks of one node.
const askLimit = 5 * time.Second

// connect reaches the cluster of the contact file. The caller closes it.
func (e *env) connect() (*contact.Cluster, error) {
	file, err := e.contactFile()
	if err != nil {
		return nil, err
	}
	f, err := contact.Load(file)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	c, err := contact.New(contact.Options{File: f, Name: host + " command", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, 2*askLimit)
	defer cancel()
	defer e.progress("looking for a node that answers")()
	if err := c.Connect(ctx); err != nil {
		leave(c)
		return nil, fault.Wrap(fault.Unreachable, "command.connect", file, err)
	}
	return c, nil
}

// leave ends what connect began.
func leave(c *contact.Cluster) { _ = c.Close() } // a command has nothing left to lose

// reach checks that the cluster answers.
func (e *env) reach() error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	return c.Close()
}

// askStatus asks one node how it is.
func askStatus(ctx context.Context, c *contact.Cluster, id ids.Node) (status.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var a pb.StatusResponse
	var n status.Node
	if _, err := c.Call(ctx, id, wire.Operation, method.Status, &pb.StatusRequest{}, nil, &a); err != nil {
		return n, err
	}
	return n, fault.Wrap(fault.Corrupt, "command.status", string(id), json.Unmarshal(a.Status, &n))
}

// slices asks one node for the slices that it knows.
func slices(ctx context.Context, c *contact.Cluster, id ids.Node) ([]status.Slice, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var a pb.SliceListResponse
	if _, err := c.Call(ctx, id, wire.Operation, method.SliceList, &pb.SliceListRequest{}, nil, &a); err != nil {
		return nil, err
	}
	var out []status.Slice
	for _, data := range a.Slices {
		var s status.Slice
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fault.Wrap(fault.Corrupt, "command.slices", string(id), err)
		}
		out = append(out, s)
	}
	return out, nil
}

// asked is what one node answered.
type asked[T any] struct {
	id    ids.Node
	value T
	err   error
}

// askAll asks every node at once; the answers come in the order of the nodes.
func askAll[T any](e *env, c *contact.Cluster, ask func(context.Context, *contact.Cluster, ids.Node) (T, error)) []asked[T] {
	defer e.progress("asking the nodes")()
	nodes := c.Nodes()
	out := make([]asked[T], len(nodes))
	done := make(chan struct{})
	for i, n := range nodes {
		go func() {
			v, err := ask(e.ctx, c, n.ID)
			out[i] = asked[T]{n.ID, v, err}
			done <- struct{}{}
		}()
	}
	for range nodes {
		<-done
	}
	return out
}

// member is a node in its part of a slice, with its site.
type member struct {
	Node  ids.Node `json:"node"`
	Site  ids.Site `json:"site"`
	State string   `json:"state,omitempty"`
}

func siteOf(c *contact.Cluster, id ids.Node) ids.Site {
	n, _ := c.Node(id)
	return n.Site
}

// short shortens a node ID for people: its end tells nodes apart.
func short(id ids.Node) string {
	const keep = 8
	if len(id) <= keep {
		return string(id)
	}
	return "…" + string(id[len(id)-keep:])
}
