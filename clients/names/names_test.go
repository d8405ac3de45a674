package names

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// judge is a Sessions whose leases are good until they are ended all at once.
type judge struct {
	ended  atomic.Bool
	before uint64
	refuse bool
}

func (j *judge) Before() uint64 { return j.before }

func (j *judge) Accept(_ ids.Node, before uint64, _ *pb.Grant) (session.Stamp, bool) {
	return session.Stamp{}, before == j.before && !j.refuse
}

func (j *judge) Left(session.Stamp) time.Duration {
	if j.ended.Load() {
		return 0
	}
	return time.Second
}

var (
	dir  = ids.NewObject(1, 10)
	file = ids.NewObject(1, 20)
)

func fileAttr(change uint64) *pb.Attr {
	return &pb.Attr{Object: uint64(file), Mode: 0o100644, Parent: uint64(dir), Change: change, Version: change, Nlink: 1}
}

func grant(o ids.Object, what pb.Grant_What) []*pb.Grant {
	return []*pb.Grant{{Object: uint64(o), What: what}}
}

// looked puts one looked-up name into a cache.
func looked(c *Cache) {
	m := c.MarkDir(dir)
	c.Learn(&m, "n", grant(dir, pb.Grant_NAMES), func(l *Learner) {
		l.Attr(fileAttr(5), false)
		l.Entry(dir, "f", Entry{Object: file, Type: 0o100000})
		l.Entry(dir, "none", Entry{})
	})
}

func TestLease_CoversNamesAndAttributes(t *testing.T) {
	ends := map[string]func(*Cache, *judge){
		"revoked":     func(c *Cache, _ *judge) { c.Revoke(dir, pb.Grant_NAMES) },
		"session end": func(_ *Cache, j *judge) { j.ended.Store(true) },
		"cleared":     func(c *Cache, _ *judge) { c.Clear() },
	}
	for name, end := range ends {
		j := &judge{}
		c := New(j, Limits{})
		looked(c)
		if e, left, ok := c.Lookup(dir, "f"); !ok || e.Object != file || left != time.Second {
			t.Errorf("%s: before, f is %+v, %v, %v", name, e, left, ok)
		}
		if e, _, ok := c.Lookup(dir, "none"); !ok || e.Object != 0 {
			t.Errorf("%s: before, none is %+v, %v, want known not to be there", name, e, ok)
		}
		if _, _, ok := c.Attr(file); !ok {
			t.Errorf("%s: before, the attributes are not known", name)
		}
		end(c, j)
		_, _, found := c.Lookup(dir, "f")
		_, _, known := c.Attr(file)
		if found || known {
			t.Errorf("%s: afterwards the name (%v) or the attributes (%v) are still served", name, found, known)
		}
	}
}

func TestLearn_KeepsNothingWithoutALease(t *testing.T) {
	c := New(&judge{refuse: true}, Limits{})
	looked(c)
	if objects, entries := c.Len(); objects != 0 || entries != 0 {
		t.Errorf("%d attributes and %d names are kept, want none", objects, entries)
	}
}

func TestLease_FilesOwnOutlivesTheDirectorys(t *testing.T) {
	c := New(&judge{}, Limits{})
	looked(c)
	m := c.MarkObject(file)
	c.Learn(&m, "n", grant(file, pb.Grant_FILE), func(l *Learner) { l.Attr(fileAttr(5), false) })
	c.Revoke(dir, pb.Grant_NAMES)
	if _, _, ok := c.Attr(file); !ok {
		t.Error("the attributes went with the directory's lease, want them under the file's own")
	}
	c.Revoke(file, pb.Grant_FILE)
	if _, _, ok := c.Attr(file); ok {
		t.Error("the attributes are served after their lease was revoked")
	}
}

