package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/wire"
)

// collected is a cluster of three nodes that give space back soon.
type collected struct {
	t   *testing.T
	ctx context.Context
	c   *servertest.Cluster
	cl  *servertest.Client
}

// collectedPack is the length of the packs of these nodes.
const collectedPack = 1 << 20

func startCollected(t *testing.T) *collected {
	return startCollectedAs(t, func(*server.Config) {})
}

// startCollectedAs is startCollected with a configuration that is changed.
func startCollectedAs(t *testing.T, change func(*server.Config)) *collected {
	x := &collected{t: t}
	var cancel context.CancelFunc
	x.ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	x.c = servertest.Start(t, servertest.Options{Log: testing.Verbose(),
		Configure: func(i int, c *server.Config) {
			quick(i, c)
			c.Retention, c.UploadGrace = 0, time.Second
			change(c)
		},
		Depend: func(_ int, d *server.Deps) {
			d.Disk = func(o *store.Options) { o.Pack.PackBytes, o.Pack.ReserveBytes = collectedPack, -1 }
		},
	})
	awaitWhole(x.ctx, t, x.c)
	x.cl = x.c.Connect("root")
	return x
}

// contentOf returns content of its own for a seed.
func contentOf(seed uint64, n int) []byte {
	b := make([]byte, n)
	var s [32]byte
	s[0], s[1], s[2] = byte(seed), byte(seed>>8), 1
	_, _ = rand.NewChaCha8(s).Read(b) // never fails
	return b
}

// write makes a file with content of its own and returns its object.
func (x *collected) write(name string, seed uint64) uint64 {
	x.t.Helper()
	made := do(x.ctx, x.t, x.cl, ids.RootSlice, create(name))
	body := contentOf(seed, 200_000)
	if wrote, err := x.cl.Operate(x.ctx, ids.RootSlice, commit(made.Attr.Object, len(body)), body); err != nil || wrote.Kind != 0 {
		x.t.Fatalf("%s: %v %v", name, wrote, err)
	}
	return made.Attr.Object
}

func (x *collected) unlink(name string) {
	x.t.Helper()
	do(x.ctx, x.t, x.cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte(name)}}})
}

// awaitSpace waits until the packs of every node take at most so many bytes.
func (x *collected) awaitSpace(most int64) {
	x.t.Helper()
	for _, n := range x.c.Nodes {
		servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to give space back", n.Index), func() error {
			if s := n.Server().PackSpace(); s.Files > most {
				return fmt.Errorf("its packs take %d bytes, %d at most are wanted: %+v", s.Files, most, s)
			}
			return nil
		})
	}
}

// awaitNoHistory waits until no node has a version that is not current.
func (x *collected) awaitNoHistory() {
	x.t.Helper()
	for _, n := range x.c.Nodes {
		servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to forget", n.Index), func() error {
			if rows, err := n.Server().History(ids.RootSlice); err != nil || rows > 0 {
				return fmt.Errorf("it has %d old versions: %w", rows, err)
			}
			return nil
		})
	}
}

// holds checks that every node has the whole content of files.
func (x *collected) holds(names ...string) {
	x.t.Helper()
	for _, n := range x.c.Nodes {
		for _, name := range names {
			if err := n.Server().CheckCopy(ids.RootObject, []byte(name)); err != nil {
				x.t.Errorf("node %d: %s: %v", n.Index, name, err)
			}
		}
	}
}

// TestCollection_GivesSpaceBackOnEveryNode deletes and overwrites most of what it wrote.
func TestCollection_GivesSpaceBackOnEveryNode(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	var kept []string
	for i := range 60 {
		name := fmt.Sprint("file", i)
		object := x.write(name, uint64(i))
		switch i % 10 {
		case 0:
			kept = append(kept, name)
		case 1: // overwritten: its old content goes, its new one is that of another file
			kept = append(kept, name)
			body := contentOf(uint64(i-1), 200_000)
			op := commit(object, len(body))
			if wrote, err := x.cl.Operate(x.ctx, ids.RootSlice, op, body); err != nil || wrote.Kind != 0 {
				t.Fatalf("%v %v", wrote, err)
			}
		}
	}
	if s := x.c.Nodes[0].Server().PackSpace(); s.Files < 10*collectedPack {
		t.Fatalf("the packs take %d bytes: too few to show anything", s.Files)
	}
	for i := range 60 {
		if i%10 > 1 {
			x.unlink(fmt.Sprint("file", i))
		}
	}
	x.awaitSpace(4 * collectedPack)
	x.holds(kept...)
	x.awaitNoHistory()
	for _, n := range x.c.Nodes {
		n.Kill()
	}
	for _, n := range x.c.Nodes {
		n.Start()
	}
	x.c.AwaitRoot(x.ctx)
	awaitWhole(x.ctx, t, x.c)
	x.holds(kept...)
	x.write("after", 1000)
	x.holds("after")
}

