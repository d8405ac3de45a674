package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Client speaks the protocol without a cache: one connection to each node,
// operations numbered and sent again until they are answered. It may be used
// by many goroutines.
type Client struct {
	t    testing.TB
	c    *Cluster
	Host *wire.Host
	Key  wire.Key // the user's
	ID   uint64
	// Site is where it says that it stands; it may be set before the first call.
	Site string
	// Revoked is asked what is held when a node revokes; nil holds nothing.
	Revoked func(*pb.RevokeRequest) *pb.RevokeResponse

	mu       sync.Mutex // guards below
	greeted  map[string]bool
	rows     map[ids.Slice]geoconfig.SliceRow
	numbers  map[ids.Slice]*numbers
	sessions map[string]uint64
}

// numbers are a client's operations in one slice.
type numbers struct {
	last        uint64
	outstanding map[uint64]bool
}

// Connect makes a client that acts with a user's key ("root" or "ann").
func (c *Cluster) Connect(user string) *Client {
	c.t.Helper()
	times := wire.DefaultTimes()
	h, err := wire.New(wire.Options{Key: newKey(c.t), Times: times})
	if err != nil {
		c.t.Fatal(err)
	}
	cl := &Client{t: c.t, c: c, Host: h, Key: c.Users[user], ID: method.ClientNumber(h.KeyID()), greeted: map[string]bool{}, rows: map[ids.Slice]geoconfig.SliceRow{},
		numbers: map[ids.Slice]*numbers{}, sessions: map[string]uint64{}}
	h.Inline(method.Revoke, cl.revoke)
	for _, n := range c.Nodes {
		if err := h.AddPeer(string(n.ID()), []string{n.Address()}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.t.Cleanup(func() { _ = h.Close() }) // its nodes may be gone
	return cl
}

func (c *Client) revoke(r *wire.Request) {
	var req pb.RevokeRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	answer := &pb.RevokeResponse{}
	if c.Revoked != nil {
		answer = c.Revoked(&req)
	}
	r.Reply(answer)
}

// hello says hello to a node once.
func (c *Client) hello(ctx context.Context, node string) error {
	c.mu.Lock()
	done := c.greeted[node]
	c.mu.Unlock()
	if done {
		return nil
	}
	signature, err := c.Key.Sign(method.HelloProof(c.Host.KeyID(), node))
	if err != nil {
		return err
	}
	req := &pb.HelloRequest{Cluster: string(ClusterID), UserKey: c.Key.Public(), Signature: signature, Version: method.ProtocolVersion, Client: c.ID, Name: "test", Site: c.Site}
	b, err := c.Host.Call(ctx, node, wire.Operation, method.Hello, req, nil, &pb.HelloResponse{})
	b.Release()
	if err == nil {
		c.mu.Lock()
		c.greeted[node] = true
		c.mu.Unlock()
	}
	return err
}

// Call calls a node, after a hello.
func (c *Client) Call(ctx context.Context, node ids.Node, class wire.Class, m wire.Method, req proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error) {
	if err := c.hello(ctx, string(node)); err != nil {
		return nil, err
	}
	b, err := c.Host.Call(ctx, string(node), class, m, req, body, answer)
	if fault.Is(err, fault.Unauthorized) {
		c.mu.Lock()
		delete(c.greeted, string(node))
		c.mu.Unlock()
	}
	return b, err
}

// Session opens or prolongs the session with a node.
func (c *Client) Session(ctx context.Context, node ids.Node) (*pb.KeepAliveResponse, error) {
	c.mu.Lock()
	id := c.sessions[string(node)]
	c.mu.Unlock()
	answer := &pb.KeepAliveResponse{}
	_, err := c.Call(ctx, node, wire.Beacon, method.KeepAlive, &pb.KeepAliveRequest{Session: id, Client: c.ID}, nil, answer)
	if err == nil {
		c.mu.Lock()
		c.sessions[string(node)] = answer.Session
		c.mu.Unlock()
	}
	return answer, err
}

// row returns where a slice is believed to be; refused rows replace it.
func (c *Client) row(ctx context.Context, id ids.Slice) (geoconfig.SliceRow, error) {
	c.mu.Lock()
	row, ok := c.rows[id]
	c.mu.Unlock()
	if ok {
		return row, nil
	}
	row, err := c.c.Row(ctx, id)
	if err == nil {
		c.learn(row)
	}
	return row, err
}

func (c *Client) learn(row geoconfig.SliceRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if row.Epoch >= c.rows[row.ID].Epoch {
		c.rows[row.ID] = row
	}
}

// forget drops what is believed of a slice.
func (c *Client) forget(id ids.Slice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rows, id)
}

// refused takes a refusal's row in.
func (c *Client) refused(id ids.Slice, r *pb.Refusal) error {
	var row geoconfig.SliceRow
	if len(r.Row) == 0 || json.Unmarshal(r.Row, &row) != nil {
		c.forget(id)
	} else {
		c.learn(row)
	}
	return fault.E(fault.Kind(r.Kind), "servertest", "", r.Message)
}

// begin numbers an operation.
func (c *Client) begin(id ids.Slice) (number, lowest uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.numbers[id]
	if n == nil {
		n = &numbers{outstanding: map[uint64]bool{}}
		c.numbers[id] = n
	}
	n.last++
	n.outstanding[n.last] = true
	lowest = n.last
	for other := range n.outstanding {
		lowest = min(lowest, other)
	}
	return n.last, lowest
}

func (c *Client) end(id ids.Slice, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.numbers[id].outstanding, number)
}

