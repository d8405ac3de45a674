package chunks

import (
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

const (
	// stagedLeast is what a chunk counts at least: its entry takes memory too.
	stagedLeast = 16 << 10
	// stagedEntries bounds the chunks of one generation, of all users together.
	// A full one turns before its time, which gives bytes back too early.
	stagedEntries = 1 << 19
)

// Staged counts for each user the bytes of the chunks that this node took from
// the user's clients and that no committed operation has named yet. A chunk
// leaves it when an operation that names it is applied here, or after one to
// two lives. It is kept in memory: a start forgets it. A nil Staged counts
// nothing; any other is safe for concurrent use.
type Staged struct {
	limit int64
	life  time.Duration
	now   func() time.Duration

	count atomic.Int64 // of chunks, for the fast no

	mu         sync.Mutex // guards below
	turned     time.Duration
	young, old stagedGeneration
	writing    map[string]int64 // bytes that are being stored
}

// stagedGeneration is the chunks of one life, and their bytes by user.
type stagedGeneration struct {
	chunks map[stagedKey]stagedChunk
	users  map[string]int64
}

// stagedKey is a part of an address: a false match counts one chunk too few.
type stagedKey [8]byte

type stagedChunk struct {
	user  string
	bytes int64
}

// NewStaged returns a count that allows each user so many bytes.
func NewStaged(limit int64, life time.Duration, now func() time.Duration) *Staged {
	return &Staged{limit: limit, life: life, now: now, turned: now(), writing: map[string]int64{}}
}

// take makes room for chunks that a user is about to store, or answers
// Overloaded. Whoever has nothing here may store one request, however large.
func (s *Staged) take(user string, sizes []uint32) (int64, error) {
	n := int64(0)
	for _, size := range sizes {
		n += stagedBytes(size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnLocked()
	has := s.young.users[user] + s.old.users[user] + s.writing[user]
	if has > 0 && has+n > s.limit {
		return 0, fault.Errorf(fault.Overloaded, "chunks.take", user,
			"chunks that were stored for this user and that no file names yet count %d bytes here, and %d may: commit them, or wait up to %v; the node's option is max_user_staged_bytes", has, s.limit, 2*s.life)
	}
	s.writing[user] += n
	return n, nil
}

// done ends what take began. The chunks in stored count on, until they are
// committed.
func (s *Staged) done(user string, taken int64, stored []chunk.Address, sizes []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing[user] -= taken; s.writing[user] <= 0 {
		delete(s.writing, user)
	}
	for i := range stored {
		k := stagedKey(stored[i][:8])
		if s.young.has(k) || s.old.has(k) {
			continue
		}
		if len(s.young.chunks) >= stagedEntries {
			s.turned = s.now()
			s.older()
		}
		s.young.add(k, stagedChunk{user: user, bytes: stagedBytes(sizes[i])})
		s.count.Add(1)
	}
}

// Committed gives back what chunks count, whose addresses are end to end.
func (s *Staged) Committed(addresses []byte) {
	if s == nil || s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; len(addresses) >= chunk.AddressSize; addresses = addresses[chunk.AddressSize:] {
		k := stagedKey(addresses[:8])
		if s.young.remove(k) || s.old.remove(k) {
			s.count.Add(-1)
		}
	}
}

// turnLocked forgets what is older than its life. Called with mu held.
func (s *Staged) turnLocked() {
	now := s.now()
	if now-s.turned < s.life {
		return
	}
	late := now-s.turned >= 2*s.life
	s.turned = now
	if s.older(); late {
		s.older()
	}
}

// older makes the young generation the old one.
func (s *Staged) older() {
	s.count.Add(-int64(len(s.old.chunks)))
	s.old, s.young = s.young, stagedGeneration{}
}

func (g *stagedGeneration) has(k stagedKey) bool {
	_, ok := g.chunks[k]
	return ok
}

func (g *stagedGeneration) add(k stagedKey, c stagedChunk) {
	if g.chunks == nil {
		g.chunks, g.users = map[stagedKey]stagedChunk{}, map[string]int64{}
	}
	g.chunks[k] = c
	g.users[c.user] += c.bytes
}

func (g *stagedGeneration) remove(k stagedKey) bool {
	c, ok := g.chunks[k]
	if !ok {
		return false
	}
	delete(g.chunks, k)
	if g.users[c.user] -= c.bytes; g.users[c.user] <= 0 {
		delete(g.users, c.user)
	}
	return true
}

func stagedBytes(size uint32) int64 { return max(int64(size), stagedLeast) }
