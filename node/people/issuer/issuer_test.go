package issuer_test

import (
	"context"
	"crypto/rand"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/people/issuer"
	"cartwheel.dev/node/people/issuertest"
)

func client(p *issuertest.Provider) *issuer.Client {
	return issuer.New(issuer.Options{Issuer: p.URL, ID: issuertest.Client, Secret: issuertest.Secret, Redirect: "https://console.example/callback", Rand: rand.Reader})
}

func TestFinish_NamesTheSubject(t *testing.T) {
	p := issuertest.Start(t)
	c := client(p)
	address, secret, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, code := p.Visit(address)
	if subject, err := c.Finish(t.Context(), secret, state, code); err != nil || subject != issuertest.Subject {
		t.Fatalf("got %q, %v", subject, err)
	}
	if _, err := c.Finish(t.Context(), secret, state, code); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the same code again: got %v, want unauthorized", err)
	}
}

func TestFinish_RefusesWhatDoesNotFit(t *testing.T) {
	p := issuertest.Start(t)
	c := client(p)
	for what, forge := range map[string]func(secret, state, code *string){
		"no cookie":            func(secret, _, _ *string) { *secret = "" },
		"another's cookie":     func(secret, _, _ *string) { _, *secret, _ = c.Start(t.Context()) },
		"another state":        func(_, state, _ *string) { *state = "x" },
		"no state, no cookie":  func(secret, state, _ *string) { *secret, *state = "..", "" },
		"no code":              func(_, _, code *string) { *code = "" },
		"a code of another":    func(_, _, code *string) { a, _, _ := c.Start(t.Context()); _, *code = p.Visit(a) },
		"another verifier":     func(secret, _, _ *string) { *secret += "x" },
		"a token for others":   func(_, _, _ *string) { p.Spoil = func(m map[string]any) { m["aud"] = "another" } },
		"an old token":         func(_, _, _ *string) { p.Spoil = func(m map[string]any) { m["exp"] = 1 } },
		"another nonce":        func(_, _, _ *string) { p.Spoil = func(m map[string]any) { m["nonce"] = "x" } },
		"no nonce":             func(_, _, _ *string) { p.Spoil = func(m map[string]any) { delete(m, "nonce") } },
		"no subject":           func(_, _, _ *string) { p.Spoil = func(m map[string]any) { m["sub"] = "" } },
		"a token of elsewhere": func(_, _, _ *string) { p.Spoil = func(m map[string]any) { m["iss"] = "https://evil.example" } },
	} {
		p.Spoil = nil
		address, secret, err := c.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state, code := p.Visit(address)
		forge(&secret, &state, &code)
		if subject, err := c.Finish(t.Context(), secret, state, code); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %q, %v, want unauthorized", what, subject, err)
		}
	}
}

func TestStart_OutlivesAProviderThatWasAway(t *testing.T) {
	p := issuertest.Start(t)
	away := issuer.New(issuer.Options{Issuer: p.URL + "/nowhere", Rand: rand.Reader})
	if _, _, err := away.Start(t.Context()); !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v, want unreachable", err)
	}
	c := client(p)
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel() // of the first one; the keys are read after it
	address, secret, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, code := p.Visit(address)
	if _, err := c.Finish(t.Context(), secret, state, code); err != nil {
		t.Errorf("after the first request ended: %v", err)
	}
}
