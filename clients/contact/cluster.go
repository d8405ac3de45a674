package contact

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/trace"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// Options configure a Cluster.
type Options struct {
	File File
	// Site is where this client stands; empty: unknown.
	Site ids.Site
	// Name is shown to people: host and mount point.
	Name   string
	Logger *slog.Logger
	// HLC and OnHLC carry the client's clock, as wire.Options has them.
	HLC   func() uint64
	OnHLC func(peer string, hlc uint64)
	// OnUp hears that a node was introduced to, newly or again.
	OnUp func(node ids.Node)
	// Random chooses among equals; nil: seeded by the system.
	Random *rand.Rand
	// Measure lets the Cluster measure the way to nodes that it has nothing to
	// ask, so that it finds the nearest. What ends at once needs none.
	Measure bool
	// Clock gives the time since any fixed moment; nil: the system's.
	Clock func() time.Duration
	// Tracer sends the traces of followed operations along; nil: none are followed.
	Tracer wire.Tracer
	// Network and Key are zero but in a simulation: then Network makes the
	// connections, and Key is this process's identity instead of a new one.
	Network wire.Network
	Key     wire.Key
}

// protocol is the version that introductions carry.
const protocol = 1

// helloLimit bounds one introduction; the nodes behind a broken link must not
// hold up the others.
const helloLimit = 5 * time.Second

// Cluster is the nodes, as this client knows them.
type Cluster struct {
	opt    Options
	host   *wire.Host
	user   wire.Key
	client uint64
	logger *slog.Logger
	near   *proximity.Vicinity
	chance chance

	ctx     context.Context // of measuring; ends at Close
	end     context.CancelFunc
	work    sync.WaitGroup
	begin   sync.Once    // of measuring
	located atomic.Int64 // clock: when the host was last told the coordinate

	refreshing chan struct{} // holds one: one question for the nodes at a time
	looking    chan struct{} // holds one: the question that nobody waits for
	refreshed  atomic.Int64  // clock: when the nodes were last learned anew

	mu    sync.Mutex // guards below; the host's and the vicinity's come after it
	nodes map[ids.Node]*node
	order []ids.Node // as they became known
	sites []geoconfig.Site
	who   *pb.HelloResponse
	// chosen is the node that was nearest last.
	chosen ids.Node
}

type node struct {
	row geoconfig.Node
	// away is until when the node is taken for one that does not answer.
	away time.Duration
	// near says that the node stands at the client's site.
	near atomic.Bool
	site atomic.Pointer[string]

	hello  chan struct{} // holds one: one introduction at a time
	mu     sync.Mutex    // guards below
	known  bool          // introduced on the connection that is there now
	number uint64        // of the connection: an introduction holds for one
	nonce  []byte        // of the last introduction: proofs for the node are keyed with it
}

// New makes a Cluster that has not spoken with anybody yet: register handlers
// on Host, then Connect. The client takes a new identity for this process, so
// that several mounts of one user do not break one another's connections; the
// user's key proves who it acts for.
func New(opt Options) (*Cluster, error) {
	const op fault.Op = "contact.New"
	user, err := wire.LoadKey(opt.File.UserKey)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, opt.File.UserKey, err)
	}
	self := opt.Key
	if self == (wire.Key{}) {
		if self, err = wire.NewKey(nil); err != nil {
			return nil, fault.Wrap(fault.IO, op, "", err)
		}
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Random == nil {
		opt.Random = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(len(self.KeyID())))) // the seed itself
	}
	if opt.Clock == nil {
		opt.Clock = boottime.Default()
	}
	c := &Cluster{opt: opt, user: user, client: method.ClientNumber(self.KeyID()), logger: opt.Logger, nodes: map[ids.Node]*node{},
		chance: chance{r: opt.Random}, refreshing: make(chan struct{}, 1), looking: make(chan struct{}, 1)}
	c.ctx, c.end = context.WithCancel(context.Background())
	if c.near, err = proximity.New(opt.Clock, rand.NewPCG(opt.Random.Uint64(), c.client)); err != nil {
		c.end()
		return nil, fault.Wrap(fault.Invalid, op, "", err)
	}
	c.near.Here(opt.Site)
	c.host, err = wire.New(wire.Options{
		Key: self, Gater: c.gate, Logger: opt.Logger, HLC: opt.HLC, OnHLC: opt.OnHLC, OnSample: c.sample, OnConnect: c.connected, Relays: c.relays,
		ReadsWide: c.readsWide, Tracer: opt.Tracer, Network: opt.Network,
	})
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	at := map[ids.Node][]string{}
	for _, address := range opt.File.Nodes {
		where, id, err := SplitAddress(address)
		if err == nil {
			at[id] = append(at[id], where)
			err = c.learn(geoconfig.Node{ID: id, Addresses: at[id]})
		}
		if err != nil {
			c.host.Close()
			return nil, fault.Wrap(fault.Invalid, op, address, err)
		}
	}
	return c, nil
}

// chance is Options.Random for several goroutines.
type chance struct {
	mu sync.Mutex // guards below
	r  *rand.Rand
}

