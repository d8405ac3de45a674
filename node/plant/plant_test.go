package plant

import "testing"

// TestNothingIsPlanted has every mistake asked for, in the program as it is
// built for everybody.
func TestNothingIsPlanted(t *testing.T) {
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
