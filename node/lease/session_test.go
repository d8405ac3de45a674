package lease

import (
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"pgregory.net/rapid"
)

const (
	objects = 4
	clients = 4
	length  = 100
)

func objectN(n int) ids.Object {
	return ids.NewObject(ids.Slice(1+n%2), uint64(n))
}

// believer is a client as the promise sees it: it uses a lease until it has
// answered its revocation, its session is over on its own clock, or it was told
// that the slice's leases are void.
type believer struct {
	session  ID
	end      int64
	believes map[key]uint64 // serial of the grant
	inbox    []Revocation
	voided   []ids.Slice // to learn at the next keep-alive
}

// play is one random run.
type play struct {
	*rapid.T
	table   *Table
	now     int64
	clients [clients]*believer
	changes []*running
	missed  int
}

type running struct {
	*Change
	session ID
	touches []tree.Touch
	began   int64
	ready   bool
}

// TestTable_NoChangeBesideABelievedLease checks, over random histories, that no
// change goes on while another client may still believe in a lease on what it
// touches, that none is granted meanwhile, and that every change goes on within
// one session.
func TestTable_NoChangeBesideABelievedLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &play{T: t, table: New(Config{Length: length, MaxSessions: 100, MaxLeases: 14, MaxOpen: 3}, 7)}
		for i := range p.clients {
			p.clients[i] = &believer{believes: map[key]uint64{}}
		}
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			p.step(rapid.IntRange(0, 13).Draw(t, "step"), rapid.IntRange(0, clients-1).Draw(t, "client"))
			p.check()
		}
		for range 12 { // they keep alive, and answer nothing
			p.now += length / 4
			for i, c := range p.clients {
				p.keepAlive(c, uint64(i+1))
			}
			_, ready := p.table.Expire(p.now)
			p.wake(ready)
			p.check()
		}
		for _, c := range p.changes {
			if !c.Ready() {
				t.Fatal("a client that answers nothing holds up a change for ever")
			}
		}
		p.now += 2 * length
		p.wake(func() []*Change { _, ready := p.table.Expire(p.now); return ready }())
		for _, c := range p.changes {
			if !c.Ready() {
				t.Fatal("a change waits though every session is over")
			}
			p.table.End(c.Change)
		}
		if s, l := p.table.Len(); s != 0 || l != 0 || len(p.table.objects) != 0 || len(p.table.openers) != 0 {
			t.Fatalf("left over: %d sessions, %d leases, %d objects, %d openers", s, l, len(p.table.objects), len(p.table.openers))
		}
	})
}

func (p *play) step(what, who int) {
	c := p.clients[who]
	id := uint64(who + 1)
	switch what {
	case 0, 1:
		p.keepAlive(c, id)
	case 2, 3, 4, 5:
		k := p.key()
		if serial, ok := p.table.Grant(c.session, k.object, k.what, p.now); ok {
			for _, r := range p.changes {
				for _, t := range r.touches {
					if (key{t.Object, t.What}) == k {
						p.Fatalf("a lease on %v is granted while it changes", k)
					}
				}
			}
			c.believes[k] = serial
		}
	case 6, 7:
		p.begin(c)
	case 8, 9, 10:
		p.answer(c, who)
	case 11:
		if len(p.changes) > 0 {
			r := p.changes[0]
			if r.Ready() {
				p.table.End(r.Change)
				p.changes = p.changes[1:]
			}
		}
	case 12:
		p.now += int64(rapid.IntRange(1, length).Draw(p.T, "time"))
		ended, ready := p.table.Expire(p.now)
		for _, e := range ended {
			if b := p.clients[e.Client-1]; b.session == e.Session && p.now < b.end {
				p.Fatal("a session ends before the client's clock says so")
			}
		}
		p.wake(ready)
	default:
		if rapid.Bool().Draw(p.T, "evict") {
			p.deliver(p.table.Evict())
			return
		}
		s := ids.Slice(rapid.IntRange(1, 2).Draw(p.T, "slice"))
		p.wake(p.table.Void(s, p.now))
		for _, b := range p.clients {
			b.voided = append(b.voided, s)
		}
	}
}