func TestLearn_LateAnswerHidesNothingNewer(t *testing.T) {
	c := New(&judge{}, Limits{})
	looked(c)
	// Of our own change, an older read comes after it.
	late := c.MarkObject(file)
	m := c.MarkObject(file)
	c.Learn(&m, "n", nil, func(l *Learner) { l.Attr(fileAttr(9), false) })
	c.Learn(&late, "n", nil, func(l *Learner) { l.Attr(fileAttr(5), false) })
	if a, _, ok := c.Attr(file); !ok || a.Change != 9 {
		t.Errorf("got change %d (%v), want 9", a.GetChange(), ok)
	}
	// A lease lost and granted again while the answer was on its way: what it
	// says may be older than what the new lease would.
	late = c.MarkObject(file)
	c.Revoke(dir, pb.Grant_NAMES)
	c.Revoke(file, pb.Grant_FILE)
	again := c.MarkDir(dir)
	c.Learn(&again, "n", grant(dir, pb.Grant_NAMES), func(*Learner) {})
	c.Learn(&late, "n", nil, func(l *Learner) { l.Attr(fileAttr(9), false) })
	if _, _, ok := c.Attr(file); ok {
		t.Error("an answer from before the lease is served under it")
	}
}

func TestBegin_OwnChangesOutliveALapsedLease(t *testing.T) {
	j := &judge{}
	c := New(j, Limits{})
	looked(c)
	m := c.Begin(dir, 0, file, "f")
	j.ended.Store(true) // no keep-alive is answered
	c.Learn(&m, "n", nil, func(l *Learner) { l.Entry(dir, "f", Entry{}) })
	c.End(&m)
	m = c.Begin(dir, 0, file, "none")
	c.Learn(&m, "n", nil, func(l *Learner) { l.Entry(dir, "none", Entry{Object: file, Type: 0o100000}) })
	c.End(&m)
	j.ended.Store(false) // one is: the session went on all the time
	if e, _, ok := c.Lookup(dir, "f"); ok && e.Object != 0 {
		t.Errorf("f is %+v, and was removed", e)
	}
	if e, _, ok := c.Lookup(dir, "none"); ok && e.Object == 0 {
		t.Error("none is known not to be there, and was made")
	}
}

func TestBegin_LateReadUndoesNoOwnChange(t *testing.T) {
	c := New(&judge{}, Limits{})
	looked(c)
	read := c.MarkDir(dir) // asked before the name is removed, answered after
	op := c.Begin(dir, 0, file)
	c.Learn(&op, "n", nil, func(l *Learner) { l.Entry(dir, "f", Entry{}) })
	c.End(&op)
	c.Learn(&read, "n", grant(dir, pb.Grant_NAMES), func(l *Learner) { l.Entry(dir, "f", Entry{Object: file}) })
	if e, _, ok := c.Lookup(dir, "f"); ok && e.Object != 0 {
		t.Error("a removed name is served again")
	}
}

// TestLearn_RefusesWhatIsOlderThanOwnChanges reads names before an own operation
// changes them and learns them after it: of directories that the read asked
// about and of one that came along, under a lease or without one.
func TestLearn_RefusesWhatIsOlderThanOwnChanges(t *testing.T) {
	along := ids.NewObject(1, 11)
	for what, known := range map[string]bool{"leased before": true, "not leased before": false} {
		for _, changed := range []ids.Object{dir, along, 0} {
			c := New(&judge{}, Limits{})
			grants := append(grant(dir, pb.Grant_NAMES), grant(along, pb.Grant_NAMES)...)
			if known {
				m := c.MarkDir(dir)
				c.Learn(&m, "n", grants, func(*Learner) {})
			}
			read := c.MarkDir(dir)
			if changed != 0 {
				op := c.Begin(changed, 0, 0, "made")
				c.End(&op)
			}
			below := false
			c.Learn(&read, "n", grants, func(l *Learner) {
				l.Entry(dir, "made", Entry{})
				if below = l.Below(along); below {
					l.Complete(along)
				}
			})
			// Of a directory that was forgotten meanwhile nobody knows that the
			// other was not.
			if _, _, taken := c.Lookup(dir, "made"); taken && changed == dir || !taken && changed == 0 {
				t.Errorf("%s, %x changed: that a name is not there is taken: %v", what, uint64(changed), taken)
			}
			if below && changed == along || !below && changed == 0 {
				t.Errorf("%s, %x changed: what came along is taken: %v", what, uint64(changed), below)
			}
		}
	}
}

