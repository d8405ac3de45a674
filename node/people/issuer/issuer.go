// Package issuer lets people sign in by a provider of OpenID Connect: it sends a
// browser there, and checks what comes back (authorization code with PKCE, state
// and nonce). It knows no accounts; package people says whose a subject is. A
// Client is safe for concurrent use; it starts no goroutine of its own.
package issuer

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"cartwheel.dev/geo-config/fault"
)

// Options of a Client. All but HTTP and Wall are needed.
type Options struct {
	// Issuer is the provider's URL, as its tokens name it.
	Issuer string
	// ID and Secret are those under which the provider knows the console.
	ID, Secret string
	// Redirect is the address to which the provider sends browsers back.
	Redirect string
	// Rand gives the bits of states, nonces and verifiers.
	Rand io.Reader
	// HTTP asks the provider; default: a client with a limit of 10 seconds.
	HTTP *http.Client
	// Wall tells the time of day; default: the system's.
	Wall func() time.Time
}

func (o Options) withDefaults() Options {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: askLimit}
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return o
}

// askLimit bounds one question to the provider.
const askLimit = 10 * time.Second

// Client is the console, as the provider knows it.
type Client struct {
	o Options

	mu       sync.Mutex // guards provider
	provider *oidc.Provider
}

// New returns a client. It asks the provider when somebody first signs in, so a
// provider that is away keeps no node from starting.
func New(o Options) *Client { return &Client{o: o.withDefaults()} }

// discover asks the provider for its addresses and keys, until it has answered
// once.
func (c *Client) discover(ctx context.Context) (*oidc.Provider, error) {
	c.mu.Lock()
	p := c.provider
	c.mu.Unlock()
	if p != nil {
		return p, nil
	}
	// The provider keeps this context for its keys, so no request may end it; the
	// client's own limit ends each question.
	p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), c.o.HTTP), c.o.Issuer)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unreachable, Op: "issuer.discover", Subject: c.o.Issuer, Public: "the provider does not answer as one of OpenID Connect: sign in by a password or a link", Cause: err}
	}
	c.mu.Lock()
	c.provider = p
	c.mu.Unlock()
	return p, nil
}

func (c *Client) config(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: c.o.ID, ClientSecret: c.o.Secret, Endpoint: p.Endpoint(), RedirectURL: c.o.Redirect, Scopes: []string{oidc.ScopeOpenID}}
}

// Start returns the address to which a browser goes, and the secret that it shows
// to Finish: keep it in a cookie that scripts cannot read.
func (c *Client) Start(ctx context.Context) (address, secret string, err error) {
	p, err := c.discover(ctx)
	if err != nil {
		return "", "", err
	}
	var parts [3]string
	for i := range parts {
		var b [32]byte
		if _, err := io.ReadFull(c.o.Rand, b[:]); err != nil {
			return "", "", fault.Wrap(fault.IO, "issuer.Start", "", err)
		}
		parts[i] = base64.RawURLEncoding.EncodeToString(b[:])
	}
	state, nonce, verifier := parts[0], parts[1], parts[2]
	return c.config(p).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), strings.Join(parts[:], "."), nil
}

// Finish returns the subject for whom the provider vouches. Errors: Unauthorized
// (the browser did not begin here, or the token is not good), Unreachable.
func (c *Client) Finish(ctx context.Context, secret, state, code string) (subject string, err error) {
	const op fault.Op = "issuer.Finish"
	bad := func(cause error) error {
		return &fault.Error{Kind: fault.Unauthorized, Op: op, Subject: c.o.Issuer, Public: "the provider did not sign you in, or you began in another window: begin again", Cause: cause}
	}
	parts := strings.Split(secret, ".")
	if len(parts) != 3 || parts[0] == "" || subtle.ConstantTimeCompare([]byte(parts[0]), []byte(state)) != 1 || code == "" {
		return "", bad(nil)
	}
	p, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	ctx = oidc.ClientContext(ctx, c.o.HTTP)
	token, err := c.config(p).Exchange(ctx, code, oauth2.VerifierOption(parts[2]))
	if err != nil {
		return "", bad(err)
	}
	raw, _ := token.Extra("id_token").(string)
	checked, err := p.VerifierContext(ctx, &oidc.Config{ClientID: c.o.ID, Now: c.o.Wall}).Verify(ctx, raw)
	if err != nil {
		return "", bad(err)
	}
	if parts[1] == "" || subtle.ConstantTimeCompare([]byte(parts[1]), []byte(checked.Nonce)) != 1 || checked.Subject == "" {
		return "", bad(nil)
	}
	return checked.Subject, nil
}

// Name is the provider's URL.
func (c *Client) Name() string { return c.o.Issuer }
