package revocation

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

const (
	active ids.Node = "active"
	// publishing is how long the active takes to hear of a file, and telling how
	// long the kernel does to hear of anything.
	publishing, telling = 3 * time.Second, time.Second
)

var dir, file = ids.NewObject(1, 10), ids.NewObject(1, 20)

// always is a names.Sessions whose leases are good for ever.
type always struct{}

func (always) Before() uint64 { return 0 }

func (always) Accept(ids.Node, uint64, *pb.Grant) (session.Stamp, bool) { return session.Stamp{}, true }

func (always) Left(session.Stamp) time.Duration { return time.Hour }

// kernel is a slow mount.Notifier.
type kernel struct{ names []string }

// InvalidateEntry implements mount.Notifier.
func (k *kernel) InvalidateEntry(_ mount.Inode, name string) { k.names = append(k.names, name) }

// InvalidateInode implements mount.Notifier.
func (k *kernel) InvalidateInode(mount.Inode, int64, int64) {}

// Delete implements mount.Notifier.
func (k *kernel) Delete(mount.Inode, mount.Inode, string) {}

// Drained implements mount.Notifier.
func (k *kernel) Drained(then func()) { time.AfterFunc(telling, then) }

// fixture is the Handler of a client that has a directory exclusively, with one file
// in it that its active has not heard of.
type fixture struct {
	*Handler
	kernel kernel
	start  time.Time
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{start: time.Now()}
	clock := func() time.Duration { return time.Since(f.start) }
	cache, table := names.New(always{}, names.Limits{}), inodes.New(0)
	k := inodes.NewKernel(table)
	k.Mount(&f.kernel)
	spawn := func(fn func()) bool { go fn(); return true }
	var kept receipts.Table
	publisher := deferred.New(deferred.Options{
		Context: t.Context(), Names: cache, Stream: stream.New(stream.Options{Context: t.Context()}), Receipts: &kept, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock,
		Told: func(ids.Object, uint64, uint64) {}, AdvancePages: func(ids.Object, uint64, uint64) {}, Doubt: func(...ids.Object) {},
		Send: func(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
			time.Sleep(publishing)
			return &pb.OperateResponse{Result: &pb.Result{}}, active, nil
		},
		Spawn: spawn, Background: func(fn func(context.Context)) bool { return spawn(func() { fn(t.Context()) }) },
		UntilKnown: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
	})
	f.Handler = New(Options{
		Names: cache, Nodes: table, Kernel: k, Deferred: publisher, Engine: func() *content.Engine { return nil }, Clock: clock, Spawn: spawn, Dropped: func() {},
	})
	m := cache.MarkDir(dir)
	cache.Learn(&m, active, []*pb.Grant{{Object: uint64(dir), What: pb.Grant_NAMES}, {Object: uint64(dir), What: pb.Grant_ALONE}}, func(l *names.Learner) { l.Complete(dir) })
	a := &pb.Attr{Object: uint64(file), Mode: mount.TypeRegular | 0o644, Nlink: 1, Parent: uint64(dir)}
	if !publisher.Add(&pending.File{Object: file, Dir: dir, Name: "f", Create: &pb.Create{Object: uint64(file)}}, func() bool { return cache.Make(dir, "f", a) }) {
		t.Fatal("no file can be made in the directory")
	}
	at := table.Look(dir, cue.Set{}, true)
	child := table.Look(file, cue.Set{}, false)
	table.MayCache(at, "f", child, clock(), clock()+time.Hour)
	return f
}

// revoke revokes, and returns after how long the answer came and what is held.
func (f *fixture) revoke(items ...*pb.RevokeRequest_Item) (took time.Duration, held []uint64) {
	begun, answers := time.Now(), make(chan []uint64, 2)
	f.Revoke(active, items, func(held []uint64) { answers <- held })
	held = <-answers
	took = time.Since(begun)
	time.Sleep(time.Minute)
	if len(answers) > 0 {
		took = -1 // it was answered twice
	}
	return took, held
}

func TestRevoke_AnswersWhenAllHaveHeard(t *testing.T) {
	// The kernel's answer comes after a tenth of a second at most: see inodes.
	const kernelLimit = 100 * time.Millisecond
	for _, x := range []struct {
		name  string
		items []*pb.RevokeRequest_Item
		want  time.Duration
		named bool // the kernel hears of the name
	}{
		{"the names are: their file is published first", []*pb.RevokeRequest_Item{{Object: uint64(dir), What: pb.Grant_NAMES}}, publishing, true},
		{"the directory is not exclusive any more", []*pb.RevokeRequest_Item{{Object: uint64(dir), What: pb.Grant_ALONE}}, publishing, false},
		{"the client leaves", []*pb.RevokeRequest_Item{{Object: uint64(dir), What: pb.Grant_NAMES, Leaving: true}}, kernelLimit, true},
		{"another directory", []*pb.RevokeRequest_Item{{Object: uint64(dir) + 1, What: pb.Grant_NAMES}}, 0, false},
		{"the file", []*pb.RevokeRequest_Item{{Object: uint64(file), What: pb.Grant_FILE}}, kernelLimit, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				took, _ := f.revoke(x.items...)
				if took != x.want {
					t.Errorf("the answer came after %v, want %v", took, x.want)
				}
				if named := slices.Contains(f.kernel.names, "f"); named != x.named {
					t.Errorf("the kernel heard of the name: %v, want %v", named, x.named)
				}
			})
		})
	}
}

func TestRevoke_HoldsWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		item := &pb.RevokeRequest_Item{Object: uint64(file), What: pb.Grant_FILE, Unlinked: true}
		if _, held := f.revoke(item); len(held) != 0 {
			t.Errorf("%v are held, and nothing is open", held)
		}
		f.opt.Nodes.CountOpen(file, mount.OpenRead)
		if _, held := f.revoke(item); !slices.Equal(held, []uint64{uint64(file)}) {
			t.Errorf("%v are held, want the open file", held)
		}
	})
}

func TestOpenIn_LeavesOutWhatIsDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		known := ids.NewObject(1, 30)
		for _, o := range []ids.Object{file, known, ids.NewObject(2, 30)} {
			f.opt.Nodes.CountOpen(o, mount.OpenRead)
		}
		if got := f.openIn(1); !slices.Equal(got, []uint64{uint64(known)}) {
			t.Errorf("got %v, want the file that its active knows", got)
		}
	})
}
