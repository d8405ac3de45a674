package content_test

import (
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
)

// TestHold_AnOpenSeesACommitThatOvertookIt asks for attributes, ends a commit and
// closes its handle before the answer is taken, and opens the file with it.
func TestHold_AnOpenSeesACommitThatOvertookIt(t *testing.T) {
	cluster := contenttest.New()
	e := content.New(cluster, content.Options{})
	writer := e.Open(object, nil, content.Open{})
	must(t, writer.WriteAt(t.Context(), []byte("old"), 0))
	must(t, writer.Flush(t.Context()))
	must(t, writer.WriteAt(t.Context(), []byte("new"), 0))
	hold := e.Hold(object)
	before := cluster.Attr(object)
	must(t, writer.Flush(t.Context()))
	writer.Close()
	if !hold.Outdated(before) || hold.Outdated(cluster.Attr(object)) {
		t.Error("what was before the commit is not outdated, or what it made is")
	}
	reader := e.Open(object, before, content.Open{})
	hold.Release()
	buf := make([]byte, 10)
	n, err := reader.ReadAt(t.Context(), buf, 0)
	must(t, err)
	if got := string(buf[:n]); got != "new" {
		t.Errorf("got %q, want what was committed before", got)
	}
	reader.Close()
	e.Hold(object).Release()
	must(t, e.Close(t.Context()))
}
