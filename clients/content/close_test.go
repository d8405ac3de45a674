package content_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
)

// TestHandle_CloseOfAReaderCommitsNothing closes a reader of a file that another
// handle goes on writing: what is dirty stays together until the writer's close.
func TestHandle_CloseOfAReaderCommitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := contenttest.New()
		e := content.New(cluster, content.Options{FlushAfter: time.Hour})
		writer, reader := e.Open(object, nil, content.Open{}), e.Open(object, nil, content.Open{})
		must(t, writer.WriteAt(t.Context(), []byte("one"), 0))
		reader.Close()
		synctest.Wait()
		if n, _ := cluster.Calls(contenttest.Commit); n != 0 {
			t.Errorf("the reader's close made %d commits", n)
		}
		other := e.Open(object, nil, content.Open{})
		must(t, writer.WriteAt(t.Context(), []byte("two"), 3))
		writer.Close()
		synctest.Wait()
		if n, _ := cluster.Calls(contenttest.Commit); n != 1 {
			t.Errorf("the writer's close made %d commits, want 1", n)
		}
		if got := string(cluster.Contents(object)); got != "onetwo" {
			t.Errorf("after the writer's close the cluster has %q", got)
		}
		other.Close()
		must(t, e.Close(t.Context()))
	})
}
