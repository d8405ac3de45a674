package traced_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel/traced"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
)

// names answers lookups, and nothing else.
type names struct {
	traced.Inner
	watched bool // the last lookup's operation
}

func (n *names) Lookup(ctx context.Context, _ mount.Caller, _ mount.Inode, _ string) (mount.Entry, error) {
	n.watched = trace.From(ctx).Watched()
	return mount.Entry{Node: 7}, nil
}

// counted is a FileSystem over inner, whose reads of handle 1 answer data.
func counted(inner traced.Inner, data string) *traced.FileSystem {
	return traced.New(inner, traced.Options{
		Recorder: trace.New(trace.Options{Clock: func() time.Duration { return 0 }}),
		Path:     func(_ mount.Inode, name string) string { return "/dir/" + name },
		StartRead: func(_ *trace.Operation, h mount.Handle, _ int64, _ int, then func([]byte, bool)) bool {
			if h != 1 {
				return false
			}
			then([]byte(data), true)
			return true
		},
	})
}

func xattr(t *testing.T, f *traced.FileSystem, name string, into any) error {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, err := f.GetXattr(context.Background(), mount.Caller{}, mount.Root, name, buf)
	if err != nil {
		return err
	}
	return json.Unmarshal(buf[:n], into)
}

func TestFileSystem_CountsByKind(t *testing.T) {
	f := counted(&names{}, "data")
	for range 3 {
		if e, err := f.Lookup(context.Background(), mount.Caller{}, mount.Root, "a"); err != nil || e.Node != 7 {
			t.Fatalf("got %v, %v", e, err)
		}
	}
	var read string
	if !f.StartRead(mount.Caller{}, 7, 1, 0, 4, func(data []byte, _ bool) { read = string(data) }) || read != "data" {
		t.Errorf("read %q", read)
	}
	if f.StartRead(mount.Caller{}, 7, 2, 0, 4, nil) {
		t.Error("a read began that cannot")
	}
	var counts []trace.Count
	if err := xattr(t, f, "user.cartwheel.counts", &counts); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, c := range counts {
		got[c.Kind] = c.Count
	}
	if len(got) != 2 || got[trace.Lookup.String()] != 3 || got[trace.Read.String()] != 1 {
		t.Errorf("counts are %v", got)
	}
}

func TestFileSystem_TracesWhatIsWatched(t *testing.T) {
	inner := &names{}
	f := counted(inner, "data")
	ctx, who := context.Background(), mount.Caller{PID: 5}
	if err := f.SetXattr(ctx, who, mount.Root, "user.cartwheel.trace.t", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lookup(ctx, who, mount.Root, "a"); err != nil || !inner.watched {
		t.Fatalf("the lookup is watched: %v, %v", inner.watched, err)
	}
	if f.StartRead(who, 7, 1, 0, 4, nil) {
		t.Error("a watched read does not take the usual way")
	}
	var list []trace.Record
	if err := xattr(t, f, "user.cartwheel.trace.t.0", &list); err != nil || len(list) != 1 || list[0].About != "/dir/a" {
		t.Errorf("got %v, %v", list, err)
	}
	if err := f.SetXattr(ctx, who, mount.Root, "user.cartwheel.trace.t", []byte("end"), 0); err != nil {
		t.Fatal(err)
	}
	if err := xattr(t, f, "user.cartwheel.trace.t", &traced.Watched{}); err == nil {
		t.Error("a trace that ended is answered")
	}
}
