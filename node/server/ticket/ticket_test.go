package ticket

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

func TestTicket_OpensOnlyForItsHolderAndSubject(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	secret := NewSecret([32]byte{1})
	s := &Sealer{Secret: func() string { return secret }, Wall: func() time.Time { return now }}
	ann, bob := Holder{"ann", 1000}, Holder{"bob", 1001}
	root, other := chunk.Sum([]byte("root")), chunk.Sum([]byte("other"))

	at := s.Reached(ann, 7, MayAdd|Inherits, 42)
	if rights, gid, ok := s.OpenReached(at, ann, 7); !ok || rights != MayAdd|Inherits || gid != 42 {
		t.Errorf("got rights %v, group %d, %v", rights, gid, ok)
	}
	content := s.Readable(ann, 7, root)
	if !s.OpenReadable(content, ann, 7, root) {
		t.Error("a ticket to read does not open")
	}
	had := s.Owned(ann, root)
	if !s.OpenOwned(had, ann, root) {
		t.Error("a ticket of a chunk does not open")
	}
	m := Made{Client: 5, Object: 7, Dir: 8, Mode: 0o100000}
	made := s.SealMade(m, now)
	if err := s.OpenMade(made, m); err != nil {
		t.Error(err)
	}
	reach := func(t []byte, h Holder, o ids.Object) bool {
		_, _, ok := s.OpenReached(t, h, o)
		return ok
	}
	changed := func(t []byte, i int) []byte {
		out := append([]byte(nil), t...)
		out[i] ^= 1
		return out
	}
	for name, opened := range map[string]bool{
		"another user":             reach(at, bob, 7),
		"the user's former uid":    reach(at, Holder{"ann", 7}, 7),
		"another object":           reach(at, ann, 8),
		"more rights":              reach(changed(at, 5), ann, 7),
		"another group":            reach(changed(at, 9), ann, 7),
		"a later end":              reach(changed(at, 4), ann, 7),
		"another kind":             reach(content, ann, 7),
		"no ticket":                reach(nil, ann, 7),
		"half a ticket":            reach(at[:len(at)/2], ann, 7),
		"another version":          s.OpenReadable(content, ann, 7, other),
		"a version of another":     s.OpenReadable(content, ann, 8, root),
		"a reader's for the chunk": s.OpenOwned(content, ann, root),
		"another chunk":            s.OpenOwned(had, ann, other),
		"another client":           s.OpenMade(made, Made{Client: 6, Object: 7, Dir: 8, Mode: 0o100000}) == nil,
		"another directory":        s.OpenMade(made, Made{Client: 5, Object: 7, Dir: 9, Mode: 0o100000}) == nil,
		"another type":             s.OpenMade(made, Made{Client: 5, Object: 7, Dir: 8, Mode: 0o040000}) == nil,
	} {
		if opened {
			t.Errorf("the ticket opens for %s", name)
		}
	}
	secret = NewSecret([32]byte{2})
	if reach(at, ann, 7) {
		t.Error("the ticket opens under another secret")
	}
	secret = ""
	if reach(at, ann, 7) || s.Reached(ann, 7, 0, 0) != nil {
		t.Error("tickets are sealed or opened without a secret")
	}
	secret = NewSecret([32]byte{1})
	if now = now.Add(Life); reach(at, ann, 7) {
		t.Error("the ticket opens behind its end")
	}
}

func BenchmarkOpenReached(b *testing.B) {
	secret := NewSecret([32]byte{1})
	s := &Sealer{Secret: func() string { return secret }, Wall: time.Now}
	ann := Holder{"ann", 1000}
	t := s.Reached(ann, 7, 0, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := s.OpenReached(t, ann, 7); !ok {
			b.Fatal("it does not open")
		}
	}
}
