package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/wire"
)

// fullCluster is a cluster of three nodes on one small disk.
type fullCluster struct {
	t    *testing.T
	ctx  context.Context
	c    *servertest.Cluster
	cl   *servertest.Client
	disk string
}

func startFull(t *testing.T, configure ...func(*server.Config)) *fullCluster {
	f := &fullCluster{t: t, disk: servertest.SmallDisk(t, 360<<20)}
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	f.c = servertest.Start(t, servertest.Options{Log: testing.Verbose(), Folders: true,
		Configure: func(i int, c *server.Config) {
			quick(i, c)
			c.Data = filepath.Join(f.disk, fmt.Sprint("n", i))
			c.ReserveBytes, c.CheckpointBytes = 32<<20, 1<<20
			for _, more := range configure {
				more(c)
			}
		},
		Depend: func(_ int, d *server.Deps) {
			d.Disk = func(o *store.Options) {
				o.Journal.SegmentBytes, o.Pack.PackBytes, o.Meta.MemtableBytes = 4<<20, 16<<20, 1<<20
			}
		},
	})
	f.cl = f.c.Connect("root")
	return f
}

// file makes a file with content of its own; the error is that of either step.
func (f *fullCluster) file(name string, size int) error {
	made, err := f.cl.Operate(f.ctx, ids.RootSlice, create(name), nil)
	if err != nil {
		return err
	}
	if made.Kind != 0 {
		return fault.E(fault.Kind(made.Kind), "test", name, "")
	}
	body := make([]byte, size)
	copy(body, name)
	wrote, err := f.cl.Operate(f.ctx, ids.RootSlice, commit(made.Attr.Object, size), body)
	if err == nil && wrote.Kind != 0 {
		err = fault.E(fault.Kind(wrote.Kind), "test", name, "")
	}
	return err
}

func (f *fullCluster) unlink(names ...string) {
	f.t.Helper()
	for _, name := range names {
		do(f.ctx, f.t, f.cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte(name)}}})
	}
}

// alive checks that no node has ended and that each answers for its status.
func (f *fullCluster) alive() {
	f.t.Helper()
	for _, n := range f.c.Nodes {
		select {
		case err := <-n.Server().Failed():
			f.t.Fatalf("node %d ended: %v", n.Index, err)
		default:
		}
		servertest.Await(f.ctx, f.t, fmt.Sprintf("the status of node %d", n.Index), func() error {
			_, err := f.cl.Call(f.ctx, n.ID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, &pb.StatusResponse{})
			return err
		})
	}
}

// goesOn checks that the full cluster reads, deletes and answers, and takes
// nothing new.
func (f *fullCluster) goesOn(names []string, doomed ...string) {
	f.t.Helper()
	checkFiles(f.ctx, f.t, f.c, f.cl, names)
	f.unlink(doomed...)
	if err := f.file("more", 20000); !fault.Is(err, fault.NoSpace) {
		f.t.Errorf("a write: got %v, want no space", err)
	}
	f.alive()
}

func TestFullDisk_ToTheLastByteReadsAndDeletes(t *testing.T) {
	f := startFull(t)
	filler := filepath.Join(f.disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 80<<20), 0o600); err != nil { // to be given back at the end
		t.Fatal(err)
	}
	var names, small []string
	for i := range 300 { // to be deleted while the disk is full
		small = append(small, fmt.Sprint("small", i))
		if err := f.file(small[i], 10); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for i := 0; err == nil && i < 2000; i++ {
		name := fmt.Sprint("file", i)
		if err = f.file(name, 100_000); err == nil {
			names = append(names, name)
		}
	}
	if !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v after %d files, want no space", err, len(names))
	}
	t.Logf("full after %d files", len(names))
	f.goesOn(names[:20], small[:50]...)

	servertest.FillDisk(t, filler)
	f.goesOn(names[20:40], small[50:150]...)
	servertest.FillDisk(t, filler) // what the ballast gave
	f.goesOn(names[40:60], small[150:200]...)

	for _, n := range f.c.Nodes {
		n.Kill()
	}
	for _, n := range f.c.Nodes {
		n.Start()
	}
	f.c.AwaitRoot(f.ctx)
	f.goesOn(names[60:80], small[200:]...)

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.unlink(names[80:100]...)
	servertest.Await(f.ctx, t, "writes to go on", func() error { return f.file(fmt.Sprint("after", time.Now().UnixNano()), 20000) })
	f.alive()
	checkFiles(f.ctx, t, f.c, f.cl, names[:80])
}

// TestFullDisk_ComesBackByDeletingAlone fills the disk, deletes most of what is there, and
// waits until writes go on: collection gives space back on a disk that has none.
func TestFullDisk_ComesBackByDeletingAlone(t *testing.T) {
	comesBack(t, startFull(t, func(c *server.Config) { c.Lease, c.Retention, c.UploadGrace = quickLease, 0, time.Second }))
}

// TestFullDisk_ComesBackThoughRetentionIsLong does the same while retention would keep all
// that was deleted: it yields.
func TestFullDisk_ComesBackThoughRetentionIsLong(t *testing.T) {
	comesBack(t, startFull(t, func(c *server.Config) { c.Lease, c.Retention, c.UploadGrace = quickLease, 10*time.Minute, time.Second }))
}

// comesBack fills the disk, deletes most of it, waits for room, and checks the rest.
func comesBack(t *testing.T, f *fullCluster) {
	t.Helper()
	var names []string
	var err error
	for i := 0; err == nil && i < 2000; i++ {
		name := fmt.Sprint("file", i)
		if err = f.file(name, 100_000); err == nil {
			names = append(names, name)
		}
	}
	if !fault.Is(err, fault.NoSpace) || len(names) < 100 {
		t.Fatalf("got %v after %d files, want no space", err, len(names))
	}
	var kept []string
	for i, name := range names {
		if i%20 == 0 {
			kept = append(kept, name)
		} else {
			f.unlink(name)
		}
	}
	servertest.Await(f.ctx, t, "writes to go on", func() error { return f.file(fmt.Sprint("after", time.Now().UnixNano()), 100_000) })
	f.alive()
	checkFiles(f.ctx, t, f.c, f.cl, kept)
	for _, n := range f.c.Nodes {
		for _, name := range kept {
			if err := n.Server().CheckCopy(ids.RootObject, []byte(name)); err != nil {
				t.Errorf("node %d: %s: %v", n.Index, name, err)
			}
		}
	}
}
