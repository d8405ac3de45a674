package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// order has a node scrub at a rate, and returns the round's number.
func (x *collected) order(n *servertest.Node, rate uint64) uint64 {
	x.t.Helper()
	var a pb.ScrubResponse
	x.call(n, method.Scrub, &pb.ScrubRequest{RateBytes: rate}, &a)
	return a.Round
}

// call asks a node, which wants a hello first after a start.
func (x *collected) call(n *servertest.Node, m wire.Method, req, answer proto.Message) {
	x.t.Helper()
	servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to answer %s", n.Index, method.Name(m)), func() error {
		_, err := x.cl.Call(x.ctx, n.ID(), wire.Operation, m, req, nil, answer)
		return err
	})
}

// scrub is what a node tells of its scrub.
func (x *collected) scrub(n *servertest.Node) status.Scrub {
	x.t.Helper()
	var a pb.StatusResponse
	x.call(n, method.Status, &pb.StatusRequest{}, &a)
	var out status.Node
	if err := json.Unmarshal(a.Status, &out); err != nil || out.Scrub == nil {
		x.t.Fatalf("node %d: %v in %s", n.Index, err, a.Status)
	}
	return *out.Scrub
}

// awaitScrub waits for the end of a round, and returns what is told then.
func (x *collected) awaitScrub(n *servertest.Node, round uint64) (out status.Scrub) {
	x.t.Helper()
	servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to end round %d", n.Index, round), func() error {
		if out = x.scrub(n); out.EndedRound < round {
			return fmt.Errorf("it is at %+v", out)
		}
		return nil
	})
	return out
}

// upload makes a file of one chunk that no log has, and waits until all nodes show it.
func (x *collected) upload(name string, seed uint64) (object uint64, a chunk.Address) {
	x.t.Helper()
	body := contentOf(seed, 60_000)
	object, a = do(x.ctx, x.t, x.cl, ids.RootSlice, create(name)).Attr.Object, x.put(body)
	if kind := x.name(object, a, len(body)); kind != 0 {
		x.t.Fatalf("%s: %v", name, kind)
	}
	for _, n := range x.c.Nodes {
		servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to show %s", n.Index, name), func() error {
			attr, err := tree.GetAttr(n.Server().Committed(ids.RootSlice), ids.Object(object), false, false)
			if err == nil && attr.Size != uint64(len(body)) {
				err = fmt.Errorf("it has %d bytes", attr.Size)
			}
			return err
		})
	}
	return object, a
}

// awaitHolds waits until every node has the whole content of files: members that are not
// the active apply what it says later.
func (x *collected) awaitHolds(names ...string) {
	x.t.Helper()
	for _, n := range x.c.Nodes {
		for _, name := range names {
			servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to have %s", n.Index, name), func() error {
				return n.Server().CheckCopy(ids.RootObject, []byte(name))
			})
		}
	}
}

// packFiles lists the packs on a node's disk.
func packFiles(t *testing.T, d *disk.Memory) (names []string) {
	t.Helper()
	all, err := d.List("packs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.HasSuffix(name, ".pack") {
			names = append(names, "packs/"+name)
		}
	}
	return names
}

// rot flips some bits in each pack of a node.
func (x *collected) rot(n *servertest.Node, rng *rand.Rand) {
	for _, name := range packFiles(x.t, n.Files()) {
		for range 3 {
			n.Files().Damage(name, 8*disk.Block+rng.Int64N(8*(collectedPack/2)))
		}
	}
}

// TestScrub_RepairsWhatRotted flips bits in the packs of all nodes, of one after the other,
// while files are written and deleted and packs are collected.
func TestScrub_RepairsWhatRotted(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	rng := rand.New(rand.NewPCG(7, 8))
	var kept []string
	for i := range 20 {
		kept = append(kept, fmt.Sprint("file", i))
		x.write(kept[i], uint64(i))
	}
	more := 0
	for _, n := range x.c.Nodes {
		x.rot(n, rng)
		round := x.order(n, 0)
		for range 12 { // beside the round
			name := fmt.Sprint("more", more)
			x.write(name, uint64(1000+more))
			if more++; more%4 > 0 {
				x.unlink(name)
			} else {
				kept = append(kept, name)
			}
		}
		got := x.awaitScrub(n, round)
		if got.Now.Damaged == 0 || got.Now.Repaired == 0 || got.LostChunks > 0 || got.Now.Repaired+got.Now.Unneeded < got.Now.Damaged+got.Now.Missing {
			t.Errorf("node %d: %+v", n.Index, got)
		}
		round = x.order(n, 0)
		if again := x.awaitScrub(n, round); again.Now.Damaged > 0 || again.Now.Missing > 0 || again.LostChunks > 0 || again.Now.Chunks == 0 || again.Now.Records == 0 {
			t.Errorf("node %d: after the repair: %+v", n.Index, again)
		}
		x.awaitHolds(kept...)
	}
	for _, n := range x.c.Nodes {
		n.Kill()
	}
	for _, n := range x.c.Nodes {
		n.Start()
	}
	x.c.AwaitRoot(x.ctx)
	awaitWhole(x.ctx, t, x.c)
	x.awaitHolds(kept...)
}

