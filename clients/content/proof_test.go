package content_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/content/diskcache"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// rotten is a cluster of which the first members asked answer with damage.
type rotten struct {
	*contenttest.Cluster
	bad int // members

	mu    sync.Mutex // guards below
	tries map[int]int
}

func (r *rotten) GetChunks(ctx context.Context, o ids.Object, parts []content.Part, try int) ([]byte, error) {
	r.mu.Lock()
	r.tries[try]++
	r.mu.Unlock()
	body, err := r.Cluster.GetChunks(ctx, o, parts, try)
	if err == nil && try < r.bad {
		body[len(body)/2] ^= 1
	}
	return body, err
}

// streamed reads a file from its start to its end twice: the second time by its
// chunks.
func streamed(ctx context.Context, e *content.Engine, c *contenttest.Cluster, size int) ([]byte, error) {
	h := e.Open(object, c.Attr(object), content.Open{})
	defer h.Close()
	out := make([]byte, size)
	for range 2 {
		for off := 0; off < size; off += 128 << 10 {
			if _, err := h.ReadAt(ctx, out[off:min(off+128<<10, size)], uint64(off)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func TestRead_FetchesADamagedChunkElsewhere(t *testing.T) {
	for bad, works := range map[int]bool{1: true, 3: true, 100: false} {
		cluster := &rotten{Cluster: contenttest.New(), bad: bad, tries: map[int]int{}}
		want := big(t, cluster.Cluster, 6<<20)
		e := content.New(cluster, content.Options{})
		got, err := streamed(within(t), e, cluster.Cluster, len(want))
		switch {
		case works && (err != nil || !bytes.Equal(got, want)):
			t.Errorf("%d damaged members: %d bytes, %v", bad, len(got), err)
		case !works && err == nil && !bytes.Equal(got, want):
			t.Errorf("damaged bytes were read")
		case !works && err != nil && !fault.Is(err, fault.Corrupt):
			t.Errorf("got %v, want Corrupt", err)
		}
		_ = e.Close(within(t)) // nothing was written
		if cluster.tries[0] == 0 || cluster.tries[1] == 0 {
			t.Errorf("%d damaged members: asked %v times; the test looks at nothing", bad, cluster.tries)
		}
	}
}

// TestRead_RefetchesADamagedCachedChunk keeps bytes in the disk cache under a
// name that is not theirs, with a good sum of the record.
func TestRead_RefetchesADamagedCachedChunk(t *testing.T) {
	cluster := contenttest.New()
	want := big(t, cluster, 6<<20)
	dir := t.TempDir()
	disk, err := diskcache.Open(dir, diskcache.Options{Limit: 64 << 20})
	must(t, err)
	damaging := &liar{Cache: disk}
	for range 2 {
		e := content.New(cluster, content.Options{Disk: damaging})
		got, err := streamed(within(t), e, cluster, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		disk.Wait()
		must(t, e.Close(within(t)))
	}
	if damaging.forgotten == 0 {
		t.Error("no damaged chunk was forgotten; the test looks at nothing")
	}
	must(t, disk.Close())
}

// liar is a disk cache that keeps something else than it is given.
type liar struct {
	*diskcache.Cache
	mu        sync.Mutex // guards forgotten
	forgotten int
}

// wholeChunkKey tells the keys of whole chunks, which end with ones.
func wholeChunkKey(key []byte) bool { return bytes.HasSuffix(key, bytes.Repeat([]byte{0xff}, 8)) }

func (l *liar) Put(key, data []byte) {
	if wholeChunkKey(key) {
		data = bytes.Clone(data)
		data[0] ^= 1
	}
	l.Cache.Put(key, data)
}

func (l *liar) Forget(key []byte) {
	l.mu.Lock()
	l.forgotten++
	l.mu.Unlock()
	l.Cache.Forget(key)
}