// wake checks that only changes that wait for nothing are reported, once.
func (p *play) wake(ready []*Change) {
	for _, c := range ready {
		for _, r := range p.changes {
			if r.Change == c {
				if !c.Ready() || r.ready {
					p.Fatal("a change is reported that waits, or twice")
				}
				r.ready = true
			}
		}
	}
}

func (p *play) key() key {
	what := pb.Grant_FILE
	if rapid.Bool().Draw(p.T, "names") {
		what = pb.Grant_NAMES
	}
	return key{objectN(rapid.IntRange(0, objects-1).Draw(p.T, "object")), what}
}

func (p *play) keepAlive(c *believer, id uint64) {
	sent := p.now
	p.now += int64(rapid.IntRange(0, 5).Draw(p.T, "delay"))
	got, left, ready, err := p.table.KeepAlive(c.session, id, length-10, p.now)
	p.wake(ready)
	if err != nil {
		p.Fatal(err)
	}
	if got != c.session {
		c.believes = map[key]uint64{}
	}
	c.session, c.end = got, sent+left
	for _, s := range c.voided {
		for k := range c.believes {
			if k.object.Slice() == s {
				delete(c.believes, k)
			}
		}
	}
	c.voided = nil
}

func (p *play) begin(c *believer) {
	r := &running{session: c.session, began: p.now}
	for range rapid.IntRange(1, 3).Draw(p.T, "touches") {
		k := p.key()
		r.touches = append(r.touches, tree.Touch{Object: k.object, What: k.what, Unlinked: rapid.Bool().Draw(p.T, "unlinked")})
	}
	var revs []Revocation
	r.Change, revs = p.table.Begin(nil, r.touches, c.session)
	r.ready = r.Ready()
	p.changes = append(p.changes, r)
	p.deliver(revs)
}

// deliver puts revocations into inboxes, and loses some.
func (p *play) deliver(revs []Revocation) {
	for _, v := range revs {
		b := p.clients[v.Client-1]
		if rapid.IntRange(0, 5).Draw(p.T, "lost") == 0 {
			p.missed++
			continue
		}
		b.inbox = append(b.inbox, v)
	}
}

func (p *play) answer(c *believer, who int) {
	if len(c.inbox) == 0 {
		return
	}
	v := c.inbox[0]
	c.inbox = c.inbox[1:]
	var held []ids.Object
	for _, it := range v.Items {
		k := key{ids.Object(it.Object), it.What}
		if c.believes[k] < v.Serial {
			delete(c.believes, k)
		}
		if it.Unlinked && (it.Object+uint64(who))%3 == 0 {
			held = append(held, k.object)
		}
	}
	if v.Session != c.session {
		return
	}
	p.wake(p.table.Answer(v.Session, v.Serial, held))
	if rapid.IntRange(0, 3).Draw(p.T, "twice") == 0 {
		p.wake(p.table.Answer(v.Session, v.Serial, held))
	}
}

// check is the promise itself.
func (p *play) check() {
	for _, r := range p.changes {
		if !r.Ready() {
			continue
		}
		for _, c := range p.clients {
			if c.session == r.session || p.now >= c.end {
				continue
			}
			for _, t := range r.touches {
				if _, believes := c.believes[key{t.Object, t.What}]; believes {
					p.Fatalf("a change of %v goes on while session %d believes in its lease", t, c.session)
				}
			}
		}
	}
	if _, l := p.table.Len(); l > 14+clients*objects*2 {
		p.Fatalf("%d leases", l)
	}
}