// TestScrub_BringsBackWhatFilesLost has a node start without one of its packs, and with
// another one cut short.
func TestScrub_BringsBackWhatFilesLost(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	var kept []string
	for i := range 60 {
		kept = append(kept, fmt.Sprint("file", i))
		x.upload(kept[i], uint64(i))
	}
	n := x.c.Nodes[1]
	n.Stop()
	names := packFiles(t, n.Files())
	for _, gone := range []string{names[1], strings.Replace(names[1], ".pack", ".idx", 1)} {
		if err := n.Files().Remove(disk.PackRemove, gone); err != nil {
			t.Fatal(err)
		}
	}
	n.Files().Cut(names[2], collectedPack/3)
	n.Start()
	awaitWhole(x.ctx, t, x.c)
	got := x.awaitScrub(n, x.order(n, 0))
	if got.Now.Damaged == 0 || got.Now.Missing == 0 || got.Now.Repaired != got.Now.Damaged+got.Now.Missing || got.LostChunks > 0 {
		t.Errorf("%+v", got)
	}
	x.awaitHolds(kept...)
	n.Kill()
	n.Start()
	awaitWhole(x.ctx, t, x.c)
	x.awaitHolds(kept...)
}

// TestScrub_TellsWhatNobodyHas damages one chunk at all nodes. That is told with the file,
// until somebody uploads the chunk again.
func TestScrub_TellsWhatNobodyHas(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	object, lost := x.upload("file", 1)
	for _, n := range x.c.Nodes {
		n.Server().Spoil(lost)
	}
	n := x.c.Nodes[0]
	for range 2 { // the second one finds what the first one noted
		round := x.order(n, 0)
		got := x.awaitScrub(n, round)
		if got.LostChunks != 1 || got.Lost[0].Chunk != lost.String() || got.Lost[0].Unasked {
			t.Fatalf("%+v", got)
		}
	}
	x.order(n, 0)
	servertest.Await(x.ctx, t, "the object to be named", func() error {
		if got := x.scrub(n); len(got.Lost) != 1 || !slices.Equal(got.Lost[0].Objects, []ids.Object{ids.Object(object)}) {
			return fmt.Errorf("%+v", got.Lost)
		}
		return nil
	})
	x.put(contentOf(1, 60_000))
	x.order(n, 0)
	servertest.Await(x.ctx, t, "the alarm to end", func() error {
		if got := x.scrub(n); got.LostChunks > 0 {
			return fmt.Errorf("%+v", got.Lost)
		}
		return nil
	})
	if err := n.Server().CheckCopy(ids.RootObject, []byte("file")); err != nil {
		t.Error(err)
	}
}

