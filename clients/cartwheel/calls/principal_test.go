package calls

import (
	"errors"
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

func TestAsCaller_AsksOnceWhereGroupsDoNotHelp(t *testing.T) {
	denied, missing := fault.E(fault.Permission, "calls.test", "", ""), fault.E(fault.NotFound, "calls.test", "", "")
	for _, x := range []struct {
		name string
		who  mount.Caller
		err  error
	}{
		{"it was done", mount.Caller{UID: 7}, nil},
		{"root needs no groups", mount.Caller{}, denied},
		{"groups find no file", mount.Caller{UID: 7}, missing},
		{"the caller is gone, and has no groups", mount.Caller{UID: 7, PID: 1<<31 - 1}, denied},
	} {
		runs := 0
		err := AsCaller(x.who, func(p *pb.Principal) error {
			runs++
			if p.Uid != x.who.UID || len(p.Groups) != 0 {
				t.Errorf("%s: it runs as %v", x.name, p)
			}
			return x.err
		})
		if runs != 1 || !errors.Is(err, x.err) {
			t.Errorf("%s: %d runs, %v", x.name, runs, err)
		}
	}
}