// TestHolders_AreAskedAtAnUnlink checks that a session that has an object open
// is asked when the object loses its name, even if its lease has gone before.
func TestHolders_AreAskedAtAnUnlink(t *testing.T) {
	table := New(DefaultConfig(), 1)
	o := objectN(1)
	reader, _, _, err := table.KeepAlive(0, 1, 1e10, 0)
	if err != nil {
		t.Fatal(err)
	}
	table.Grant(reader, o, pb.Grant_FILE, 0)
	if v := table.Unanswered(reader, 0); len(v) != 0 {
		t.Errorf("nothing was asked, and %v is unanswered", v)
	}
	write, revs := table.Begin(nil, []tree.Touch{{Object: o, What: pb.Grant_FILE}}, 0)
	if len(revs) != 1 || write.Ready() || len(revs[0].Items) != 1 || !revs[0].Items[0].Unlinked {
		t.Fatalf("a write revokes %v", revs)
	}
	if v := table.Unanswered(reader, 0); len(v) != 1 || v[0].Serial != revs[0].Serial || len(v[0].Items) != 1 {
		t.Errorf("%v is unanswered", v)
	}
	if v := table.Unanswered(reader, revs[0].Serial); len(v) != 0 {
		t.Errorf("%v is sent again though it was seen", v)
	}
	if ready := table.Answer(reader, revs[0].Serial, []ids.Object{o}); len(ready) != 1 {
		t.Fatalf("%d changes go on, want 1", len(ready))
	}
	table.End(write)
	unlink, revs := table.Begin(nil, []tree.Touch{{Object: o, What: pb.Grant_FILE, Unlinked: true}}, 0)
	if len(revs) != 1 || unlink.Ready() {
		t.Fatalf("an unlink does not ask who has the file open: %v", revs)
	}
	table.Answer(reader, revs[0].Serial, []ids.Object{o})
	if got := fmt.Sprint(unlink.Holders()); got != fmt.Sprint([]tree.Holder{{Object: o, Client: 1}}) {
		t.Errorf("holders %s, want client 1 of %v", got, o)
	}
	if !table.Opened(reader, objectN(2)) {
		t.Error("nothing is under way, and an open is told to wait")
	}
	unlink, revs = table.Begin(nil, []tree.Touch{{Object: objectN(2), What: pb.Grant_FILE, Unlinked: true}}, 0)
	if len(revs) != 1 || revs[0].Items[0].Object != uint64(objectN(2)) {
		t.Errorf("an unlink does not ask who opened the file without a lease: %v", revs)
	}
	if table.Opened(reader, objectN(2)) {
		t.Error("the file is about to go, its openers were asked, and one more open goes on")
	}
	table.End(unlink)
	if !table.Opened(reader, objectN(2)) {
		t.Error("an open is told to wait for an unlink that is over")
	}
}

// TestRevokeSlice_LeasesPassedOnRunOut checks that leases passed on delay the
// next active's changes for the time they had left, and that no client is asked.
func TestRevokeSlice_LeasesPassedOnRunOut(t *testing.T) {
	old, next := New(DefaultConfig(), 1), New(DefaultConfig(), 1)
	id, left, _, err := old.KeepAlive(0, 1, 1e10, 0)
	if err != nil || left != 3e9 {
		t.Fatalf("left %d, %v", left, err)
	}
	old.Grant(id, objectN(1), pb.Grant_NAMES, 0)
	old.Grant(id, objectN(2), pb.Grant_NAMES, 0)
	revs := old.RevokeSlice(objectN(1).Slice())
	if len(revs) != 1 || len(revs[0].Items) != 1 {
		t.Fatalf("revocations %v", revs)
	}
	handed := old.Handover(objectN(1).Slice(), 1e9)
	if len(handed) != 1 || handed[0].Left != 2e9 {
		t.Fatalf("handed over %v", handed)
	}
	next.TakeOver(handed, 5e9)
	c, revs := next.Begin(nil, []tree.Touch{{Object: objectN(1), What: pb.Grant_NAMES}}, 0)
	if len(revs) != 0 || c.Ready() {
		t.Fatal("a change goes on beside a lease of the former active")
	}
	if _, ready := next.Expire(7e9 - 1); len(ready) != 0 {
		t.Error("a handed-over lease ends early")
	}
	if _, ready := next.Expire(7e9); len(ready) != 1 {
		t.Error("a handed-over lease does not end")
	}
}