// TestScrub_GoesOnAfterAKill stops a node in the middle of a round, which is slow at first.
func TestScrub_GoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	for i := range 40 {
		x.write(fmt.Sprint("file", i), uint64(i))
	}
	n := x.c.Nodes[2]
	names := packFiles(t, n.Files())
	n.Files().Damage(names[1], 8*(collectedPack/3))
	const slow = 4 << 20
	round := x.order(n, slow)
	servertest.Await(x.ctx, t, "the damage to be repaired", func() error {
		if got := x.scrub(n); got.Now.Repaired == 0 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	n.Kill()
	n.Start()
	before := x.scrub(n)
	if !before.Running || !before.Ordered || before.Round != round || before.Now.Repaired == 0 || before.EndedRound == round {
		t.Fatalf("after the start: %+v", before)
	}
	awaitWhole(x.ctx, t, x.c)
	if again := x.order(n, 0); again != round {
		t.Errorf("an order begins round %d, want %d to go on", again, round)
	}
	got := x.awaitScrub(n, round)
	if total := x.awaitScrub(n, x.order(n, 0)); got.Now.Chunks > total.Now.Chunks+total.Now.Chunks/4 || got.LostChunks > 0 {
		t.Errorf("%d chunks were read in a round with a kill, and %d in one without", got.Now.Chunks, total.Now.Chunks)
	}
}

// standby returns a node that is a standby of the root slice.
func (x *collected) standby() *servertest.Node {
	active := x.c.Active(ids.RootSlice)
	for _, n := range x.c.Nodes {
		if n != active {
			return n
		}
	}
	x.t.Fatal("no node is a standby")
	return nil
}

// equal waits until a node's copy of the root slice shows the same as the active's.
func (x *collected) equal(n *servertest.Node) {
	x.t.Helper()
	servertest.Await(x.ctx, x.t, fmt.Sprintf("node %d to show what the active does", n.Index), func() error {
		at, mine, err := n.Server().CopySum(ids.RootSlice)
		if err != nil {
			return err
		}
		other, theirs, err := x.c.Active(ids.RootSlice).Server().CopySum(ids.RootSlice)
		if err == nil && (at != other || mine != theirs) {
			err = fmt.Errorf("at %d %s, at %d %s", at, mine, other, theirs)
		}
		return err
	})
}

// TestScrub_MakesAnOddStateAnew changes a record of a standby beneath everything. While files
// are written the standby finds it, tells it, and gets the state anew; before and after that
// states are equal.
func TestScrub_MakesAnOddStateAnew(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	object := x.write("file", 1)
	for i := range 20 {
		x.write(fmt.Sprint("more", i), uint64(100+i))
	}
	n := x.standby()
	if got := x.awaitScrub(n, x.order(n, 0)); got.Now.States != 1 || got.Now.Different != 0 {
		t.Fatalf("%+v", got)
	}
	if err := n.Server().SpoilRecord(x.ctx, ids.Object(object)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	stop := make(chan struct{})
	go func() { // writes beside it
		defer close(ended)
		cl := x.c.Connect("root")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if r, err := cl.Operate(x.ctx, ids.RootSlice, create(fmt.Sprint("beside", i)), nil); err != nil || r.Kind != 0 {
				t.Errorf("a write beside it: %v %v", r, err)
				return
			}
		}
	}()
	servertest.Await(x.ctx, t, "the difference to be found", func() error {
		if got := x.awaitScrub(n, x.order(n, 0)); got.Total.Different != 1 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	servertest.Await(x.ctx, t, "the state to be equal again", func() error {
		if got := x.awaitScrub(n, x.order(n, 0)); len(got.Different) > 0 || got.Now.States != 1 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	close(stop)
	<-ended
	awaitWhole(x.ctx, t, x.c)
	x.equal(n)
	for _, other := range x.c.Nodes {
		if got := x.scrub(other); got.Total.Different > 0 && other != n {
			t.Errorf("node %d: %+v", other.Index, got)
		}
	}
}

// TestScrub_LeavesEnoughMembers spoils the state of a standby while another member is away:
// it tells so, and gets the state anew once the other one is back.
func TestScrub_LeavesEnoughMembers(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	object := x.write("file", 1)
	n := x.standby()
	var away *servertest.Node
	for _, other := range x.c.Nodes {
		if other != n && other != x.c.Active(ids.RootSlice) {
			away = other
		}
	}
	away.Kill()
	awaitState(x.ctx, t, x.c, away, geoconfig.Failed)
	if err := n.Server().SpoilRecord(x.ctx, ids.Object(object)); err != nil {
		t.Fatal(err)
	}
	got := x.awaitScrub(n, x.order(n, 0))
	if len(got.Different) != 1 || got.Different[0].Slice != ids.RootSlice || got.Different[0].ActiveDiffers {
		t.Fatalf("%+v", got)
	}
	x.write("written", 2) // the slice goes on with two members
	if got := x.awaitScrub(n, x.order(n, 0)); len(got.Different) != 1 {
		t.Fatalf("%+v", got)
	}
	away.Start()
	awaitWhole(x.ctx, t, x.c)
	servertest.Await(x.ctx, t, "the state to be equal again", func() error {
		if got := x.awaitScrub(n, x.order(n, 0)); len(got.Different) > 0 || got.Now.States != 1 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	x.equal(n)
}
