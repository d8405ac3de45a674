package mount

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestErrno_TranslatesEveryError(t *testing.T) {
	missing := fault.E(fault.NotFound, "test", "x", "")
	for _, each := range []struct {
		err  error
		want syscall.Errno
	}{
		{nil, 0},
		{missing, syscall.ENOENT},
		{fmt.Errorf("while looking: %w", missing), syscall.ENOENT},
		{fault.E(fault.Interrupted, "test", "", ""), syscall.EINTR},
		{context.Canceled, syscall.EINTR},
		{errors.New("what"), syscall.EIO},
	} {
		if got := Errno(each.err); got != each.want {
			t.Errorf("%v: got %v, want %v", each.err, got, each.want)
		}
	}
}

func TestOpenFlags_DoNotOverlap(t *testing.T) {
	if !OpenRead.Reads() || OpenRead.Writes() || OpenWrite.Reads() || !OpenWrite.Writes() ||
		!OpenReadWrite.Reads() || !(OpenReadWrite | OpenAppend).Writes() {
		t.Error("access modes are confused")
	}
	if all := OpenAppend | OpenTruncate | OpenExclusive | OpenDirect | OpenSync | OpenKillSetID | OpenExecute; all&OpenAccess != 0 {
		t.Error("a bit overlaps the access mode")
	}
}
