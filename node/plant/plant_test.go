package plant

import "testing"

// TestOn_IsFalseWithoutTheTag asks for every mistake in the program as it is
// built for everybody.
func TestOn_IsFalseWithoutTheTag(t *testing.T) {
	if Built {
		t.Skip("built with the tag plants")
	}
	for _, n := range All() {
		t.Setenv("CARTWHEEL_PLANT", string(n))
		if On(n) {
			t.Errorf("%s is made without the tag", n)
		}
	}
}
