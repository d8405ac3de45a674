package content_test

import (
	"bytes"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/content/writelog"
	"cartwheel.dev/geo-config/fault"
)

// TestForsake_SendsNothing writes a file whose last handle goes for good. Its
// bytes are not uploaded, take no room, stay in no journal, and are not reported
// as unsaved.
func TestForsake_SendsNothing(t *testing.T) {
	cluster := contenttest.New()
	dir := t.TempDir()
	log, _, err := writelog.Open(dir, writelog.Options{})
	must(t, err)
	e, ctx := newEngine(t, cluster, content.Options{Journal: log})
	h := e.Open(object, nil, content.Open{})
	must(t, h.WriteAt(ctx, random(3, 3<<20), 0))
	h.Forsake()
	if commits, _ := cluster.Calls(contenttest.Commit); commits != 0 || len(e.Unsaved()) != 1 {
		t.Fatalf("%d commits and %d unsaved files before the file is discarded, want 0 and 1", commits, len(e.Unsaved()))
	}
	e.Discard(object)
	must(t, e.FlushAll(ctx))
	commits, _ := cluster.Calls(contenttest.Commit)
	if _, sent := cluster.Calls(contenttest.PutChunks); commits != 0 || sent != 0 {
		t.Errorf("%d commits and %d bytes of a file that nobody can reach", commits, sent)
	}
	if got := e.Usage().DirtyBytes; got != 0 {
		t.Errorf("%d bytes are charged for ever", got)
	}
	if list := e.Unsaved(); len(list) != 0 {
		t.Errorf("%d files are told of as unsaved", len(list))
	}
	must(t, log.Close())
	log, left, err := writelog.Open(dir, writelog.Options{})
	must(t, err)
	if len(left) != 0 {
		t.Errorf("%d files are left in the journal", len(left))
	}
	must(t, log.Close())
}

// TestForsake_SendsAFileThatIsKept forsakes a file which turns out to be open
// elsewhere, and one that turns out to be gone.
func TestForsake_SendsAFileThatIsKept(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	data := random(4, 1<<20)
	h := e.Open(object, nil, content.Open{})
	must(t, h.WriteAt(ctx, data, 0))
	h.Forsake()
	must(t, e.FlushObject(ctx, object))
	if !bytes.Equal(cluster.Contents(object), data) {
		t.Error("the bytes of a file that is open elsewhere did not arrive")
	}

	cluster.SetFaults(func(c contenttest.Call) contenttest.Outcome {
		return contenttest.Outcome{Before: fault.E(fault.Stale, "test", "", "it is gone")}
	})
	h = e.Open(object+1, nil, content.Open{})
	must(t, h.WriteAt(ctx, data[:100], 0))
	h.Forsake()
	must(t, e.FlushObject(ctx, object+1))
	if list := e.Unsaved(); len(list) != 0 {
		t.Errorf("a file that is gone is told of as unsaved: %v", list[0].Err)
	}
}
