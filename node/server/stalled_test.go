package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/disk"
)

// hanging is a disk whose log does not answer any more once it is told so.
type hanging struct {
	disk.Disk
	hang chan struct{} // closed: writes hang
	free chan struct{} // closed: they go on
}

type hangingFile struct {
	disk.File
	d *hanging
}

// Open implements disk.Disk.
func (d *hanging) Open(site disk.Site, name string, mode disk.Mode) (disk.File, error) {
	f, err := d.Disk.Open(site, name, mode)
	if err != nil {
		return nil, err
	}
	return hangingFile{f, d}, nil
}

// WriteAt implements disk.File.
func (f hangingFile) WriteAt(site disk.Site, p []byte, off int64) error {
	select {
	case <-f.d.hang:
		if site == disk.JournalAppend {
			<-f.d.free
		}
	default:
	}
	return f.File.WriteAt(site, p, off)
}

func TestStall_NodeWhoseDiskHangsEnds(t *testing.T) {
	t.Parallel()
	d := &hanging{Disk: disk.NewMemory(), hang: make(chan struct{}), free: make(chan struct{})}
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Configure: quick, Depend: func(i int, deps *server.Deps) {
		if i == 0 {
			deps.StallAfter = 6 * time.Second // beyond what a busy machine takes
			deps.Disk = func(o *store.Options) { o.Disk = d }
		}
	}})
	t.Cleanup(func() { close(d.free) }) // before the nodes are closed
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cl := c.Connect("root")
	do(ctx, t, cl, ids.RootSlice, create("file"))
	close(d.hang)
	written, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = cl.Operate(written, ids.RootSlice, create("other"), nil) }()
	select {
	case err := <-c.Nodes[0].Server().Failed():
		if !fault.Is(err, fault.IO) {
			t.Errorf("got %v, want a failing disk", err)
		}
	case <-ctx.Done():
		t.Error("the node goes on with a disk that does not answer")
	}
}