func TestTable_KeepsToItsLimits(t *testing.T) {
	table := New(Config{Length: 10, MaxSessions: 1, MaxLeases: 16, MaxOpen: 1}, 1)
	id, _, _, _ := table.KeepAlive(0, 1, 100, 0)
	if _, _, _, err := table.KeepAlive(0, 2, 100, 0); !fault.Is(err, fault.Overloaded) {
		t.Errorf("one session too many: %v", err)
	}
	if _, _, _, err := table.KeepAlive(id, 1, 0, 0); !fault.Is(err, fault.NotActive) {
		t.Errorf("a node without a lease: %v", err)
	}
	for n := range 20 {
		if _, ok := table.Grant(id, objectN(n), pb.Grant_FILE, 0); ok != (n < 16) {
			t.Errorf("lease %d: granted %v", n, ok)
		}
	}
	revs := table.Evict()
	if len(revs) != 1 || len(revs[0].Items) != 1 || revs[0].Items[0].Object != uint64(objectN(0)) {
		t.Fatalf("eviction revokes %v, want the oldest", revs)
	}
	if _, ok := table.Grant(id, objectN(16), pb.Grant_FILE, 0); ok {
		t.Error("an eviction that was only sent makes room")
	}
	table.Answer(id, revs[0].Serial, nil)
	if _, ok := table.Grant(id, objectN(16), pb.Grant_FILE, 0); !ok {
		t.Error("an eviction that was answered makes no room")
	}
	if got, _, _, err := table.KeepAlive(id, 1, 100, 10); err != nil || got == id {
		t.Errorf("a lapsed session keeps its number: %v", err)
	}
}

func BenchmarkGrantAndChange(b *testing.B) {
	table := New(DefaultConfig(), 1)
	id, _, _, _ := table.KeepAlive(0, 1, 1e12, 0)
	touches := make([]tree.Touch, 2)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		o := ids.NewObject(1, uint64(i%100_000))
		touches[0] = tree.Touch{Object: o, What: pb.Grant_FILE}
		touches[1] = tree.Touch{Object: objectN(1), What: pb.Grant_NAMES}
		c, _ := table.Begin(nil, touches, id)
		table.End(c)
		table.Grant(id, o, pb.Grant_FILE, 0)
	}
}

// TestHolders_IncludeSessionsOfItsDirectory unlinks a file that another session
// knew only by a lease on the names of its directory. The session is asked, at
// once, and again after it has lost that lease.
func TestHolders_IncludeSessionsOfItsDirectory(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		table := New(DefaultConfig(), 1)
		s, _, _, err := table.KeepAlive(0, 7, 1e12, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir, file := objectN(1), objectN(2)
		table.Grant(s, dir, pb.Grant_NAMES, 0)
		if earlier {
			made, revs := table.Begin(nil, []tree.Touch{{Object: dir, What: pb.Grant_NAMES, Name: []byte("other")}}, 0)
			table.Answer(s, revs[0].Serial, []ids.Object{file})
			if len(made.Holders()) != 0 {
				t.Errorf("%v hold something of a change that unlinks nothing", made.Holders())
			}
			table.End(made)
		}
		unlink, revs := table.Begin(nil, []tree.Touch{{Object: dir, What: pb.Grant_NAMES, Name: []byte("f")}, {Object: file, What: pb.Grant_FILE, Unlinked: true}}, 0)
		if len(revs) != 1 {
			t.Fatalf("earlier %v: %d revocations, want one", earlier, len(revs))
		}
		table.Answer(s, revs[0].Serial, []ids.Object{file})
		if h := unlink.Holders(); !unlink.Ready() || len(h) != 1 || h[0] != (tree.Holder{Object: file, Client: 7}) {
			t.Errorf("earlier %v: the holders are %v, want 7; ready: %v", earlier, h, unlink.Ready())
		}
	}
}