// TestLearn_TakesNothingBelowAnExclusiveDirectory learns names of an exclusive
// directory that come along with another answer. The active does not know all of
// them.
func TestLearn_TakesNothingBelowAnExclusiveDirectory(t *testing.T) {
	c := New(&judge{}, Limits{})
	m := c.MarkDir(dir)
	c.Learn(&m, "n", grant(dir, pb.Grant_NAMES), func(*Learner) {})
	c.Learn(&m, "n", grant(dir, pb.Grant_ALONE), func(l *Learner) {
		if l.Below(dir) {
			t.Error("what came along is taken")
		}
	})
}

// TestUnheld_FilesComeInTheirOrder asks for the files behind one of a directory:
// only known small ones without leases of their own.
func TestUnheld_FilesComeInTheirOrder(t *testing.T) {
	c := New(&judge{}, Limits{})
	m := c.MarkDir(dir)
	at := func(i uint64) ids.Object { return ids.NewObject(1, 100+i) }
	grants := append(grant(dir, pb.Grant_NAMES), grant(at(4), pb.Grant_FILE)...)
	c.Learn(&m, "n", grants, func(l *Learner) {
		for i, name := range []string{"f", "e", "d", "c", "held", "large", "empty", "dir"} {
			a := &pb.Attr{Object: uint64(at(uint64(i))), Mode: typeRegular, Parent: uint64(dir), Size: 10, Nlink: 1}
			switch name {
			case "large":
				a.Size = 1000
			case "empty":
				a.Size = 0
			case "dir":
				a.Mode = typeDir
			}
			l.Attr(a, false)
			l.Entry(dir, name, Entry{Object: at(uint64(i)), Type: a.Mode})
		}
		l.Entry(dir, "elsewhere", Entry{Object: ids.NewObject(2, 1), Type: typeRegular})
	})
	if got, want := c.Unheld(dir, at(2), 10, 100), []ids.Object{at(1), at(0), at(3)}; !slices.Equal(got, want) {
		t.Errorf("behind d are %v, want e, f and c: %v", got, want)
	}
	if got := c.Unheld(dir, at(2), 1, 100); len(got) != 1 || got[0] != at(1) {
		t.Errorf("behind d is %v, want e", got)
	}
	c.Learn(&m, "n", grant(dir, pb.Grant_ALONE), func(*Learner) {})
	if got := c.Unheld(dir, at(2), 10, 100); len(got) != 0 {
		t.Errorf("of a directory that is ours alone come %v", got)
	}
}

func TestRevoke_SaysThatADirectoryIsBusy(t *testing.T) {
	c := New(&judge{}, Limits{})
	looked(c)
	op := c.Begin(dir, 0, 0)
	if !c.Revoke(dir, pb.Grant_NAMES) {
		t.Error("an operation is under way, and the revocation does not hear of it")
	}
	c.Learn(&op, "n", nil, func(l *Learner) { l.Entry(dir, "g", Entry{Object: file}) })
	c.End(&op)
	if _, _, ok := c.Lookup(dir, "g"); ok {
		t.Error("what an operation answers is kept under a lease that was revoked meanwhile")
	}
	if c.Revoke(dir, pb.Grant_NAMES) {
		t.Error("nothing is under way any more")
	}
}

