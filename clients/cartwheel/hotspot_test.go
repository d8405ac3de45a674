//go:build linux

package cartwheel_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// hotSize is the size of the file that all read.
const hotSize = 3 << 20

// crowd is two nodes at each of five sites, of which two have no member of the root's
// slice, and a file in that slice.
type crowd struct {
	*servertest.Cluster
	t       *testing.T
	content string
	outside []string // the two sites
	// direct counts the answers with chunks that members sent to clients.
	direct atomic.Int64
}

func newCrowd(t *testing.T, o servertest.Options) *crowd {
	t.Helper()
	x := &crowd{t: t, content: string(noise(hotSize))}
	sites := []string{"a", "b", "c", "d", "e", "a", "b", "c", "d", "e"}
	o.Sites = sites
	x.Cluster = servertest.Start(t, o)
	row, err := x.Row(t.Context(), ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	x.outside = []string{"a", "b", "c", "d", "e"}
	nodes := map[string]bool{}
	home := ""
	for _, n := range x.Nodes {
		nodes[string(n.ID())] = true
		if _, member := row.Member(n.ID()); member {
			x.outside = slices.DeleteFunc(x.outside, func(s string) bool { return s == sites[n.Index] })
		}
		if n.ID() == row.Active {
			home = sites[n.Index]
		}
	}
	for _, n := range x.Nodes {
		if _, member := row.Member(n.ID()); member {
			n.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
				if m == method.Get && !nodes[peer] {
					x.direct.Add(1)
				}
				return wire.Verdict{}
			})
		}
	}
	if len(x.outside) != 2 {
		t.Fatalf("the sites without a member are %v, want two", x.outside)
	}
	put(t, clientOf(t, x.Cluster, home), mount.Root, "hot", x.content, 0)
	return x
}

// at returns the nodes of a site.
func (x *crowd) at(site string) (out []*servertest.Node) {
	for i, n := range x.Nodes {
		if string("abcde"[i%5]) == site {
			out = append(out, n)
		}
	}
	return out
}

// fetched counts the bytes that a site's nodes brought.
func (x *crowd) fetched(site string) (n uint64) {
	for _, node := range x.at(site) {
		if s := node.Server(); s != nil {
			n += s.Figures().Shared().FetchedBytes
		}
	}
	return n
}

// readBelow reads the file below cues, and checks it.
func (x *crowd) readBelow(cl *cartwheel.Client, cues ...string) {
	x.t.Helper()
	ctx, dir := context.Background(), mount.Root
	for _, name := range append(cues, "hot") {
		e, err := cl.Lookup(ctx, nobody, dir, name)
		if err != nil || e.Node == 0 {
			x.t.Errorf("looking up %s: %v", name, err)
			return
		}
		dir = e.Node
	}
	o, err := cl.Open(ctx, nobody, dir, mount.OpenRead)
	if err != nil {
		x.t.Error(err)
		return
	}
	defer cl.Release(dir, o.Handle, 1, false)
	buf := make([]byte, hotSize+1)
	for at := 0; at < hotSize; at += 128 << 10 {
		n, err := cl.Read(ctx, nobody, dir, o.Handle, int64(at), buf[at:min(at+128<<10, len(buf))])
		if err != nil || string(buf[at:at+n]) != x.content[at:at+n] || n == 0 {
			x.t.Errorf("%d bytes at %d, or others than were written: %v", n, at, err)
			return
		}
	}
}

// TestHotspot_EachSiteFetchesEachChunkOnce has three clients at each of two sites read
// one file at once.
func TestHotspot_EachSiteFetchesEachChunkOnce(t *testing.T) {
	for _, cues := range [][]string{{".Hotspot"}, {".Hotspot", ".WholeFile"}} {
		x := newCrowd(t, servertest.Options{})
		var all sync.WaitGroup
		for _, site := range x.outside {
			for range 3 {
				cl := clientOf(t, x.Cluster, site)
				all.Go(func() { x.readBelow(cl, cues...) })
			}
		}
		all.Wait()
		for _, site := range x.outside {
			if n := x.fetched(site); n != hotSize {
				t.Errorf("%v: site %s fetched %d bytes, want the file's %d", cues, site, n, hotSize)
			}
		}
		if n := x.direct.Load(); n != 0 {
			t.Errorf("%v: members answered clients themselves %d times", cues, n)
		}
		late := clientOf(t, x.Cluster, x.outside[0])
		x.readBelow(late, cues...)
		if n := x.fetched(x.outside[0]); n != hotSize {
			t.Errorf("%v: for one more client the site fetched %d bytes more", cues, n-hotSize)
		}
	}
}

// TestHotspot_UsersReadWithTheirTickets is the same for a user, whose tickets the
// site's nodes check with the file's manifest.
func TestHotspot_UsersReadWithTheirTickets(t *testing.T) {
	x := newCrowd(t, servertest.Options{})
	ann := openedAs(t, x.Cluster, "ann", cartwheel.Options{Site: ids.Site(x.outside[0])})
	defer ann.Close()
	x.readBelow(ann, ".Hotspot")
	// Each of the site's nodes reads the manifest, too.
	if n := x.fetched(x.outside[0]); n < hotSize || n > hotSize+64<<10 {
		t.Errorf("the site fetched %d bytes for a file of %d", n, hotSize)
	}
	if n := x.direct.Load(); n != 0 {
		t.Errorf("members answered the user itself %d times", n)
	}
}

// TestHotspot_OutlivesANode kills one of the site's two nodes while clients read.
func TestHotspot_OutlivesANode(t *testing.T) {
	x := newCrowd(t, servertest.Options{})
	site := x.outside[0]
	victim := x.at(site)[0]
	var answers atomic.Int64
	half := make(chan struct{})
	victim.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		if m == method.Get && answers.Add(1) == 20 {
			close(half)
		}
		return wire.Verdict{Drop: m == method.Get && answers.Load() > 20}
	})
	var all sync.WaitGroup
	for range 2 {
		cl := clientOf(t, x.Cluster, site)
		all.Go(func() { x.readBelow(cl, ".Hotspot", ".WholeFile") })
	}
	<-half
	victim.Kill()
	all.Wait()
}

// TestHotspot_PassesOverNodesOfBefore has nodes at the clients' sites that know no
// such requests. The clients ask the members of the slice.
func TestHotspot_PassesOverNodesOfBefore(t *testing.T) {
	x := newCrowd(t, servertest.Options{Depend: func(_ int, d *server.Deps) { d.Feature = version.WideCoordinates }})
	x.readBelow(clientOf(t, x.Cluster, x.outside[0]), ".Hotspot")
	if n := x.fetched(x.outside[0]); n != 0 {
		t.Errorf("a node of before was asked for %d bytes", n)
	}
	if x.direct.Load() == 0 {
		t.Error("no member was asked")
	}
}

// TestHotspot_FallsBackWhereNodesKeepNothing has the site's nodes refuse.
func TestHotspot_FallsBackWhereNodesKeepNothing(t *testing.T) {
	x := newCrowd(t, servertest.Options{Configure: func(_ int, c *server.Config) { c.NeighbourCacheBytes = 0 }})
	x.readBelow(clientOf(t, x.Cluster, x.outside[0]), ".Hotspot", ".WholeFile")
	if x.direct.Load() == 0 {
		t.Error("no member was asked")
	}
}
