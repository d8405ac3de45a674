package wire

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

// TestAccount_LimitsSpareOtherUsers: whatever the first user takes, over
// however many connections, the second one is served.
func TestAccount_LimitsSpareOtherUsers(t *testing.T) {
	const hang, block = 10, 11
	for _, test := range []struct {
		name   string
		limits AccountLimits
		method Method
		size   int // of each request
		taken  int // requests under way at the limit
	}{
		{"calls", AccountLimits{Calls: 4}, hang, 0, 4},
		{"workers", AccountLimits{Workers: 3}, block, 0, 3},
		{"bytes", AccountLimits{Held: 250_000}, hang, 100_000, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests := make(chan *Request, 10)
			d := keepDoor(t, func(o *Options) { o.Limits.Account = test.limits })
			d.Inline(hang, func(r *Request) { requests <- r })
			release := make(chan struct{})
			d.Spawn(block, blockUntil(release))
			var first []*rawPeer // the user has a connection of its own for each request
			for range test.taken + 1 {
				p := knock(t, d.Host, Operation)
				p.hello("ann")
				p.answered(77, fault.None)
				first = append(first, p)
			}
			for i, p := range first {
				if err := p.send(framing.Frame{Kind: framing.Call, Method: test.method, Header: uint32(test.size), ID: 1}, make([]byte, test.size)); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the request to be taken", func() bool {
					held := d.accounts.find("ann")
					held.mu.Lock()
					defer held.mu.Unlock()
					return held.calls == min(i+1, test.taken)
				})
			}
			first[test.taken].answered(1, fault.Overloaded)
			other := knock(t, d.Host, Operation)
			other.hello("bob")
			other.answered(77, fault.None)
			if err := other.send(framing.Frame{Kind: framing.Call, Method: otherMethod, Header: 1000, ID: 2}, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			other.answered(2, fault.None)
			close(release)
			if test.method == hang {
				for range test.taken {
					(<-requests).Reply(nil)
				}
			}
			eventually(t, "the account to be empty", func() bool { return d.accounts.find("ann").isIdle() })
		})
	}
}

func TestAccount_CutsUsersThatTakeNoAnswers(t *testing.T) {
	const large = 10
	d := keepDoor(t, func(o *Options) { o.Limits.Account.Queued = 4 << 20 })
	body := make([]byte, 1<<20)
	d.Inline(large, func(r *Request) { r.Reply(nil, body) })
	waiting := func() int64 { return d.accounts.find("ann").queued.Load() }
	var deaf []*rawPeer
	for i := uint64(0); ; i++ {
		p := knock(t, d.Host, Chunk)
		d.greet(p.id, "ann")
		deaf = append(deaf, p)
		for range 4 {
			if p.send(framing.Frame{Kind: framing.Call, Method: large, ID: i}, nil) != nil {
				break
			}
		}
		if i > 100 {
			t.Fatal("a hundred connections that take nothing are served")
		}
		if d.accounts.find("ann") != nil && waiting() >= 4<<20 {
			break
		}
	}
	other := knock(t, d.Host, Operation)
	other.hello("bob")
	other.answered(77, fault.None)
	for range 100 {
		if n := waiting(); n > 10<<20 {
			t.Fatalf("%d bytes of answers wait", n)
		}
		for _, p := range deaf {
			_ = p.send(framing.Frame{Kind: framing.Call, Method: large, ID: 99}, nil) // it may be cut by now
		}
	}
	for _, p := range deaf {
		_ = p.c.Close()
	}
	eventually(t, "what waited to be given back", func() bool { a := d.accounts.find("ann"); return a == nil || a.queued.Load() == 0 })
}

func TestAccount_CountsConnections(t *testing.T) {
	d := keepDoor(t, func(o *Options) { o.Limits.Account.Connections = 2 })
	for range 2 {
		p := knock(t, d.Host, Operation)
		p.hello("ann")
		p.answered(77, fault.None)
	}
	eventually(t, "both to be counted", func() bool { return d.Strangers() == 0 })
	p := knock(t, d.Host, Operation)
	p.hello("ann")
	p.cut("a third connection")
	other := knock(t, d.Host, Operation)
	other.hello("bob")
	other.answered(77, fault.None)
}

// find returns an account that has connections or requests, or nil.
func (a *accounts) find(name string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[name]
}
