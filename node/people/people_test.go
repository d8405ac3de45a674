package people

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
)

const secret = "correct horse battery"

var (
	root = Actor{Who: "root"}
	desk = Origin{Address: "192.0.2.1", Agent: "a browser"}
)

// world is a Service with a clock that tests turn.
type world struct {
	*testing.T
	*Service
	store *failing
	now   time.Time
}

// failing is a store that can be away.
type failing struct {
	geoconfig.Store
	err   error
	reads atomic.Int32
	hangs bool // until the caller gives up
}

func (f *failing) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	f.reads.Add(1)
	if f.hangs {
		<-ctx.Done()
		return geoconfig.Rows{}, ctx.Err()
	}
	if f.err != nil {
		return geoconfig.Rows{}, f.err
	}
	return f.Store.Read(ctx, q)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, store: &failing{Store: inmem.New()}, now: time.Unix(1_700_000_000, 0)}
	t.Cleanup(func() { w.store.Close() })
	if _, err := w.store.Apply(t.Context(), geoconfig.Batch{Key: "first", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1}}); err != nil {
		t.Fatal(err)
	}
	w.Service = w.node()
	return w
}

// node is another node's Service over the same store.
func (w *world) node() *Service {
	return New(Options{Store: w.store, Wall: func() time.Time { return w.now }, Cost: Cost{MemoryKiB: 64, Passes: 1}})
}

func (w *world) add(name string, role Role) {
	w.Helper()
	if _, err := w.Add(w.Context(), root, name, role); err != nil {
		w.Fatal(err)
	}
	if _, err := w.SetPassword(w.Context(), root, name, secret, 0); err != nil {
		w.Fatal(err)
	}
}

func (w *world) signIn(name string) string {
	w.Helper()
	token, out, err := w.SignIn(w.Context(), name, secret, desk)
	if err != nil || out.Account != name {
		w.Fatalf("signing %s in: %+v, %v", name, out, err)
	}
	return token
}

func (w *world) wants(kind fault.Kind, err error) {
	w.Helper()
	if fault.KindOf(err) != kind {
		w.Fatalf("got %v of kind %v, want %v", err, fault.KindOf(err), kind)
	}
}

func (w *world) authenticates(s *Service, token string, want fault.Kind) Session {
	w.Helper()
	out, err := s.Authenticate(w.Context(), token)
	w.wants(want, err)
	return out
}

// acts returns the actions in the audit log, the oldest first.
func (w *world) acts() string {
	w.Helper()
	rows, err := w.store.Read(w.Context(), geoconfig.Query{Audit: geoconfig.MaxBatchRows})
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, a := range rows.Audit {
		out = append([]string{a.Action + " " + a.Subject}, out...)
	}
	return strings.Join(out, ", ")
}

func TestSession_EndsAtOnceOnEveryNode(t *testing.T) {
	for what, end := range map[string]func(w *world, token string) error{
		"sign-out": func(w *world, token string) error { return w.SignOut(w.Context(), token, desk) },
		"revocation": func(w *world, token string) error {
			list, err := w.Sessions(w.Context(), "ann")
			if err != nil || len(list) != 1 {
				return fmt.Errorf("listed %v, %w", list, err)
			}
			return w.Revoke(w.Context(), root, list[0].ID, "")
		},
		"a new password": func(w *world, _ string) error {
			return w.ChangePassword(w.Context(), "ann", secret, "another long secret", desk)
		},
		"disabling": func(w *world, _ string) error {
			_, err := w.SetDisabled(w.Context(), root, "ann", true, 0)
			return err
		},
		"removal": func(w *world, _ string) error { return w.Remove(w.Context(), root, "ann", 0) },
		"removal and return": func(w *world, _ string) error {
			if err := w.Remove(w.Context(), root, "ann", 0); err != nil {
				return err
			}
			w.now = w.now.Add(time.Second)
			_, err := w.Add(w.Context(), root, "ann", Administrator)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.add("ann", Operator)
			w.add("bob", Administrator)
			token, others := w.signIn("ann"), w.signIn("bob")
			second := w.node()
			w.authenticates(second, token, fault.None)
			if err := end(w, token); err != nil {
				t.Fatal(err)
			}
			w.authenticates(w.Service, token, fault.Unauthorized)
			w.authenticates(second, token, fault.Unauthorized)
			w.authenticates(second, others, fault.None)
		})
	}
}

