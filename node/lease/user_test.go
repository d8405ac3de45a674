package lease

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

func TestTable_LimitsOfAUserLeaveRoomForOthers(t *testing.T) {
	table := New(Config{Length: 100, MaxSessions: 10, MaxLeases: 10, MaxUserSessions: 2, MaxUserLeases: 3, MaxOpen: 10}, 1)
	open := func(user string, client uint64, now int64) (ID, error) {
		if err := table.Admit(0, user); err != nil {
			return 0, err
		}
		id, _, _, err := table.KeepAlive(0, client, 100, now)
		if err == nil {
			table.Charge(id, user)
		}
		return id, err
	}
	var ann []ID
	for client := range uint64(2) {
		id, err := open("ann", client+1, 0)
		if err != nil {
			t.Fatal(err)
		}
		ann = append(ann, id)
	}
	if _, err := open("ann", 3, 0); !fault.Is(err, fault.Overloaded) {
		t.Errorf("a third session of one user: %v", err)
	}
	if err := table.Admit(ann[0], "ann"); err != nil {
		t.Errorf("a session that there is already: %v", err)
	}
	bob, err := open("bob", 4, 0)
	if err != nil {
		t.Fatalf("another user: %v", err)
	}
	granted := func(id ID, from, n int) (got int) {
		for i := range n {
			if _, ok := table.Grant(id, ids.NewObject(1, uint64(from+i)), pb.Grant_FILE, 1); ok {
				got++
			}
		}
		return got
	}
	if n := granted(ann[0], 0, 2) + granted(ann[1], 10, 5); n != 3 {
		t.Errorf("one user has %d leases, want 3", n)
	}
	if n := granted(ann[0], 0, 2); n != 2 {
		t.Errorf("%d of 2 leases were renewed at the limit", n)
	}
	if n := granted(bob, 20, 3); n != 3 {
		t.Errorf("another user got %d leases of 3", n)
	}
	table.Close(ann[0], 1)
	if n := granted(ann[1], 30, 5); n != 2 {
		t.Errorf("with one session closed the user got %d more, want 2", n)
	}
	table.Expire(1000)
	if len(table.users) != 0 {
		t.Errorf("users stay when their sessions have ended: %v", table.users)
	}
}
