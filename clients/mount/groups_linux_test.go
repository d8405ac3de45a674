package mount

import (
	"os"
	"slices"
	"testing"
)

func TestGroups_AreThoseOfTheProcess(t *testing.T) {
	status := []byte("Name:\tx\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t4 24 1000 \nNStgid:\t1\n")
	if got := parseGroups(status); !slices.Equal(got, []uint32{4, 24, 1000}) {
		t.Errorf("got %v", got)
	}
	for _, none := range []string{"", "Name:\tx\n", "Name:\tx\nGroups:\t\n"} {
		if got := parseGroups([]byte(none)); len(got) != 0 {
			t.Errorf("%q: got %v", none, got)
		}
	}
	own, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	got := Groups(Caller{PID: uint32(os.Getpid())})
	for _, gid := range own {
		if !slices.Contains(got, uint32(gid)) {
			t.Errorf("%d is not among %v", gid, got)
		}
	}
	if got := Groups(Caller{}); got != nil {
		t.Errorf("the kernel is in %v", got)
	}
}