// Operate runs an operation, through failovers and overload, until ctx ends.
func (c *Client) Operate(ctx context.Context, id ids.Slice, op *pb.Operation, body []byte) (*pb.Result, error) {
	return c.operate(ctx, id, op, body, true)
}

// Ask is Operate, but for Overloaded, which it returns at once.
func (c *Client) Ask(ctx context.Context, id ids.Slice, op *pb.Operation, body []byte) (*pb.Result, error) {
	return c.operate(ctx, id, op, body, false)
}

func (c *Client) operate(ctx context.Context, id ids.Slice, op *pb.Operation, body []byte, patient bool) (*pb.Result, error) {
	number, lowest := c.begin(id)
	defer c.end(id, number)
	for wait, unsent := 2*time.Millisecond, lowest == number; ; wait = min(2*wait, 100*time.Millisecond) {
		answer, err := c.try(ctx, id, op, body, number, lowest, unsent)
		unsent = false
		if err == nil {
			return answer.Result, nil
		}
		switch fault.KindOf(err) {
		case fault.Overloaded:
			if !patient {
				return nil, err
			}
		case fault.NotActive, fault.WrongEpoch, fault.Unreachable, fault.TimedOut, fault.Again, fault.Unauthorized, fault.Closed:
		default:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("gave up: %w", err)
		case <-time.After(wait):
		}
	}
}

func (c *Client) try(ctx context.Context, id ids.Slice, op *pb.Operation, body []byte, number, lowest uint64, unsent bool) (*pb.OperateResponse, error) {
	row, err := c.row(ctx, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	session := c.sessions[string(row.Active)]
	c.mu.Unlock()
	req := &pb.OperateRequest{Slice: uint32(id), Epoch: uint64(row.Epoch), Client: c.ID, Number: number, Lowest: lowest, Operation: op, Unsent: unsent,
		Principal: &pb.Principal{}, Session: session}
	call, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var bodies [][]byte
	if len(body) > 0 {
		bodies = [][]byte{body}
	}
	answer := &pb.OperateResponse{}
	b, err := c.Call(call, row.Active, wire.Operation, method.Operate, req, bodies, answer)
	b.Release()
	if err != nil {
		c.forget(id)
		return nil, err
	}
	if answer.Refusal != nil {
		return nil, c.refused(id, answer.Refusal)
	}
	return answer, nil
}
