package meta

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestBatch_KeysAreReadInOrder writes one number to two keys in each batch,
// while readers read one key and then the other. The second is never older than
// the first, whichever key comes first.
func TestBatch_KeysAreReadInOrder(t *testing.T) {
	db, err := Open("meta", Options{FS: vfs.NewMem()})
	must(t, err)
	defer db.Close()
	read := func(key string) uint64 {
		value, _, err := db.Slice(1).Get([]byte(key))
		if err != nil {
			t.Error(err)
		}
		if len(value) != 8 {
			return 0
		}
		return binary.BigEndian.Uint64(value)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if first, second := read(order[0]), read(order[1]); second < first {
					t.Errorf("%s is at %d, and after that %s at %d", order[0], first, order[1], second)
					return
				}
			}
		})
	}
	for i := range uint64(50_000) {
		value := binary.BigEndian.AppendUint64(nil, i)
		b := db.NewBatch()
		must(t, b.Put(1, []byte("a"), value, i))
		must(t, b.Put(1, []byte("b"), value, i))
		must(t, b.Commit())
	}
	close(stop)
	all.Wait()
}
