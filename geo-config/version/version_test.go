package version

import "testing"

func TestString_IsWhatTheBuildSays(t *testing.T) {
	if got := String(); got != "development" {
		t.Errorf("without a word of the build it is %q", got)
	}
	defer func(was string) { set = was }(set)
	set = "v1.2"
	if got := String(); got != "v1.2" {
		t.Errorf("got %q", got)
	}
}
