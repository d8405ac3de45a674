package people

import (
	"cmp"
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Session is what may be shown of a session.
type Session struct {
	// ID names the session in lists. It is not its token.
	ID      string
	Account string
	// Role is that of the account now.
	Role Role
	// IsDegraded says that the store could not be reached, so that an earlier
	// check stands, for a viewer.
	IsDegraded bool
	Created    time.Time
	// Seen is when it was last used, to a tenth of Options.Idle.
	Seen time.Time
	// Expires is when it ends unless it is used.
	Expires        time.Time
	Address, Agent string
}

// session is the body of a session's record.
type session struct {
	Account string `json:"account"`
	// Generation is the account's; the session ends when that moves on.
	Generation int64  `json:"generation"`
	CreatedNS  int64  `json:"created_ns"`
	SeenNS     int64  `json:"seen_ns"`
	Address    string `json:"address,omitempty"`
	Agent      string `json:"agent,omitempty"`

	id       string
	revision ids.Revision
}

// checkedSession is a session that was found good.
type checkedSession struct {
	session Session
	at      time.Time
}

const (
	maxAgentBytes = 200
	// maxChecked is how many sessions a node remembers for Options.Grace. Any of
	// them makes room for another one.
	maxChecked = 1000
	// touches is how many times a session is marked as seen before it is idle.
	touches = 10
)

var errSignedOut = fault.E(fault.Unauthorized, "people.Authenticate", "", "you are not signed in, or the session has ended: sign in again")

func decodeSession(r geoconfig.Record) (session, error) {
	b := session{id: r.Name, revision: r.Revision}
	err := decode(r, &b)
	return b, err
}

// ends returns when a session ends unless it is used.
func (s *Service) ends(b session) time.Time {
	idle, absolute := time.Unix(0, b.SeenNS).Add(s.o.Idle), time.Unix(0, b.CreatedNS).Add(s.o.Absolute)
	if idle.Before(absolute) {
		return idle
	}
	return absolute
}

func (s *Service) sessionRecord(b session) (geoconfig.Record, error) {
	return encode(sessionKind, b.id, b, s.ends(b), b.revision)
}

func (s *Service) shown(b session, role Role) Session {
	return Session{
		ID: b.id, Account: b.Account, Role: role, Created: time.Unix(0, b.CreatedNS), Seen: time.Unix(0, b.SeenNS),
		Expires: s.ends(b), Address: b.Address, Agent: b.Agent,
	}
}

// open makes a session of an account, with the batch that signs it in. Every
// sign-in has a new token, whatever the browser sent before.
func (s *Service) open(ctx context.Context, a account, from Origin, b geoconfig.Batch, how string) (token string, out Session, err error) {
	if token, err = s.newToken(a.name); err != nil {
		return "", Session{}, err
	}
	_, id, _ := splitToken(token)
	now := s.o.Wall()
	body := session{
		id: id, Account: a.name, Generation: a.Generation, CreatedNS: now.UnixNano(), SeenNS: now.UnixNano(),
		Address: cut(from.Address, maxOriginBytes), Agent: cut(from.Agent, maxAgentBytes),
	}
	r, err := s.sessionRecord(body)
	if err != nil {
		return "", Session{}, err
	}
	b.Records = append(b.Records, r)
	act := Actor{Who: "account/" + a.name, From: body.Address}.did("session.sign-in", a.name, how)
	if _, err = s.apply(ctx, b, act); fault.Is(err, fault.TooLarge) {
		// Full of sessions that nobody has removed yet.
		if _, err = s.Sweep(ctx); err == nil {
			_, err = s.apply(ctx, b, act)
		}
	}
	if err != nil {
		return "", Session{}, err
	}
	return token, s.shown(body, a.Role), nil
}

// Authenticate returns the session of a token. Errors: Unauthorized (no such
// session, or it has ended), and those of the store, unless the session was
// found good within Options.Grace.
func (s *Service) Authenticate(ctx context.Context, token string) (Session, error) {
	name, id, ok := splitToken(token)
	if !ok {
		return Session{}, errSignedOut
	}
	now := s.o.Wall()
	sessionKey, accountKey := geoconfig.RecordKey{Kind: sessionKind, Name: id}, geoconfig.RecordKey{Kind: accountKind, Name: name}
	asking, cancel, remembered := s.besideStore(ctx, id, now)
	defer cancel()
	if remembered != nil {
		return *remembered, nil
	}
	found, err := s.find(asking, sessionKey, accountKey)
	if err != nil {
		return s.recall(ctx, id, now, err)
	}
	r, isThere := found[sessionKey]
	of, hasAccount := found[accountKey]
	if !isThere || !hasAccount {
		s.forget(id)
		return Session{}, errSignedOut
	}
	b, err := decodeSession(r)
	if err != nil {
		return Session{}, err
	}
	a, err := decodeAccount(of)
	if err != nil {
		return Session{}, err
	}
	if a.Disabled || b.Account != a.name || b.Generation != a.Generation || !now.Before(s.ends(b)) {
		s.forget(id)
		return Session{}, errSignedOut
	}
	if now.Sub(time.Unix(0, b.SeenNS)) >= s.o.Idle/touches {
		s.touch(asking, &b, now)
	}
	out := s.shown(b, a.Role)
	s.remember(out, now)
	return out, nil
}

// touch marks a session as seen. If that does not come through the next request
// tries again; if the session was changed or revoked meanwhile, that stands.
func (s *Service) touch(ctx context.Context, b *session, now time.Time) {
	next := *b
	next.SeenNS = now.UnixNano()
	r, err := s.sessionRecord(next)
	if err != nil {
		return
	}
	if _, err := s.apply(ctx, geoconfig.Batch{Records: []geoconfig.Record{r}}); err == nil {
		*b = next
	}
}

// remember notes that a session was found good.
func (s *Service) remember(out Session, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.checked[out.ID]; !known && len(s.checked) >= maxChecked {
		for id := range s.checked {
			delete(s.checked, id)
			break
		}
	}
	s.checked[out.ID] = checkedSession{out, now}
}

// strangerPatience is how long the store is waited for when this node has not
// checked the session before. The gateway gives up after 10 s, and then says
// nothing of the store.
const strangerPatience = 5 * time.Second

// besideStore returns a remembered session where the store was silent a moment
// ago. Else it returns the context with which to ask the store, which ends sooner
// where the session is remembered. A page makes several requests: were each to
// wait for a store that is away, the console would stand still.
func (s *Service) besideStore(ctx context.Context, id string, now time.Time) (context.Context, context.CancelFunc, *Session) {
	out, isKnown := s.remembered(id, now)
	if !isKnown {
		ctx, cancel := context.WithTimeout(ctx, strangerPatience)
		return ctx, cancel, nil
	}
	s.mu.Lock()
	isSilent := now.Before(s.silent)
	s.mu.Unlock()
	if isSilent {
		return ctx, func() {}, &out
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Patience)
	return ctx, cancel, nil
}

// recall answers for a store that cannot be reached, and notes that it is silent.
// Only a session that was good notes it: strangers have no say in that.
func (s *Service) recall(ctx context.Context, id string, now time.Time, cause error) (Session, error) {
	out, isKnown := s.remembered(id, now)
	if !isKnown {
		return Session{}, cause
	}
	if ctx.Err() == nil { // else the caller has gone, which says nothing of the store
		s.mu.Lock()
		s.silent = s.o.Wall().Add(silence)
		s.mu.Unlock()
	}
	return out, nil
}

// remembered is a session that was found good within the grace period. While the
// store is away it is a viewer's.
func (s *Service) remembered(id string, now time.Time) (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.checked[id]
	if !ok || now.Sub(c.at) > s.o.Grace || !now.Before(c.session.Expires) {
		return Session{}, false
	}
	c.session.Role, c.session.IsDegraded = Viewer, true
	return c.session, true
}

// silence is for how long a store that did not answer is not asked again.
const silence = 5 * time.Second

func (s *Service) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checked, id)
}

