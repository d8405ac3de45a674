package servertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/store/disk"
	"cartwheel.dev/node/tree"
)

// tables counts what Pebble has flushed.
func tables(t *testing.T, fs *vfs.MemFS) int {
	t.Helper()
	var walk func(dir string) int
	walk = func(dir string) (n int) {
		names, err := fs.List(dir)
		if err != nil {
			return 0
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				n++
			}
			n += walk(fs.PathJoin(dir, name))
		}
		return n
	}
	return walk("/")
}

func TestKill_KeepsOnlyWhatWasSynced(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Sites: []string{"a"}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cl := c.Connect("root")
	const files = 20
	for i := range files {
		made, err := cl.Operate(ctx, ids.RootSlice, &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: &pb.Create{
			Dir: uint64(ids.RootObject), Name: fmt.Append(nil, "file", i), Mode: tree.TypeRegular | 0o644}}}, nil)
		if err != nil || made.Kind != 0 {
			t.Fatalf("file %d: %v %v", i, made, err)
		}
	}
	n := c.Nodes[0]
	f, err := n.disk.files.Open(disk.MarkerOpen, "unsynced", disk.Create)
	if err == nil {
		err = f.WriteAt(disk.PackWrite, []byte("x"), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	flushed := tables(t, n.disk.meta)
	n.Kill()
	if got := tables(t, n.disk.meta); got != flushed {
		t.Errorf("the metadata has %d tables, %d before the kill: it was flushed", got, flushed)
	}
	if _, err := n.disk.files.Open(disk.MarkerOpen, "unsynced", disk.ReadOnly); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file that was not synced: got %v, want not found", err)
	}
	n.Start()
	c.AwaitRoot(ctx)
	for i := range files {
		if err := n.Server().CheckCopy(ids.RootObject, fmt.Append(nil, "file", i)); err != nil {
			t.Errorf("file %d, which was acknowledged: %v", i, err)
		}
	}
}
