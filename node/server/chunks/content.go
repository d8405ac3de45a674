// Package chunks serves chunks by address: it says which are here, takes new
// ones and passes them on along a chain of members while it writes them, and
// reads ranges of files so that one round trip answers a read. It knows no
// names and no permissions. A Server is safe for concurrent use.
package chunks

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/wire"
)

// Caller reaches other nodes.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Server serves the content of one node.
type Server struct {
	Self   string
	Packs  *pack.Packs
	Nodes  *Nodes
	Caller Caller
	// Full reports whether the disk takes no more.
	Full func() bool
	// Far reports whether a node stands at another site; nil: none does.
	Far func(peer string) bool
	// Staged counts what users store and do not commit; nil: nothing does.
	Staged *Staged
	// Push returns once so many bytes may go to another node, for the sake of a
	// peer whose request waits; nil: at once.
	Push func(ctx context.Context, to, asker string, bytes int) error

	buffers sync.Pool // *[]byte for answers
	onward  onward
}

// The limits of one call.
const (
	// maxChunks bounds the addresses of one request.
	maxChunks = 64 << 10
	// maxAnswer bounds the bytes of one answer.
	maxAnswer = 4 << 20
)

// Have says which chunks are missing here, and pins those that are not.
func (s *Server) Have(req *pb.HaveRequest) (*pb.HaveResponse, error) {
	addresses, err := addressesOf("chunks.Have", req.Addresses)
	if err != nil {
		return nil, err
	}
	has := s.Packs.Has(addresses)
	missing := make([]byte, (len(addresses)+7)/8)
	for i, ok := range has {
		if !ok {
			missing[i/8] |= 1 << (i % 8)
		}
	}
	return &pb.HaveResponse{Missing: missing}, nil
}

func addressesOf(op fault.Op, encoded []byte) ([]chunk.Address, error) {
	addresses, err := chunk.Addresses(encoded)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, "", err)
	}
	if len(addresses) > maxChunks {
		return nil, fault.Errorf(fault.TooLarge, op, "", "%d addresses in one request", len(addresses))
	}
	return addresses, nil
}

// Put checks chunks, stores them, and meanwhile passes them on along the
// chain. They count for the user, which is "" where a node passes them on.
// Stored names the nodes that hold them on disk. Unless it names the
// whole chain, the body may be read for a while after Put has returned. Asker is
// the peer that waits for the answer.
func (s *Server) Put(ctx context.Context, asker, user string, req *pb.PutRequest, body []byte) (*pb.PutResponse, error) {
	const op fault.Op = "chunks.Put"
	addresses, err := addressesOf(op, req.Addresses)
	if err != nil {
		return nil, err
	}
	bodies, err := cut(addresses, req.Sizes, body)
	if err != nil {
		return nil, err
	}
	if s.Full() {
		return nil, fault.E(fault.NoSpace, op, s.Self, "the node's disk is full")
	}
	counted, err := s.count(user, addresses, req.Sizes)
	if err != nil {
		return nil, err
	}
	onward, cut := context.WithCancel(ctx)
	defer cut()
	next := s.passOn(onward, asker, req, body)
	err = s.keep(ctx, addresses, bodies)
	counted(err == nil)
	if err != nil {
		return nil, err
	}
	rest := await(ctx, next, cut)
	return &pb.PutResponse{Stored: append([]string{s.Self}, rest.stored...), Spent: rest.spent}, nil
}

// count has those chunks count for a user that are not here. What it returns is
// to be told whether they were stored.
func (s *Server) count(user string, addresses []chunk.Address, sizes []uint32) (func(stored bool), error) {
	if user == "" || s.Staged == nil {
		return func(bool) {}, nil
	}
	var new []chunk.Address
	var bytes []uint32
	for i := range addresses {
		if _, here := s.Packs.Length(addresses[i]); !here {
			new, bytes = append(new, addresses[i]), append(bytes, sizes[i])
		}
	}
	taken, err := s.Staged.take(user, bytes)
	if err != nil {
		return nil, err
	}
	return func(stored bool) {
		if !stored {
			new = nil
		}
		s.Staged.done(user, taken, new, bytes)
	}, nil
}

// keep checks chunks and stores them.
func (s *Server) keep(ctx context.Context, addresses []chunk.Address, bodies [][]byte) error {
	const op fault.Op = "chunks.keep"
	for i := range bodies {
		if err := chunk.Verify(addresses[i], bodies[i]); err != nil {
			return fault.Wrap(fault.Corrupt, op, "", err)
		}
	}
	return fault.Wrap(fault.IO, op, s.Self, s.Packs.Put(ctx, addresses, bodies))
}