// forgetAccount forgets an account's sessions, unless its change failed.
func (s *Service) forgetAccount(name string, err error) {
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.checked {
		if c.session.Account == name {
			delete(s.checked, id)
		}
	}
}

// Sessions returns the living sessions of an account, of all with "", the one
// used last first.
func (s *Service) Sessions(ctx context.Context, name string) ([]Session, error) {
	out := []Session{}
	now := s.o.Wall()
	accounts := map[string]account{}
	err := s.each(ctx, accountKind, func(r geoconfig.Record) error {
		a, err := decodeAccount(r)
		accounts[a.name] = a
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.each(ctx, sessionKind, func(r geoconfig.Record) error {
		b, err := decodeSession(r)
		a := accounts[b.Account]
		if err == nil && (name == "" || b.Account == name) && !isExpired(r, now) && !a.Disabled && a.Generation == b.Generation {
			out = append(out, s.shown(b, a.Role))
		}
		return err
	})
	slices.SortFunc(out, func(a, b Session) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.ID, b.ID)) })
	return out, err
}

// SignOut ends the session of a token, at once and on every node. A session that
// has ended already is no error.
func (s *Service) SignOut(ctx context.Context, token string, from Origin) error {
	name, id, ok := splitToken(token)
	if !ok {
		return nil
	}
	err := s.revoke(ctx, id, "", Actor{Who: "account/" + name, From: cut(from.Address, maxOriginBytes)}, "session.sign-out")
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// Revoke ends a session by its ID. Owner is the account that it must be of;
// empty: any. Error: NotFound, also where it is of another account.
func (s *Service) Revoke(ctx context.Context, by Actor, id, owner string) error {
	return s.revoke(ctx, id, owner, by, "session.revoke")
}

// revokeTries bounds how often a session is read again because it was used
// meanwhile.
const revokeTries = 5

func (s *Service) revoke(ctx context.Context, id, owner string, by Actor, action string) error {
	const op fault.Op = "people.revoke"
	key := geoconfig.RecordKey{Kind: sessionKind, Name: id}
	var err error
	for range revokeTries {
		var found map[geoconfig.RecordKey]geoconfig.Record
		if found, err = s.find(ctx, key); err != nil {
			return err
		}
		r, ok := found[key]
		if !ok {
			return fault.E(fault.NotFound, op, cut(id, maxTokenBytes), "there is no such session; it may have ended")
		}
		b, bad := decodeSession(r)
		if bad != nil {
			return bad
		}
		if owner != "" && b.Account != owner {
			return fault.E(fault.NotFound, op, cut(id, maxTokenBytes), "there is no such session; it may have ended")
		}
		_, err = s.apply(ctx, geoconfig.Batch{Remove: []geoconfig.Removal{removal(r)}}, by.did(action, b.Account, "session "+id[:8]))
		if err == nil {
			s.forget(id)
		}
		if !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return err
}
