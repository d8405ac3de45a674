package lease

import "cartwheel.dev/geo-config/fault"

// user is what the sessions of one user have together.
type user struct {
	name             string
	sessions, leases int
}

// Admit answers Overloaded where a user has as many sessions as it may and the
// one named is none of them.
func (t *Table) Admit(id ID, name string) error {
	u := t.users[name]
	if s := t.sessions[id]; t.config.MaxUserSessions == 0 || u == nil || u.sessions < t.config.MaxUserSessions || s != nil && s.user == u {
		return nil
	}
	return fault.Errorf(fault.Overloaded, "lease.Admit", name, "the user has %d sessions here, as many as one may", u.sessions)
}

// Charge counts a session, with the leases that it gets, for a user. One that is
// charged already stays where it is.
func (t *Table) Charge(id ID, name string) {
	s := t.sessions[id]
	if s == nil || s.user != nil {
		return
	}
	u := t.users[name]
	if u == nil {
		u = &user{name: name}
		t.users[name] = u
	}
	u.sessions++
	u.leases += len(s.leases)
	s.user = u
}

// discharge ends what Charge began; the session has no leases any more.
func (t *Table) discharge(s *session) {
	if s.user == nil {
		return
	}
	if s.user.sessions--; s.user.sessions == 0 {
		delete(t.users, s.user.name)
	}
	s.user = nil
}

// leased counts a lease that a session gets, or loses.
func (s *session) leased(n int) {
	if s.user != nil {
		s.user.leases += n
	}
}

// sated reports whether a session's user has as many leases as it may.
func (t *Table) sated(s *session) bool {
	return s.user != nil && t.config.MaxUserLeases != 0 && s.user.leases >= t.config.MaxUserLeases
}
