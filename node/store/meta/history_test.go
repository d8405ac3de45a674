package meta

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
)

// TestHistory_TellsEachOldVersionWithWhatReplacedIt reads the history of three keys in
// pages of every length.
func TestHistory_TellsEachOldVersionWithWhatReplacedIt(t *testing.T) {
	db, err := Open("meta", Options{FS: vfs.NewMem()})
	must(t, err)
	defer db.Close()
	for at, change := range []struct{ key, value string }{
		{"a\x00", "1"}, {"b", "1"}, {"a\x00", "2"}, {"b", ""}, {"a\x00", "3"}, {"c", "1"}, {"b", "2"}, {"b", "3"},
	} {
		b := db.NewBatch()
		if change.value == "" {
			must(t, b.Delete(1, []byte(change.key), uint64(at)))
		} else {
			must(t, b.Put(1, []byte(change.key), []byte(change.value), uint64(at)))
		}
		must(t, b.Put(2, []byte("another slice"), []byte{byte(at)}, uint64(at)))
		must(t, b.Commit())
	}
	want := []string{
		`"a\x00" 2@2 by 3@4`, `"a\x00" 1@0 by 2@2`,
		`"b" 2@6 by 3@7`, `"b" gone@3 by 2@6`, `"b" 1@1 by gone@3`,
	}
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		var behind []byte
		for {
			rows := 0
			behind, err = db.History(1, behind, limit, func(old Version, replaced *Version) error {
				rows++
				got = append(got, fmt.Sprintf("%q %s by %s", old.Key, told(&old), told(replaced)))
				return nil
			})
			if err != nil || rows > limit {
				t.Fatalf("limit %d: %d rows, %v", limit, rows, err)
			}
			if behind == nil {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
	stop := fault.E(fault.Canceled, "", "", "")
	if _, err := db.History(1, nil, 9, func(Version, *Version) error { return stop }); !fault.Is(err, fault.Canceled) {
		t.Errorf("got %v, want the error of the function", err)
	}
}

// told is a version in few words.
func told(v *Version) string {
	switch {
	case v == nil:
		return "none"
	case v.Gone:
		return fmt.Sprintf("gone@%d", v.Time)
	}
	return fmt.Sprintf("%s@%d", v.Value, v.Time)
}
