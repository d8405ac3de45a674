package meta

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestVersions_AreNewestFirst writes, removes and writes keys of which one begins like
// the other.
func TestVersions_AreNewestFirst(t *testing.T) {
	db, err := Open("meta", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	change := func(key string, ts uint64, value string) {
		t.Helper()
		b := db.NewBatch()
		var err error
		if value == "" {
			err = b.Delete(7, []byte(key), ts)
		} else {
			err = b.Put(7, []byte(key), []byte(value), ts)
		}
		if err == nil {
			err = b.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change("k", 10, "a")
	change("k", 20, "b")
	change("k\x00x", 15, "other")
	change("k", 30, "")
	change("k", 40, "c")
	change("gone", 10, "a")
	change("gone", 20, "")
	list := func(v View, key string, most int) (out []string) {
		t.Helper()
		err := v.Versions([]byte(key), func(ts uint64, value []byte) bool {
			what := fmt.Sprint(ts, " ", string(value))
			if value == nil {
				what = fmt.Sprint(ts, " gone")
			}
			out = append(out, what)
			return len(out) < most
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		view View
		key  string
		most int
		want []string
	}{
		{db.Slice(7), "k", 9, []string{"40 c", "30 gone", "20 b", "10 a"}},
		{db.Slice(7), "k", 1, []string{"40 c"}},
		{db.Slice(7), "k", 3, []string{"40 c", "30 gone", "20 b"}},
		{db.SliceAt(7, 25), "k", 9, []string{"20 b", "10 a"}},
		{db.SliceAt(7, 40), "k", 1, []string{"40 c"}},
		{db.Slice(7), "gone", 9, []string{"20 gone", "10 a"}},
		{db.Slice(7), "none", 9, nil},
		{db.Slice(8), "k", 9, nil},
	} {
		if got := list(c.view, c.key, c.most); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q, at most %d: got %q, want %q", c.key, c.most, got, c.want)
		}
	}
}