// put stores a chunk at the active and all others.
func (x *collected) put(body []byte) chunk.Address {
	x.t.Helper()
	a := chunk.Sum(body)
	for _, n := range x.c.Nodes {
		_, err := x.cl.Call(x.ctx, n.ID(), wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: a[:], Sizes: []uint32{uint32(len(body))}}, [][]byte{body}, &pb.PutResponse{})
		if err != nil {
			x.t.Fatal(err)
		}
	}
	return a
}

// has asks the active for a chunk.
func (x *collected) has(a chunk.Address) bool {
	x.t.Helper()
	var answer pb.HaveResponse
	if _, err := x.cl.Call(x.ctx, x.c.Active(ids.RootSlice).ID(), wire.Chunk, method.Have, &pb.HaveRequest{Slice: 1, Addresses: a[:]}, nil, &answer); err != nil {
		x.t.Fatal(err)
	}
	return len(answer.Missing) == 1 && answer.Missing[0]&1 == 0
}

// name commits a chunk as the content of a file.
func (x *collected) name(object uint64, a chunk.Address, size int) fault.Kind {
	x.t.Helper()
	op := commit(object, size)
	e := op.GetCommit().Extents[0]
	e.Source, e.ChunkSize = &pb.Extent_Chunk{Chunk: a[:]}, uint32(size)
	r, err := x.cl.Operate(x.ctx, ids.RootSlice, op, nil)
	if err != nil {
		return fault.KindOf(err)
	}
	return fault.Kind(r.Kind)
}

// TestCollection_RefusesReferencesToWhatItTook has a chunk answered to be present, lets
// the time of that answer end and collections run, and only then commits a reference: it
// is refused, and after another upload it is not. What is named in time stays.
func TestCollection_RefusesReferencesToWhatItTook(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	late, early := contentOf(7, 60_000), contentOf(8, 60_000)
	lateAt, earlyAt := x.put(late), x.put(early)
	if !x.has(lateAt) || !x.has(earlyAt) {
		t.Fatal("what was put is not told to be here")
	}
	inTime := do(x.ctx, t, x.cl, ids.RootSlice, create("in time")).Attr.Object
	if kind := x.name(inTime, earlyAt, len(early)); kind != fault.None {
		t.Fatalf("a reference in time: %v", kind)
	}
	for i := range 12 { // so that the pack is full, and nobody needs the most of it
		x.write(fmt.Sprint("filler", i), uint64(100+i))
	}
	for i := range 12 {
		x.unlink(fmt.Sprint("filler", i))
	}
	more := 0
	servertest.Await(x.ctx, t, "the chunk that was never named to go", func() error {
		for _, n := range x.c.Nodes {
			if n.Server().HasChunk(lateAt) { // its pack may want more that nobody needs
				name := fmt.Sprint("more", more)
				x.write(name, uint64(500+more))
				x.unlink(name)
				more++
				return fmt.Errorf("node %d has it", n.Index)
			}
		}
		return nil
	})
	tooLate := do(x.ctx, t, x.cl, ids.RootSlice, create("too late")).Attr.Object
	if kind := x.name(tooLate, lateAt, len(late)); kind != fault.Missing {
		t.Fatalf("a reference to what was collected: got %v, want Missing", kind)
	}
	x.put(late)
	if kind := x.name(tooLate, lateAt, len(late)); kind != fault.None {
		t.Fatalf("after another upload: %v", kind)
	}
	x.holds("in time", "too late")
}
