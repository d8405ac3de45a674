// Package lease keeps what a node has promised its clients: sessions, and
// within them leases on objects, which say what a client may cache. It is pure
// bookkeeping: it sends nothing, and time (nanoseconds of the node's
// CLOCK_BOOTTIME) is passed in. It does not decide whether the node may grant
// at all; the server asks the replica core for that. A Table is not safe for
// concurrent use: one mutex of the server's guards it, held for microseconds.
//
// What keeps caches true: from Begin to End of a change no lease is granted on
// what it touches, and the change goes on only when every lease of other
// sessions on it was answered for (Answer) or its session has ended (Expire). A
// revocation that was merely sent frees nothing.
package lease

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// ID numbers a session of this node; 0 is none.
type ID uint64

// Config limits a table.
type Config struct {
	// Length is how long a session lives after a keep-alive, in nanoseconds.
	Length int64
	// MaxSessions bounds the sessions; more are refused as Overloaded.
	MaxSessions int
	// MaxUserSessions and MaxUserLeases bound those of one user, so that room is
	// left for others: more sessions are refused as Overloaded, no more leases are
	// granted. 0: no bound of their own.
	MaxUserSessions, MaxUserLeases int
	// MaxLeases bounds the leases of all sessions; beyond it none is granted,
	// and Evict begins to take back the oldest.
	MaxLeases int
	// MaxOpen bounds the open files remembered for one session; beyond it the
	// oldest knowledge goes, and those files die with their last name.
	MaxOpen int
	// Shared is for how long after a lease of kind ALONE was taken back for
	// another session nobody gets one on that directory, in nanoseconds: those
	// who share it would take it from each other all the time.
	Shared int64
}

// DefaultConfig returns the limits of a node.
func DefaultConfig() Config {
	return Config{Length: 3e9, MaxSessions: 8192, MaxLeases: 200_000, MaxOpen: 65_536, Shared: 5e9}
}

// key is what a lease is on.
type key struct {
	object ids.Object
	what   pb.Grant_What
}

// session is one client's, or, with client 0, nobody's: what was promised by a
// former active, or before a slice was excepted. Such leases only run out.
type session struct {
	id     ID
	client uint64
	end    int64
	// serial numbers grants and revocations; each takes the next.
	serial uint64
	leases map[key]*lease
	user   *user // nil where nobody was charged
	open   map[ids.Object]struct{}
	asked  map[uint64][]*lease // by serial of the revocation under way
	// owes is the oldest revocation not answered at a keep-alive, and until the
	// time up to which keep-alives still prolong the session beside it.
	owes  uint64
	until int64
}

// lease is one session's lease on one thing. It is in the table until its
// revocation is answered or the session ends.
type lease struct {
	key
	session *session
	// revoking is the serial of the revocation under way, 0 for none.
	revoking   uint64
	waiters    []*Change
	prev, next *lease // by age; leases being revoked are not in this list
}

// object is what the table knows of one key.
type object struct {
	leases  []*lease
	changes int // begun and not ended
	// by is the session whose changes these are, 0 where they are several's.
	by ID
}

// Table holds a node's sessions and leases.
type Table struct {
	config   Config
	next     ID
	sessions map[ID]*session
	objects  map[key]*object
	openers  map[ids.Object][]*session
	// unlinking counts the changes under way that take an object's last name.
	unlinking map[ids.Object]int
	users     map[string]*user
	shunned   map[ids.Object]int64 // directories that nobody gets alone, until a time
	oldest    lease                // head of the ring of leases by age
	leases    int
	soonest   int64 // no session ends before
}

// New returns an empty table. First is where the session numbers start: a
// random one, so that a restarted node does not repeat them.
func New(config Config, first uint64) *Table {
	t := &Table{
		config: config, next: ID(first | 1), sessions: map[ID]*session{},
		objects: map[key]*object{}, users: map[string]*user{}, openers: map[ids.Object][]*session{},
		unlinking: map[ids.Object]int{},
		shunned:   map[ids.Object]int64{},
	}
	t.oldest.prev, t.oldest.next = &t.oldest, &t.oldest
	return t
}

