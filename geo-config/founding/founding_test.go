package founding_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/founding"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
)

func TestFound_MakesOneCluster(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	now := time.Unix(1000, 7)
	var wg sync.WaitGroup
	var mu sync.Mutex
	found := map[ids.Cluster]bool{}
	for range 8 {
		wg.Go(func() {
			c, err := founding.Found(t.Context(), store, founding.Batch(founding.NewCluster(now), "ann"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			found[c.ID] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	rows, err := store.Read(context.Background(), geoconfig.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || !found[rows.Cluster.ID] {
		t.Errorf("eight founders got %v, the store has %v", found, rows.Cluster.ID)
	}
	if rows.Cluster.Generation != 1 || rows.Cluster.CreatedNS != now.UnixNano() {
		t.Errorf("the row is %+v", *rows.Cluster)
	}
}

// late is a store in which another founder is faster than the caller of Found.
type late struct {
	geoconfig.Store
	other sync.Once
}

func (l *late) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	var err error
	l.other.Do(func() {
		_, err = l.Store.Apply(ctx, founding.Batch(geoconfig.Cluster{ID: "other", Generation: 1}, "eve"))
	})
	if err != nil {
		return 0, err
	}
	return l.Store.Apply(ctx, b)
}

func TestFound_JoinsTheClusterOfAFasterFounder(t *testing.T) {
	store := &late{Store: inmem.New()}
	defer store.Close()
	c, err := founding.Found(t.Context(), store, founding.Batch(founding.NewCluster(time.Unix(1000, 7)), "ann"))
	if err != nil || c.ID != "other" {
		t.Errorf("got %+v, %v, want the other founder's cluster", c, err)
	}
}

func TestLoad_TakesTheFileOrBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), founding.Name)
	now := time.Unix(1000, 7)
	b, err := founding.Load(path, now)
	if err != nil || b.Cluster == nil || b.Cluster.CreatedNS != now.UnixNano() || len(b.Audit) != 1 {
		t.Errorf("without a file: %+v, %v", b, err)
	}
	if err := os.WriteFile(path, []byte(`{"key":"k","cluster":{"id":"c1","generation":1},"sites":[{"name":"oslo"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err = founding.Load(path, now); err != nil || b.Cluster.ID != "c1" || len(b.Sites) != 1 {
		t.Errorf("with a file: %+v, %v", b, err)
	}
	for _, bad := range []string{"", "{", `{"key":"k"}`, `{"cluster":{"id":"c1"}}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := founding.Load(path, now); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want Invalid", bad, err)
		}
	}
}