// Jitter draws a time around d, so that clients do not come back all at once.
func (c *Cluster) Jitter(d time.Duration) time.Duration {
	c.chance.mu.Lock()
	defer c.chance.mu.Unlock()
	return d/2 + time.Duration(c.chance.r.Int64N(int64(d)))
}

// Host is the client's end of the wire, for registering handlers.
func (c *Cluster) Host() *wire.Host { return c.host }

// Client is this process's number, never 0; its registrations carry it. It
// follows from the key that the process made for itself.
func (c *Cluster) Client() uint64 { return c.client }

// Now is the time of the clock that Options names, which runs on in suspension.
func (c *Cluster) Now() time.Duration { return c.opt.Clock() }

// Demo reports whether the contact file says that all sites are one machine.
func (c *Cluster) Demo() bool { return c.opt.File.Demo }

// Site is where the client stands.
func (c *Cluster) Site() ids.Site { return c.opt.Site }

// gate admits only nodes that this client knows: it listens nowhere, so this
// is for whom it dials.
func (c *Cluster) gate(peer string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.nodes[ids.Node(peer)]; !ok {
		return fault.E(fault.Unauthorized, "contact.gate", peer, "is no node of this cluster")
	}
	return nil
}

func (c *Cluster) learn(row geoconfig.Node) error {
	c.mu.Lock()
	n, ok := c.nodes[row.ID]
	if !ok {
		n = &node{hello: make(chan struct{}, 1)}
		c.nodes[row.ID] = n
		c.order = append(c.order, row.ID)
	}
	if row.Site != "" || n.row.ID == "" {
		n.row = row
		site := string(row.Site)
		n.site.Store(&site)
		n.near.Store(row.Site != "" && row.Site == c.opt.Site)
	}
	c.mu.Unlock()
	c.near.Place(row.ID, row.Coordinate)
	if row.Site != "" {
		c.near.Declare(row.ID, row.Site, row.Apart)
	}
	return c.host.AddPeer(string(row.ID), row.Addresses)
}

func (c *Cluster) connected(peer string, class wire.Class, _ bool) {
	if class != wire.Operation {
		return
	}
	c.mu.Lock()
	n := c.nodes[ids.Node(peer)]
	c.mu.Unlock()
	if n != nil {
		n.mu.Lock()
		n.known = false
		n.number++
		n.mu.Unlock()
	}
}

// Connect introduces the client to the first node that answers, and learns the
// others from it. Its error says what each node answered.
func (c *Cluster) Connect(ctx context.Context) error {
	const op fault.Op = "contact.Connect"
	var failed []error
	for _, id := range c.Nearest() {
		_, err := c.introduce(ctx, id)
		if err == nil {
			err = c.Refresh(ctx, id)
		}
		if err == nil {
			if c.opt.Measure {
				c.begin.Do(func() { c.work.Go(c.survey) })
			}
			return nil
		}
		failed = append(failed, fault.Wrap(fault.Unreachable, "", string(id), err))
		switch fault.KindOf(err) {
		case fault.Unauthorized, fault.WrongCluster, fault.NewerVersion:
			return fault.Wrap(fault.Unreachable, op, "", errors.Join(failed...)) // the others will say the same
		}
	}
	return &fault.Error{Kind: fault.Unreachable, Op: op, Public: "no node of the cluster answers; are the addresses right, and do the nodes run?", Cause: errors.Join(failed...)}
}