// Len returns how many sessions and leases there are.
func (t *Table) Len() (sessions, leases int) { return len(t.sessions), t.leases }

// KeepAlive prolongs a session and returns its number and the time left. One
// that is unknown or has lapsed gets a new number, and with that the client
// knows that all its leases are void. The session never outlives limit, the
// time for which the node itself may act. A client that keeps alive but owes the
// answer to a revocation is prolonged for one more length, then lapses, so that
// it cannot hold up a writer. Ready are changes that a lapse let go on.
func (t *Table) KeepAlive(id ID, client uint64, limit, now int64) (ID, int64, []*Change, error) {
	const op fault.Op = "lease.KeepAlive"
	left := min(t.config.Length, limit)
	if left <= 0 {
		return 0, 0, nil, fault.E(fault.NotActive, op, "", "the node may not act for any slice now")
	}
	var ready []*Change
	s := t.sessions[id]
	if s != nil && (s.client != client || s.end <= now) {
		if s.client == client {
			ready = t.drop(s)
		}
		s = nil
	}
	if s == nil {
		if len(t.sessions) >= t.config.MaxSessions {
			return 0, 0, ready, fault.E(fault.Overloaded, op, "", "the node has as many sessions as it takes")
		}
		s = t.add(client, now)
	}
	if oldest := s.oldestAsked(); oldest == 0 {
		s.owes = 0
	} else if oldest != s.owes {
		s.owes, s.until = oldest, now+t.config.Length
	}
	if s.owes != 0 {
		left = min(left, s.until-now)
	}
	s.end = max(s.end, now+left)
	return s.id, s.end - now, ready, nil
}

// oldestAsked is the serial of the oldest revocation under way, 0 for none.
func (s *session) oldestAsked() (oldest uint64) {
	for serial := range s.asked {
		if oldest == 0 || serial < oldest {
			oldest = serial
		}
	}
	return oldest
}

func (t *Table) add(client uint64, now int64) *session {
	t.next++
	s := &session{id: t.next, client: client, end: now, leases: map[key]*lease{}}
	t.sessions[s.id] = s
	t.soonest = min(t.soonest, now)
	return s
}

// Valid reports whether a session lives and is this client's.
func (t *Table) Valid(id ID, client uint64, now int64) bool {
	s := t.sessions[id]
	return s != nil && s.client == client && client != 0 && now < s.end
}

// Close ends a session that its client gives up.
func (t *Table) Close(id ID, client uint64) []*Change {
	if s := t.sessions[id]; s != nil && s.client == client && client != 0 {
		return t.drop(s)
	}
	return nil
}

// Ended is a session that lapsed.
type Ended struct {
	Session ID
	Client  uint64
	// Open are objects without a name, perhaps, that it had said it has open.
	Open []ids.Object
}

// Expire ends the sessions whose time is over. It costs nothing while none is.
// Ended has the clients whose locks and open files go; a client may have
// another session by now (Clients).
func (t *Table) Expire(now int64) (ended []Ended, ready []*Change) {
	if now < t.soonest {
		return nil, nil
	}
	t.soonest = 1<<63 - 1
	for _, s := range t.sessions {
		if s.end > now {
			t.soonest = min(t.soonest, s.end)
			continue
		}
		if s.client != 0 {
			e := Ended{Session: s.id, Client: s.client}
			for o := range s.open {
				e.Open = append(e.Open, o)
			}
			ended = append(ended, e)
		}
		ready = append(ready, t.drop(s)...)
	}
	return ended, ready
}

// NextEnd is a time before which Expire has nothing to do.
func (t *Table) NextEnd() int64 { return t.soonest }

// Live reports whether a client has a session.
func (t *Table) Live(client uint64, now int64) bool {
	for _, s := range t.sessions {
		if s.client == client && now < s.end {
			return true
		}
	}
	return false
}

// drop removes a session with all that it has.
func (t *Table) drop(s *session) []*Change {
	var ready []*Change
	for _, l := range s.leases {
		ready = append(ready, t.free(l)...)
	}
	for o := range s.open {
		t.forgetOpen(s, o)
	}
	delete(t.sessions, s.id)
	t.discharge(s)
	return ready
}
