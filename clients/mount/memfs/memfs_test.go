package memfs

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// What the kernel keeps from reaching the file system is tested here; the rest
// by the suite of mounts, through a binding.

func TestWrite_RefusedWithoutSpace(t *testing.T) {
	ctx, c := context.Background(), mount.Caller{}
	v := New(Options{Capacity: 4 * pageSize}).View()
	_, o, err := v.Create(ctx, c, mount.Root, "f", 0o644, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Write(ctx, c, 0, o.Handle, 0, make([]byte, 5*pageSize), 0); !fault.Is(err, fault.NoSpace) {
		t.Errorf("got %v, want no space", err)
	}
	if n, err := v.Write(ctx, c, 0, o.Handle, 0, make([]byte, 4*pageSize), 0); n != 4*pageSize || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if s, _ := v.StatFS(ctx, c, mount.Root); s.FreeBlocks != 0 {
		t.Errorf("%d blocks are free", s.FreeBlocks)
	}
	if err := v.Unlink(ctx, c, mount.Root, "f"); err != nil {
		t.Fatal(err)
	}
	v.Release(2, o.Handle, 0, false)
	v.Forget(2, 1)
	if s, _ := v.StatFS(ctx, c, mount.Root); s.FreeBlocks != 4 || v.Objects() != 1 {
		t.Errorf("%d blocks are free, %d objects left", s.FreeBlocks, v.Objects())
	}
}

// recorder notes what a view is told.
type recorder struct{ told []string }

func (r *recorder) InvalidateInode(n mount.Inode, off, length int64) {
	r.told = append(r.told, fmt.Sprint("inode ", n, off, length))
}

func (r *recorder) InvalidateEntry(dir mount.Inode, name string) {
	r.told = append(r.told, fmt.Sprint("entry ", dir, " ", name))
}

func (r *recorder) Delete(dir, child mount.Inode, name string) {
	r.told = append(r.told, fmt.Sprint("delete ", dir, child, " ", name))
}

func (r *recorder) Drained(done func()) { done() }

func TestView_NotifiesOtherViews(t *testing.T) {
	ctx, c := context.Background(), mount.Caller{}
	store := New(Options{})
	own, other := &recorder{}, &recorder{}
	v, w := store.View(), store.View()
	v.Init(own)
	w.Init(other)
	if _, err := v.Mkdir(ctx, c, mount.Root, "d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := v.Rmdir(ctx, c, mount.Root, "d"); err != nil {
		t.Fatal(err)
	}
	want := []string{"entry 1 d", "inode 1 -1 0", "delete 1 2 d", "inode 1 -1 0", "inode 2 -1 0"}
	if !slices.Equal(other.told, want) || own.told != nil {
		t.Errorf("the other was told %q, want %q; the view itself %q", other.told, want, own.told)
	}
}

func TestSetLock_FindsADeadlock(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := mount.Caller{}
	v := New(Options{}).View()
	e, o, err := v.Create(ctx, c, mount.Root, "f", 0o644, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	lock := func(owner mount.LockOwner, at uint64, wait bool) error {
		return v.SetLock(ctx, c, e.Node, o.Handle, mount.Lock{Owner: owner, Start: at, End: at, Type: mount.WriteLock}, wait)
	}
	for owner := range mount.LockOwner(2) {
		if err := lock(owner, uint64(owner), false); err != nil {
			t.Fatal(err)
		}
	}
	// Whichever waits second closes the circle.
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- lock(0, 1, true) }()
	go func() { second <- lock(1, 0, true) }()
	var refused error
	var left chan error
	var loser mount.LockOwner
	select {
	case refused = <-first:
		left, loser = second, 0
	case refused = <-second:
		left, loser = first, 1
	}
	if !fault.Is(refused, fault.Deadlock) {
		t.Fatalf("got %v, want a deadlock", refused)
	}
	if err := v.SetLock(ctx, c, e.Node, o.Handle, mount.Lock{Owner: loser, End: mount.LockEnd}, false); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// TestRelease_LateOneKeepsTheNextLock closes one open when the next one, which
// the kernel gave the same owner, holds an flock already.
func TestRelease_LateOneKeepsTheNextLock(t *testing.T) {
	ctx, c := context.Background(), mount.Caller{}
	store := New(Options{})
	v, w := store.View(), store.View()
	e, first, err := v.Create(ctx, c, mount.Root, "f", 0o644, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	second, err := v.Open(ctx, c, e.Node, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	flock := func(v *View, h mount.Handle) error {
		l := mount.Lock{Owner: 7, End: mount.LockEnd, Type: mount.WriteLock, Whole: true}
		return v.SetLock(ctx, c, e.Node, h, l, false)
	}
	if err := flock(v, second.Handle); err != nil {
		t.Fatal(err)
	}
	v.Release(e.Node, first.Handle, 7, true)
	if err := flock(w, 0); !fault.Is(err, fault.Again) {
		t.Errorf("the other view got %v, want it refused", err)
	}
	v.Release(e.Node, second.Handle, 7, true)
	if err := flock(w, 0); err != nil {
		t.Errorf("after the last close: %v", err)
	}
}
