package replies

import (
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/owed"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

var (
	dir, file = ids.NewObject(1, 10), ids.NewObject(1, 20)

	fileAttr = &pb.Attr{Object: uint64(file), Mode: mount.TypeRegular | 0o644, Nlink: 1, Parent: uint64(dir), Size: 3, Stored: 513}
)

// always is a names.Sessions whose leases have a minute left.
type always struct{}

func (always) Before() uint64 { return 0 }

func (always) Accept(ids.Node, uint64, *pb.Grant) (session.Stamp, bool) { return session.Stamp{}, true }

func (always) Left(session.Stamp) time.Duration { return time.Minute }

// kernel is a mount.Notifier that only notes which names it is to look up anew.
type kernel struct{ anew []string }

// InvalidateEntry implements mount.Notifier.
func (k *kernel) InvalidateEntry(_ mount.Inode, name string) { k.anew = append(k.anew, name) }

// InvalidateInode implements mount.Notifier.
func (k *kernel) InvalidateInode(mount.Inode, int64, int64) {}

// Delete implements mount.Notifier.
func (k *kernel) Delete(mount.Inode, mount.Inode, string) {}

// Drained implements mount.Notifier.
func (k *kernel) Drained(then func()) { then() }

// newBuilder returns the Builder of a client that knows a directory's names under a
// lease, with the table of its inodes. The file has a lease of its own if it says so.
func newBuilder(t *testing.T, own bool) (*Builder, *inodes.Table, *kernel) {
	cache, table := names.New(always{}, names.Limits{}), inodes.New(0)
	m := cache.MarkDir(dir)
	grants := []*pb.Grant{{Object: uint64(dir), What: pb.Grant_NAMES}}
	if own {
		grants = append(grants, &pb.Grant{Object: uint64(file), What: pb.Grant_FILE})
	}
	cache.Learn(&m, "n", grants, func(l *names.Learner) {
		l.Attr(fileAttr, false)
		l.Entry(dir, "f", names.Entry{Object: file, Type: mount.TypeRegular})
		l.Entry(dir, "none", names.Entry{})
	})
	table.Look(dir, cue.Set{}, true)
	k, told := inodes.NewKernel(table), &kernel{}
	k.Mount(told)
	engine := content.New(nil, content.Options{})
	t.Cleanup(func() {
		if err := engine.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return New(Options{Owed: owed.New(), Names: cache, Nodes: table, Kernel: k, Clock: func() time.Duration { return time.Hour }, Engine: func() *content.Engine { return engine }}), table, told
}

func TestStat_CountsBlocks(t *testing.T) {
	b, _, _ := newBuilder(t, false)
	if a, dirty := b.Stat(fileAttr); a.Size != 3 || a.Blocks != 2 || dirty {
		t.Errorf("got %d bytes in %d blocks, dirty %v", a.Size, a.Blocks, dirty)
	}
	if a, _ := b.Stat(&pb.Attr{Mode: mount.TypeDir, Size: 7}); a.Size != directorySize {
		t.Errorf("a directory has %d bytes", a.Size)
	}
}

func TestNamed_BoundsWhatTheKernelKeeps(t *testing.T) {
	below, err := cue.ParsePath("/.SyncLevel=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name        string
		own         bool
		cues        cue.Set
		entry, attr time.Duration
	}{
		{"the directory's lease covers both", false, cue.Set{}, time.Minute, time.Minute},
		{"the file has a lease of its own", true, cue.Set{}, time.Minute, time.Minute},
		{"below cues the name is asked for each time", false, below, 0, 0},
		{"below cues the attributes are the file's", true, below, 0, time.Minute},
	} {
		b, _, _ := newBuilder(t, x.own)
		e := b.Named(In{Node: inodes.Plain(dir), Dir: dir, Cues: x.cues}, "f", fileAttr)
		if e.EntryValid != x.entry || e.AttrValid != x.attr || e.Node != inodes.Plain(file) {
			t.Errorf("%s: got %v for the name and %v for the attributes, want %v and %v", x.name, e.EntryValid, e.AttrValid, x.entry, x.attr)
		}
	}
}

func TestAttr_EndsWithTheName(t *testing.T) {
	b, _, _ := newBuilder(t, false)
	b.Entry(fileAttr, cue.Set{})
	if r := b.Attr(fileAttr); r.Valid != 0 {
		t.Errorf("without a name that the kernel believes, it keeps attributes for %v", r.Valid)
	}
	b.Named(In{Node: inodes.Plain(dir), Dir: dir}, "f", fileAttr)
	if r := b.Attr(fileAttr); r.Valid != time.Minute {
		t.Errorf("with the name, it keeps them for %v", r.Valid)
	}
}

// TestRename_SaysWhatTheKernelWasShown renames a name that means another object
// than the kernel was shown. The kernel asks once more, and is then believed.
func TestRename_SaysWhatTheKernelWasShown(t *testing.T) {
	b, _, told := newBuilder(t, false)
	if !b.asksAgain() {
		t.Skip("the kernel of this system does not ask again")
	}
	at := inodes.Plain(dir)
	b.Named(In{Node: at, Dir: dir}, "f", fileAttr)
	b.Name(at, "none", 0, time.Minute)
	r := Rename{PID: 1, From: inodes.Name{Dir: at, Name: "f"}, To: inodes.Name{Dir: at, Name: "none"}, Dir: dir, NewDir: dir}
	var asked [][2]ids.Object
	run := func(source, target ids.Object) error {
		asked = append(asked, [2]ids.Object{source, target})
		if source != 0 {
			return fault.E(fault.Stale, "replies.test", "", "")
		}
		return nil
	}
	if err := b.Rename(r, run); !fault.Is(err, fault.Stale) {
		t.Errorf("at first: got %v, want that the name is stale", err)
	}
	if len(told.anew) != 2 {
		t.Errorf("the kernel looks up %v anew, want both names", told.anew)
	}
	if err := b.Rename(r, run); err != nil {
		t.Errorf("asked once more: %v", err)
	}
	want := [][2]ids.Object{{file, 0}, {file, 0}, {0, 0}}
	if len(asked) != len(want) || asked[0] != want[0] || asked[1] != want[1] || asked[2] != want[2] {
		t.Errorf("asked were %v, want %v", asked, want)
	}
	asked = nil
	if err := b.Rename(Rename{PID: 1, From: r.To, To: r.From, Dir: dir, NewDir: dir}, run); err == nil || asked[0][0] != file {
		t.Errorf("the kernel moved what it was shown, and the next rename is of %v (%v)", asked, err)
	}
}
