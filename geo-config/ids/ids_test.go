package ids_test

import (
	"testing"

	"pgregory.net/rapid"

	"cartwheel.dev/geo-config/ids"
)

func TestObject_JoinsAndParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := ids.Slice(rapid.Uint32Range(0, uint32(ids.MaxSlice)).Draw(t, "slice"))
		n := rapid.Uint64Range(0, 1<<ids.NumberBits-1).Draw(t, "number")
		o := ids.NewObject(s, n)
		if o.Slice() != s || o.Number() != n {
			t.Fatalf("%d and %d came back as %d and %d", s, n, o.Slice(), o.Number())
		}
	})
	if ids.RootObject.Slice() != ids.RootSlice || ids.RootObject.Number() != 1 {
		t.Errorf("the root is %v", ids.RootObject)
	}
}

func TestNode_ShortShowsWhatDiffers(t *testing.T) {
	for id, want := range map[ids.Node]string{"": "", "n1": "n1", "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp": "vnc6iDEp"} {
		if got := id.Short(); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}