// Refresh learns all nodes and sites from one node.
func (c *Cluster) Refresh(ctx context.Context, from ids.Node) error {
	const op fault.Op = "contact.Refresh"
	var rows pb.RowsResponse
	if _, err := c.Call(ctx, from, wire.Operation, method.Rows, &pb.RowsRequest{Nodes: true, Sites: true}, nil, &rows); err != nil {
		return fault.Wrap(fault.Unreachable, op, string(from), err)
	}
	var sites []geoconfig.Site
	for _, data := range rows.Sites {
		var s geoconfig.Site
		if err := json.Unmarshal(data, &s); err != nil {
			return fault.Wrap(fault.Corrupt, op, string(from), err)
		}
		sites = append(sites, s)
	}
	for _, data := range rows.Nodes {
		var n geoconfig.Node
		if err := json.Unmarshal(data, &n); err != nil {
			return fault.Wrap(fault.Corrupt, op, string(from), err)
		}
		if len(n.Addresses) == 0 {
			continue // registered, but it never ran
		}
		if err := c.learn(n); err != nil {
			c.logger.Warn("a node's address is of no use", logattr.Node(n.ID), logattr.Err(err))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sites = sites
	return nil
}

// Call sends a request to one node, after an introduction where the connection
// is new. The body belongs to the caller, as with wire.Host.Call; so do the
// errors.
func (c *Cluster) Call(ctx context.Context, to ids.Node, class wire.Class, m wire.Method, req proto.Message, body [][]byte, resp proto.Message) (*wire.Buffer, error) {
	for again := false; ; again = true {
		n, err := c.introduce(ctx, to)
		if err != nil {
			c.answered(to, err)
			return nil, err
		}
		out, err := c.measured(ctx, n, to, class, m, req, body, resp)
		c.answered(to, err)
		if again || !wire.Answered(err) || fault.KindOf(err) != fault.Unauthorized {
			return out, err
		}
		c.forget(to) // the node was started again: it has not done anything
	}
}

// measured is one call, counted with the operation that it is for.
func (c *Cluster) measured(ctx context.Context, n *node, to ids.Node, class wire.Class, m wire.Method, req proto.Message, body [][]byte, resp proto.Message) (*wire.Buffer, error) {
	o := trace.From(ctx)
	if o == nil {
		return c.host.Call(ctx, string(to), class, m, req, body, resp)
	}
	var sizes wire.Sizes
	mark, began := o.Begin(), time.Now()
	ctx, span := o.Call(ctx, method.Name(m))
	out, err := c.host.CallSized(ctx, string(to), class, m, req, body, resp, &sizes)
	span.End(string(to), *n.site.Load(), err)
	n.count(o, mark, to, class, m, resp, sizes, time.Since(began), err)
	return out, err
}

// count counts a call with the operation that it was for.
func (n *node) count(o *trace.Operation, mark trace.Mark, to ids.Node, class wire.Class, m wire.Method, resp proto.Message,
	sizes wire.Sizes, took time.Duration, err error) {
	call := trace.Call{Peer: string(to), Site: *n.site.Load(), Method: method.Name(m), Class: class.String(),
		Out: sizes.Out, In: sizes.In, Nanos: int64(took)}
	if n.near.Load() {
		call.Local = 1
	} else {
		call.WAN = 1
	}
	if x, ok := resp.(interface{ GetSpent() *pb.Spent }); ok && err == nil {
		spent := x.GetSpent()
		call.WAN += int(spent.GetWan())
		call.Local += int(spent.GetLocal())
		call.Between = int64(spent.GetBytes())
	}
	o.End(mark, call)
}

func (c *Cluster) find(id ids.Node) (*node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.nodes[id]
	if !ok {
		return nil, fault.E(fault.Unreachable, "contact.find", string(id), "no address of this node is known")
	}
	return n, nil
}

func (c *Cluster) forget(id ids.Node) {
	if n, err := c.find(id); err == nil {
		n.mu.Lock()
		n.known = false
		n.mu.Unlock()
	}
}

// introduce says Hello once on each connection.
func (c *Cluster) introduce(ctx context.Context, id ids.Node) (*node, error) {
	n, err := c.findOrLearn(ctx, id)
	if err != nil || n.introduced() {
		return n, err
	}
	select { // whoever has enough does not wait for the patience of others
	case n.hello <- struct{}{}:
	case <-ctx.Done():
		return n, fault.Wrap(fault.Canceled, "contact.introduce", string(id), ctx.Err())
	}
	defer func() { <-n.hello }()
	if n.introduced() {
		return n, nil
	}
	return n, c.hello(ctx, n, id)
}

func (c *Cluster) hello(ctx context.Context, n *node, id ids.Node) error {
	const op fault.Op = "contact.hello"
	signature, err := c.user.Sign(method.HelloProof(c.host.KeyID(), string(id)))
	if err != nil {
		return fault.Wrap(fault.IO, op, string(id), err)
	}
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	var who pb.HelloResponse
	n.mu.Lock()
	before := n.number
	n.mu.Unlock()
	_, err = c.measured(ctx, n, id, wire.Operation, method.Hello, &pb.HelloRequest{
		Cluster: string(c.opt.File.Cluster), UserKey: c.user.Public(), Signature: signature, Version: protocol, Client: c.client, Name: c.opt.Name,
		Site: string(c.opt.Site),
	}, nil, &who)
	if err != nil {
		return fault.Wrap(fault.Unreachable, op, string(id), err)
	}
	n.mu.Lock()
	// A connection that came up for this call counts; one that was replaced
	// meanwhile does not.
	n.known = n.number <= before+1
	n.nonce = who.Nonce
	n.mu.Unlock()
	c.mu.Lock()
	c.who = &who
	if c.opt.File.Cluster == "" {
		c.opt.File.Cluster = ids.Cluster(who.Cluster)
	}
	c.mu.Unlock()
	if c.opt.OnUp != nil {
		c.opt.OnUp(id)
	}
	return nil
}

func (n *node) introduced() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known
}

// Nonce returns the key of proofs for a node, after an introduction where the
// connection is new. A proof made before a new introduction proves nothing.
func (c *Cluster) Nonce(ctx context.Context, to ids.Node) ([]byte, error) {
	n, err := c.introduce(ctx, to)
	if err != nil {
		c.answered(to, err)
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nonce, nil
}

// Who is what the nodes know of this client: uid, trusted or not.
func (c *Cluster) Who() *pb.HelloResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who
}

// Close ends every connection.
func (c *Cluster) Close() error {
	c.begin.Do(func() {}) // none begins behind the end
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.work.Wait()
	return c.host.Close()
}
