package tree

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
)

// changing is a View whose content is replaced, with its record, right before it
// is read.
type changing struct {
	View
	change func()
}

func (c *changing) Get(key []byte) ([]byte, bool, error) {
	if change := c.change; change != nil && key[0] == keyContent {
		c.change = nil
		change()
	}
	return c.View.Get(key)
}

// TestGetAttr_ContentAndRecordAreOfOneVersion replaces a file's content, which
// lies beside its record, between the reading of the one and of the other: by as
// many bytes, by others, and by none.
func TestGetAttr_ContentAndRecordAreOfOneVersion(t *testing.T) {
	const o = ids.Object(1<<40 | 7)
	for _, now := range []string{"newer", "shorter", ""} {
		m := newMemory()
		set := func(change uint64, content string) {
			n := &Inode{Object: o, Mode: TypeRegular | 0o644, Nlink: 1, Size: uint64(len(content)), Version: change, Change: change, Beside: content != ""}
			list := []Mutation{{Key: objectKey(keyInode, o), Value: AppendInode(nil, n)}, {Key: objectKey(keyContent, o)}}
			if content != "" {
				list[1].Value = []byte(content)
			}
			if err := m.apply(list, 0); err != nil {
				t.Fatal(err)
			}
		}
		set(5, "older")
		a, err := GetAttr(&changing{View: m, change: func() { set(6, now) }}, o, true, false)
		if err != nil {
			t.Errorf("to %q: %v", now, err)
		} else if got := string(a.Content.GetInline()); a.Version != 6 || got != now {
			t.Errorf("version %d with %q, want 6 with %q", a.Version, got, now)
		}
	}
}