// cut takes the body apart.
func cut(addresses []chunk.Address, sizes []uint32, body []byte) ([][]byte, error) {
	const op fault.Op = "chunks.cut"
	if len(sizes) != len(addresses) {
		return nil, fault.Errorf(fault.Invalid, op, "", "%d sizes for %d addresses", len(sizes), len(addresses))
	}
	out := make([][]byte, len(sizes))
	for i, n := range sizes {
		if n > chunk.MaxSize || int(n) > len(body) {
			return nil, fault.E(fault.Invalid, op, addresses[i].String(), "the chunk is larger than allowed, or than the body")
		}
		out[i], body = body[:n:n], body[n:]
	}
	if len(body) > 0 {
		return nil, fault.E(fault.Invalid, op, "", "the body is longer than its chunks")
	}
	return out, nil
}

// Room says what an answer may take of the way to its reader.
type Room struct {
	// Most bounds the bytes of an answer that may be cut short; 0: only maxAnswer
	// does.
	Most int
	// Wait returns once so many bytes may leave. It is called before they are
	// read, so that no memory waits with it. Nil: at once.
	Wait func(ctx context.Context, bytes int) error
}

func (r Room) wait(ctx context.Context, bytes int) error {
	if r.Wait == nil || bytes == 0 {
		return nil
	}
	return r.Wait(ctx, bytes)
}

// most returns how many bytes an answer has at most that may be cut short.
func (r Room) most() int {
	if r.Most == 0 {
		return maxAnswer
	}
	return min(r.Most, maxAnswer)
}

// Get reads chunks or parts of them. What is missing is marked, and what an
// answer with some of them has no room for is not; sizes are those
// of the parts in the body. done gives the body's memory back.
func (s *Server) Get(ctx context.Context, req *pb.GetRequest, room Room) (answer *pb.GetResponse, body []byte, done func(), err error) {
	const op fault.Op = "chunks.Get"
	addresses, err := addressesOf(op, req.Addresses)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(req.Parts) != 0 && len(req.Parts) != len(addresses) {
		return nil, nil, nil, fault.Errorf(fault.Invalid, op, "", "%d parts for %d addresses", len(req.Parts), len(addresses))
	}
	answer = &pb.GetResponse{Sizes: make([]uint32, len(addresses))}
	total := 0
	for i := range addresses {
		n, err := s.partLength(addresses[i], req, i)
		if fault.Is(err, fault.Missing) {
			if answer.Missing == nil {
				answer.Missing = make([]byte, (len(addresses)+7)/8)
			}
			answer.Missing[i/8] |= 1 << (i % 8)
			continue
		}
		if err != nil {
			return nil, nil, nil, err
		}
		if total+n > room.most() && total > 0 && req.Some {
			continue
		}
		if total += n; total > maxAnswer {
			return nil, nil, nil, fault.E(fault.TooLarge, op, "", "more than one answer holds: ask for fewer chunks at once")
		}
		answer.Sizes[i] = uint32(n)
	}
	if err := room.wait(ctx, total); err != nil {
		return nil, nil, nil, err
	}
	body, done = s.buffer(total)
	var ranges []pack.Range
	at := 0
	for i := range addresses {
		if n := int(answer.Sizes[i]); n > 0 {
			r := pack.Range{Address: addresses[i], Into: body[at : at+n : at+n]}
			if len(req.Parts) > 0 {
				r.Offset = int(req.Parts[i].Offset)
			}
			ranges = append(ranges, r)
			at += n
		}
	}
	if err := s.Packs.Read(ctx, ranges); err != nil {
		done()
		return nil, nil, nil, fault.Wrap(fault.IO, op, "", err)
	}
	return answer, body, done, nil
}

func (s *Server) partLength(a chunk.Address, req *pb.GetRequest, i int) (int, error) {
	const op fault.Op = "chunks.partLength"
	length, ok := s.Packs.Length(a)
	if !ok {
		return 0, fault.E(fault.Missing, op, a.String(), "")
	}
	if len(req.Parts) == 0 {
		return length, nil
	}
	p := req.Parts[i]
	if int64(p.Offset)+int64(p.Length) > int64(length) {
		return 0, fault.E(fault.Invalid, op, a.String(), "the part leaves its chunk")
	}
	if p.Length == 0 {
		return length - int(p.Offset), nil
	}
	return int(p.Length), nil
}

// buffer returns pooled memory of n bytes and what gives it back.
func (s *Server) buffer(n int) ([]byte, func()) {
	p, ok := s.buffers.Get().(*[]byte)
	if !ok || cap(*p) < n {
		b := make([]byte, max(n, 256<<10))
		p = &b
	}
	return (*p)[:n], func() { s.buffers.Put(p) }
}