func TestSession_IsNewAtEverySignIn(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	first, second := w.signIn("ann"), w.signIn("ann")
	if first == second {
		t.Fatal("two sign-ins have one token")
	}
	// A token that an attacker chose is nobody's, before and after a sign-in.
	for _, token := range []string{"", "x", "chosen.ann", "chosen.none", ".ann", strings.Repeat("x", 1000) + ".ann", first + "x"} {
		w.authenticates(w.Service, token, fault.Unauthorized)
	}
	if err := w.SignOut(t.Context(), first, desk); err != nil {
		t.Fatal(err)
	}
	w.authenticates(w.Service, second, fault.None)
	if CSRF(first) == CSRF(second) {
		t.Error("two sessions share what protects them from foreign pages")
	}
}

func TestSession_ExpiresIdleAndAbsolutely(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	idle, used := w.signIn("ann"), w.signIn("ann")
	began := w.now
	for w.now.Sub(began) < 12*time.Hour-20*time.Minute {
		w.now = w.now.Add(20 * time.Minute)
		if w.now.Sub(began) < 12*time.Hour {
			w.authenticates(w.Service, used, fault.None)
		}
	}
	w.authenticates(w.Service, idle, fault.Unauthorized)
	w.now = began.Add(12 * time.Hour)
	w.authenticates(w.Service, used, fault.Unauthorized)
	if n, err := w.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("swept %d, %v, want 2", n, err)
	}
	if list, err := w.Sessions(t.Context(), ""); len(list) != 0 || err != nil {
		t.Errorf("there are still %v, %v", list, err)
	}
}

func TestStore_HoldsNoSecrets(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	token := w.signIn("ann")
	link, err := w.MakeLink(t.Context(), root, "ann", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, kind := range []string{accountKind, sessionKind, linkKind} {
		rows, err := w.store.Read(t.Context(), geoconfig.Query{Records: 100, RecordKind: kind, Audit: 100})
		if err != nil || len(rows.Records) != 1 {
			t.Fatalf("%s: %d records, %v", kind, len(rows.Records), err)
		}
		text, err := json.Marshal(rows)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, s := range []string{secret, token, strings.TrimSuffix(token, ".ann"), link, strings.TrimSuffix(link, ".ann")} {
		if strings.Contains(all.String(), s) {
			t.Errorf("the store holds %q", s)
		}
	}
	if !strings.Contains(all.String(), "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Error("the hash does not state its cost")
	}
}

func TestAuthenticate_OutlivesTheStoreAsAViewer(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Administrator)
	token, never := w.signIn("ann"), w.signIn("ann")
	w.authenticates(w.Service, token, fault.None)
	w.store.err = fault.E(fault.Unreachable, "test", "", "away")
	if out := w.authenticates(w.Service, token, fault.None); out.Role != Viewer || !out.IsDegraded {
		t.Errorf("while the store is away: %+v", out)
	}
	w.authenticates(w.Service, never, fault.Unreachable)
	w.now = w.now.Add(11 * time.Minute)
	w.authenticates(w.Service, token, fault.Unreachable)
	w.store.err = nil
	if out := w.authenticates(w.Service, token, fault.None); out.Role != Administrator || out.IsDegraded {
		t.Errorf("with the store again: %+v", out)
	}
}

func TestAuthenticate_AsksASilentStoreSeldom(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Administrator)
	token, never := w.signIn("ann"), w.signIn("ann")
	w.authenticates(w.Service, token, fault.None)
	w.store.err = fault.E(fault.Unreachable, "test", "", "away")
	before := w.store.reads.Load()
	for range 10 {
		if out := w.authenticates(w.Service, token, fault.None); out.Role != Viewer || !out.IsDegraded {
			t.Errorf("got %+v, want a viewer", out)
		}
	}
	if asked := w.store.reads.Load() - before; asked != 1 {
		t.Errorf("ten requests asked the store %d times, want once", asked)
	}
	w.authenticates(w.Service, never, fault.Unreachable) // it was not checked before: the store has to know
	w.store.err, w.now = nil, w.now.Add(silence)
	if out := w.authenticates(w.Service, token, fault.None); out.Role != Administrator || out.IsDegraded {
		t.Errorf("with the store again: %+v", out)
	}
}

