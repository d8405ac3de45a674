package people

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// TestSignIn_SlowsGuessesOnOneAccount tries 1,000 passwords within a minute, each
// from another address.
func TestSignIn_SlowsGuessesOnOneAccount(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Administrator)
	tried := 0
	for i := range 1000 {
		_, _, err := w.SignIn(t.Context(), "ann", fmt.Sprint("guess number ", i), Origin{Address: fmt.Sprintf("198.51.%d.%d", i/250, i%250)})
		switch {
		case fault.Is(err, fault.Unauthorized):
			tried++
		case !fault.Is(err, fault.Overloaded):
			t.Fatalf("guess %d: %v", i, err)
		}
		w.now = w.now.Add(60 * time.Millisecond)
	}
	// Five are free, and the waits of 1, 2, 4, 8, 16 and 32 s follow each other.
	if tried != 10 {
		t.Errorf("%d of 1,000 guesses in a minute were tried, want 10", tried)
	}
	if n := strings.Count(w.acts(), "session.throttle"); n != 1 {
		t.Errorf("the log tells of it %d times, want once", n)
	}
	// The longest wait is a minute: nobody is locked out for good.
	w.now = w.now.Add(time.Minute)
	w.signIn("ann")
}

// TestSignIn_SlowsOnePasswordOnManyAccounts tries one password on 1,000 accounts
// from one address, and from addresses of one network.
func TestSignIn_SlowsOnePasswordOnManyAccounts(t *testing.T) {
	for what, address := range map[string]func(i int) string{
		"one address":           func(int) string { return "192.0.2.9" },
		"one network of IPv6":   func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i+1) },
		"IPv4 written as IPv6":  func(i int) string { return []string{"192.0.2.9", "::ffff:192.0.2.9"}[i%2] },
		"no address that it is": func(int) string { return "nonsense" },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			tried := 0
			for i := range 1000 {
				_, _, err := w.SignIn(t.Context(), fmt.Sprint("user", i), "password123456", Origin{Address: address(i)})
				if fault.Is(err, fault.Unauthorized) {
					tried++
				} else {
					w.wants(fault.Overloaded, err)
				}
			}
			if tried != 20 {
				t.Errorf("%d of 1,000 were tried, want 20", tried)
			}
		})
	}
}

// TestSignIn_TellsNothingOfNames compares the answers for every kind of name,
// those of the throttle too.
func TestSignIn_TellsNothingOfNames(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	w.add("off", Viewer)
	if _, err := w.SetDisabled(t.Context(), root, "off", true, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(t.Context(), root, "bare", Viewer); err != nil {
		t.Fatal(err)
	}
	answers := func(name, password string) string {
		var out []string
		for i := range 8 {
			_, _, err := w.SignIn(t.Context(), name, password, Origin{Address: fmt.Sprintf("203.0.113.%d", i)})
			out = append(out, fmt.Sprint(err))
		}
		w.now = w.now.Add(2 * time.Hour)
		return strings.Join(out, "\n")
	}
	want := answers("ann", "wrong password")
	for _, c := range [][2]string{{"nobody", "wrong password"}, {"off", secret}, {"bare", ""}, {"bare", "wrong password"}, {"", secret},
		{"<img src=x>", secret}, {strings.Repeat("n", 70_000), secret}, {"ann", strings.Repeat("p", 70_000)}, {"a\x00b", secret}} {
		if got := answers(c[0], c[1]); got != want {
			t.Errorf("%.20q is answered\n%s\nand a wrong password\n%s", c[0], got, want)
		}
	}
}

// TestSignIn_HashesForEveryName fills the queue of hashes: every name gets to it,
// so that all take one hash's time.
func TestSignIn_HashesForEveryName(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	if _, err := w.Add(t.Context(), root, "bare", Viewer); err != nil {
		t.Fatal(err)
	}
	for range cap(w.hasher.waiting) {
		w.hasher.waiting <- struct{}{}
	}
	for range 100 { // it is no guess, so it never has to wait
		for _, name := range []string{"ann", "bare", "nobody", "<img>"} {
			_, _, err := w.SignIn(t.Context(), name, "wrong password", desk)
			w.wants(fault.Overloaded, err)
			if !strings.Contains(err.Error(), "people sign in at once") {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	for range cap(w.hasher.waiting) {
		<-w.hasher.waiting
	}
	w.signIn("ann")
	c, _, _, err := parse(w.hasher.nobody)
	if err != nil || c.MemoryKiB != w.hasher.cost.MemoryKiB || c.Passes != w.hasher.cost.Passes || c.Lanes != w.hasher.cost.Lanes {
		t.Errorf("a name without a password costs %+v, %v, others %+v", c, err, w.hasher.cost)
	}
}

func TestThrottle_IsBounded(t *testing.T) {
	b := newThrottle(Backoff{Free: 1, First: time.Minute, Longest: time.Hour}, 100)
	now := time.Unix(1, 0)
	for i := range 10_000 {
		b.attempt(fmt.Sprint(i), now)
	}
	if len(b.entries) != 100 || b.order.Len() != 100 {
		t.Fatalf("%d and %d entries are remembered, want 100", len(b.entries), b.order.Len())
	}
	if wait, _ := b.attempt("9999", now); wait != time.Minute {
		t.Errorf("the last one waits %v, want a minute", wait)
	}
	if wait, _ := b.attempt("9999", now.Add(2*forgetAfter)); wait != 0 {
		t.Errorf("after a quiet time it waits %v", wait)
	}
	if got := b.backoff.after(1 << 30); got != time.Hour {
		t.Errorf("the longest wait is %v, want an hour", got)
	}
}

func TestPassword_NeedsLengthOnly(t *testing.T) {
	w := newWorld(t)
	w.add("ann", Viewer)
	for password, want := range map[string]fault.Kind{
		"":                          fault.Invalid,
		"elevenchars":               fault.Invalid,
		"twelve chars":              fault.None,
		"aaaaaaaaaaaa":              fault.None,
		strings.Repeat("ä", 12):     fault.None,
		strings.Repeat("ä", 11):     fault.Invalid,
		strings.Repeat("a", 256):    fault.None,
		strings.Repeat("a", 257):    fault.Invalid,
		"\xff" + "twelve chars too": fault.Invalid,
	} {
		_, err := w.SetPassword(t.Context(), root, "ann", password, 0)
		w.wants(want, err)
		if err != nil {
			continue
		}
		if _, _, err := w.SignIn(t.Context(), "ann", password, desk); err != nil {
			t.Errorf("%q does not sign in: %v", password, err)
		}
	}
}

func TestHash_DamagedIsRefused(t *testing.T) {
	w := newWorld(t)
	good, err := w.hasher.hash(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"x", strings.Replace(good, "argon2id", "md5", 1), strings.Replace(good, "v=19", "v=16", 1), strings.Replace(good, "m=64", "m=4294967295", 1),
		strings.Replace(good, "t=1", "t=0", 1), good[:len(good)-4], strings.Replace(good, "p=1$", "p=1$!", 1)} {
		if _, err := w.hasher.matches(t.Context(), bad, secret); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%q: got %v, want corrupt", bad, err)
		}
	}
	if ok, err := w.hasher.matches(t.Context(), good, secret); !ok || err != nil {
		t.Errorf("the good one: %v, %v", ok, err)
	}
}

func BenchmarkHash_AtTheDefaultCost(b *testing.B) {
	s := New(Options{})
	for b.Loop() {
		if _, err := s.hasher.matches(b.Context(), "", secret); err != nil {
			b.Fatal(err)
		}
	}
}