func TestListing_WholeOneKnowsWhatIsNotThere(t *testing.T) {
	c := New(&judge{}, Limits{})
	m := c.Begin(ids.RootObject, 0, 0)
	c.Learn(&m, "n", grant(dir, pb.Grant_NAMES), func(l *Learner) { l.Complete(dir) }) // just made
	c.End(&m)
	if e, _, ok := c.Lookup(dir, "any"); !ok || e.Object != 0 {
		t.Errorf("got %+v, %v, want known not to be there", e, ok)
	}
	op := c.Begin(dir, 0, 0)
	c.Learn(&op, "n", nil, func(l *Learner) { l.Entry(dir, "any", Entry{Object: file}) })
	c.End(&op)
	if all, ok := c.Listing(dir); !ok || len(all) != 1 || all[0].Name != "any" {
		t.Errorf("the listing is %+v, %v", all, ok)
	}
	c.Forget(dir) // the outcome of something is not known
	if _, ok := c.Listing(dir); ok {
		t.Error("a listing is whole after it was forgotten")
	}
}

func TestUnbroken_OnlyUnderOneLease(t *testing.T) {
	for name, between := range map[string]func(*Cache){
		"nothing between":  func(*Cache) {},
		"a revocation":     func(c *Cache) { c.Revoke(dir, pb.Grant_NAMES) },
		"our own removing": func(c *Cache) { m := c.Begin(dir, 0, 0); c.End(&m) },
	} {
		c := New(&judge{}, Limits{})
		var first Mark
		one := c.MarkDir(dir)
		c.Learn(&one, "n", grant(dir, pb.Grant_NAMES), func(l *Learner) { first = l.Anchor(dir) })
		between(c)
		two := c.MarkDir(dir)
		whole := false
		c.Learn(&two, "n", grant(dir, pb.Grant_NAMES), func(l *Learner) { whole = l.Unbroken(&first, dir) })
		if want := name == "nothing between"; whole != want {
			t.Errorf("%s: whole is %v, want %v", name, whole, want)
		}
	}
}

func TestCache_IsBounded(t *testing.T) {
	c := New(&judge{}, Limits{})
	for d := range 40 {
		id := ids.NewObject(2, uint64(d+1))
		m := c.MarkDir(id)
		c.Learn(&m, "n", grant(id, pb.Grant_NAMES), func(l *Learner) {
			for i := range 5000 {
				o := ids.NewObject(3, uint64(d*5000+i))
				l.Attr(&pb.Attr{Object: uint64(o), Mode: 0o100644, Parent: uint64(id), Content: &pb.Content{Inline: make([]byte, 1000)}}, false)
				l.Entry(id, fmt.Sprint(i), Entry{Object: o})
			}
		})
		objects, entries := c.Len()
		if objects > DefaultObjects || entries > DefaultEntries || c.inline > DefaultInline {
			t.Fatalf("%d attributes, %d names, %d bytes of content are kept", objects, entries, c.inline)
		}
	}
	c.Clear()
	if objects, entries := c.Len(); objects != 0 || entries != 0 || c.inline != 0 {
		t.Errorf("after clearing: %d attributes, %d names, %d bytes", objects, entries, c.inline)
	}
}

// TestLearn_KeepsNoCopy reads what is under a lease from a member that does not act for
// the slice: what that one says, newer or older, is told on and not kept.
func TestLearn_KeepsNoCopy(t *testing.T) {
	c := New(&judge{}, Limits{})
	looked(c)
	told := 0
	c.OnAttr = func(*pb.Attr) { told++ }
	for _, change := range []uint64{4, 5, 6} {
		m := c.MarkDir(dir)
		m.OfCopy()
		c.Learn(&m, "n", nil, func(l *Learner) {
			l.Attr(fileAttr(change), false)
			l.Entry(dir, "f", Entry{})
			l.Entry(dir, "other", Entry{Object: file, Type: 0o100000})
			l.Complete(dir)
			if l.Below(dir) {
				t.Error("names below the directory would be taken")
			}
		})
	}
	if a, _, ok := c.Attr(file); !ok || a.Change != 5 || told != 3 {
		t.Errorf("the attributes are %v, %v, and %d were told of", a, ok, told)
	}
	if e, _, ok := c.Lookup(dir, "f"); !ok || e.Object != file {
		t.Errorf("f is %+v, %v", e, ok)
	}
	if e, _, ok := c.Lookup(dir, "other"); ok {
		t.Errorf("other is %+v", e)
	}
}