func TestAuthenticate_BoundsTheWaitForTheStore(t *testing.T) {
	w := newWorld(t)
	w.o.Patience = time.Millisecond
	w.add("ann", Administrator)
	token := w.signIn("ann")
	w.authenticates(w.Service, token, fault.None)
	w.store.hangs = true
	if out := w.authenticates(w.Service, token, fault.None); out.Role != Viewer || !out.IsDegraded {
		t.Errorf("got %+v, want a viewer", out)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	other := w.node()
	w.store.hangs = false
	w.authenticates(other, token, fault.None)
	w.store.hangs = true
	if _, err := other.Authenticate(gone, token); err != nil {
		t.Fatal(err)
	}
	w.store.hangs = false
	if out := w.authenticates(other, token, fault.None); out.IsDegraded {
		t.Error("a caller that had gone made the store count as away")
	}
}

func TestAudit_HasEveryAct(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	w.add("bob", Administrator)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.SetRole(t.Context(), root, "ann", Operator, 0)
	step(err)
	step(w.SignOut(t.Context(), w.signIn("ann"), desk))
	_, err = w.SetDisabled(t.Context(), root, "ann", true, 0)
	step(err)
	_, err = w.SetDisabled(t.Context(), root, "ann", false, 0)
	step(err)
	_, err = w.SetSubject(t.Context(), root, "ann", "https://id.example", "7", 0)
	step(err)
	_, err = w.MakeLink(t.Context(), root, "ann", time.Minute)
	step(err)
	step(w.Remove(t.Context(), root, "ann", 0))
	var want []string
	for _, act := range []string{"account.add", "account.password", "account.add bob", "account.password bob", "account.role", "session.sign-in",
		"session.sign-out", "account.disable", "account.enable", "account.oidc", "link.make", "account.remove"} {
		action, name, ok := strings.Cut(act, " ")
		if !ok {
			name = "ann"
		}
		want = append(want, action+" records/account/"+name)
	}
	if got := w.acts(); got != strings.Join(want, ", ") {
		t.Errorf("the log has %s\nwant %s", got, strings.Join(want, ", "))
	}
}

// TestLink_SignsInOnce has ten browsers open a link at the same time.
func TestLink_SignsInOnce(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Operator)
	link, err := w.MakeLink(t.Context(), root, "ann", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var won []string
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			token, out, err := w.UseLink(t.Context(), link, desk)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && out.Account == "ann" && out.Role == Operator {
				won = append(won, token)
			} else if !fault.Is(err, fault.Expired) {
				t.Errorf("got %v, want expired", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d came in, want 1", len(won))
	}
	w.authenticates(w.Service, won[0], fault.None)
	// What signs in once is no session.
	w.authenticates(w.Service, link, fault.Unauthorized)
}

func TestLink_IsRefusedWhenItCountsNoMore(t *testing.T) {
	for what, spoil := range map[string]func(w *world) error{
		"expired": func(w *world) error { w.now = w.now.Add(time.Minute); return nil },
		"disabled": func(w *world) error {
			_, err := w.SetDisabled(w.Context(), root, "ann", true, 0)
			return err
		},
		"a new password": func(w *world) error {
			_, err := w.SetPassword(w.Context(), root, "ann", secret, 0)
			return err
		},
		"removed": func(w *world) error { return w.Remove(w.Context(), root, "ann", 0) },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.add("ann", Operator)
			link, err := w.MakeLink(t.Context(), root, "ann", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(w); err != nil {
				t.Fatal(err)
			}
			_, _, err = w.UseLink(t.Context(), link, desk)
			w.wants(fault.Expired, err)
		})
	}
	w := newWorld(t)
	w.add("ann", Operator)
	for _, token := range []string{"", "x", "guess.ann", "guess.none", w.signIn("ann")} {
		_, _, err := w.UseLink(t.Context(), token, desk)
		w.wants(fault.Expired, err)
	}
	_, err := w.MakeLink(t.Context(), root, "ann", MaxLinkLife+1)
	w.wants(fault.Invalid, err)
}

func TestFirstLink_MakesTheFirstAdministrator(t *testing.T) {
	w := newWorld(t)
	var links [2]string
	for i := range links {
		var err error
		if links[i], err = w.FirstLink(t.Context(), root, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	token, out, err := w.UseLink(t.Context(), links[0], desk)
	if err != nil || out.Role != Administrator {
		t.Fatalf("got %+v, %v", out, err)
	}
	w.authenticates(w.Service, token, fault.None)
	_, _, err = w.UseLink(t.Context(), links[1], desk)
	w.wants(fault.Expired, err)
	_, err = w.FirstLink(t.Context(), root, time.Hour)
	w.wants(fault.Exists, err)
}

func TestAdministrators_OneStays(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Administrator)
	w.add("bob", Administrator)
	last := func(change func() error) {
		t.Helper()
		w.wants(fault.NotEmpty, change())
	}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, name := range []string{"ann", "bob"} {
		wg.Go(func() { _, errs[i] = w.SetRole(t.Context(), root, name, Viewer, 0) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("both at once: %v, %v; one must win", errs[0], errs[1])
	}
	left := "ann"
	if errs[0] == nil {
		left = "bob"
	}
	last(func() error { _, err := w.SetRole(t.Context(), root, left, Operator, 0); return err })
	last(func() error { _, err := w.SetDisabled(t.Context(), root, left, true, 0); return err })
	last(func() error { return w.Remove(t.Context(), root, left, 0) })
}

func TestChange_RefusesAStaleRevision(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	a, err := w.Account(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if a, err = w.SetRole(t.Context(), root, "ann", Operator, a.Revision); err != nil || a.Role != Operator {
		t.Fatalf("got %+v, %v", a, err)
	}
	for _, rev := range []ids.Revision{a.Revision - 1, a.Revision + 1} {
		_, err = w.SetRole(t.Context(), root, "ann", Viewer, rev)
		w.wants(fault.Conflict, err)
		w.wants(fault.Conflict, w.Remove(t.Context(), root, "ann", rev))
	}
	_, err = w.Add(t.Context(), root, "ann", Viewer)
	w.wants(fault.Exists, err)
	for _, name := range []string{"", "Ann", "a b", "<img>", "../x", strings.Repeat("a", 64), "a\u202eb"} {
		_, err = w.Add(t.Context(), root, name, Viewer)
		w.wants(fault.Invalid, err)
	}
	_, err = w.Add(t.Context(), root, "eve", "king")
	w.wants(fault.Invalid, err)
}

func TestRevoke_TouchesOnesOwnOnly(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	w.add("bob", Viewer)
	token := w.signIn("bob")
	list, err := w.Sessions(t.Context(), "bob")
	if err != nil || len(list) != 1 || list[0].Address != desk.Address || list[0].Agent != desk.Agent {
		t.Fatalf("got %+v, %v", list, err)
	}
	w.wants(fault.NotFound, w.Revoke(t.Context(), Actor{Who: "account/ann"}, list[0].ID, "ann"))
	w.authenticates(w.Service, token, fault.None)
	w.wants(fault.None, w.Revoke(t.Context(), Actor{Who: "account/bob"}, list[0].ID, "bob"))
	w.authenticates(w.Service, token, fault.Unauthorized)
}

func TestSubject_SignsInOneAccount(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Operator)
	w.add("bob", Viewer)
	const issuer = "https://id.example"
	_, _, err := w.SignInSubject(t.Context(), issuer, "7", desk)
	w.wants(fault.Unauthorized, err)
	if _, err := w.SetSubject(t.Context(), root, "ann", issuer, "7", 0); err != nil {
		t.Fatal(err)
	}
	_, err = w.SetSubject(t.Context(), root, "bob", issuer, "7", 0)
	w.wants(fault.Exists, err)
	token, out, err := w.SignInSubject(t.Context(), issuer, "7", desk)
	if err != nil || out.Account != "ann" {
		t.Fatalf("got %+v, %v", out, err)
	}
	_, _, err = w.SignInSubject(t.Context(), "https://other.example", "7", desk)
	w.wants(fault.Unauthorized, err)
	if _, err := w.SetSubject(t.Context(), root, "ann", "", "", 0); err != nil {
		t.Fatal(err)
	}
	w.authenticates(w.Service, token, fault.Unauthorized)
	if _, err = w.SetSubject(t.Context(), root, "bob", issuer, "7", 0); err != nil {
		t.Fatal(err)
	}
}

func TestRole_CoversThoseBelow(t *testing.T) {
	roles := []Role{Viewer, Operator, Administrator}
	for i, a := range roles {
		for j, b := range roles {
			if a.Covers(b) != (i >= j) {
				t.Errorf("%s covers %s: %v", a, b, a.Covers(b))
			}
		}
		if a.Covers("") || Role("king").Covers(a) {
			t.Errorf("an unknown role goes with %s", a)
		}
	}
}
