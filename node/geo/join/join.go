package join

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/wire"
)

// MaxLife is the longest that a token may be good for.
const MaxLife = 30 * 24 * time.Hour

// Make writes a token's row, with a row of its site where there is none yet, and
// returns the token. The store's caller must be an administrator, who names
// itself for the audit log; geoConfig says where that store is. Errors: Invalid,
// and the store's.
func Make(ctx context.Context, store geoconfig.Store, o changes.Order, geoConfig []string, site ids.Site, life time.Duration) (Token, error) {
	const op fault.Op = "join.Make"
	if life <= 0 || life > MaxLife {
		return Token{}, fault.Errorf(fault.Invalid, op, "life", "is %v; above 0 and at most %v", life, MaxLife)
	}
	rows, err := store.Read(ctx, geoconfig.Query{Sites: true})
	if err != nil {
		return Token{}, err
	}
	if rows.Cluster == nil {
		return Token{}, fault.E(fault.NotFound, op, "cluster", "the configuration has no cluster yet: found it with `cartwheel cluster init`")
	}
	key, err := wire.NewKey(rand.Reader)
	if err != nil {
		return Token{}, fault.Wrap(fault.Other, op, "", err)
	}
	secret, err := key.Marshal()
	if err != nil {
		return Token{}, fault.Wrap(fault.Other, op, "", err)
	}
	t := Token{GeoConfig: geoConfig, Cluster: rows.Cluster.ID, Site: site, Name: ids.User("join." + random()), ExpiresNS: o.At.Add(life).UnixNano(), Secret: secret}
	row := geoconfig.User{Name: t.Name, Key: key.KeyID(), Join: &geoconfig.Join{Site: site, ExpiresNS: t.ExpiresNS}}
	b := geoconfig.Batch{Users: []geoconfig.User{row}}
	known := false
	for _, s := range rows.Sites {
		known = known || s.Name == site
	}
	if !known {
		b.Sites = []geoconfig.Site{{Name: site}}
	}
	if t.Revision, err = o.Apply(ctx, store, b, "token.create", row.RowKey(), fmt.Sprintf("for a node at %s, for %v", site, life)); err != nil {
		return Token{}, err
	}
	if o.Key == "" {
		return t, nil
	}
	return t, made(ctx, store, row)
}

// made fails where a token's row is not in the store, because its batch is one that
// was applied before, with another secret.
func made(ctx context.Context, store geoconfig.Store, row geoconfig.User) error {
	rows, err := store.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(rows.Users, func(u geoconfig.User) bool { return u.Name == row.Name }) {
		return fault.E(fault.Exists, "join.made", "token", "was made by this request already, and its secret is not kept: revoke it if nobody has it, and make another one")
	}
	return nil
}

// patience is how long a token is tried. A new one may reach geo-config's roster
// a moment after its row was written.
const patience = 4 * time.Second

// Redeem adds a node's row with a token, and uses the token up. The row's site
// must be the token's. Errors: Unauthorized where the token was used or revoked,
// Expired, Unreachable where geo-config does not answer, and the store's.
func Redeem(ctx context.Context, t Token, node geoconfig.Node, now time.Time) error {
	const op fault.Op = "join.Redeem"
	if node.Site != t.Site {
		return fault.Errorf(fault.Invalid, op, string(node.Site), "is not the token's site, %s", t.Site)
	}
	if t.Expired(now) {
		return fault.E(fault.Expired, op, string(t.Name), "the token has expired: have another one made with `cartwheel cluster token`")
	}
	key, err := wire.ParseKey(t.Secret)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, string(t.Name), err)
	}
	host, err := wire.New(wire.Options{Key: key})
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	defer func() { _ = host.Close() }() // everything was answered
	store, err := dial(host, t.GeoConfig, remote.Options{Patience: patience})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // likewise
	user := geoconfig.RowKey{Table: geoconfig.UsersTable, Name: string(t.Name)}
	_, err = store.Apply(ctx, geoconfig.Batch{Key: string(t.Name) + "-" + string(node.ID), Nodes: []geoconfig.Node{node},
		Remove: []geoconfig.Removal{{Key: user, Revision: t.Revision}},
		Audit: []geoconfig.AuditRecord{{AtNS: now.UnixNano(), Who: string(node.ID), Action: "node.join", Subject: node.Key().String(),
			Detail: fmt.Sprintf("at %s, with the token %s", t.Site, t.Name)}}})
	if wire.Refused(err) || fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.Conflict) && fault.SubjectOf(err) == user.String() {
		return &fault.Error{Kind: fault.Unauthorized, Op: op, Subject: string(t.Name), Cause: err,
			Public: "geo-config refuses the token: it was used or revoked, or has expired; have another one made with `cartwheel cluster token`"}
	}
	return fault.Wrap(fault.Unreachable, op, string(t.Name), err)
}

// Dial reaches the geo-config server at the addresses given, which all name one
// peer. The host stays the caller's, and so does the store.
func Dial(h *wire.Host, addresses []string) (*remote.Store, error) {
	return dial(h, addresses, remote.Options{})
}

func dial(h *wire.Host, addresses []string, o remote.Options) (*remote.Store, error) {
	const op fault.Op = "join.dial"
	peer := ""
	var plain []string
	for _, a := range addresses {
		at, id, ok := strings.Cut(a, "/p2p/")
		if !ok || peer != "" && id != peer {
			return nil, fault.E(fault.Invalid, op, a, "the geo-config addresses must name one server: end each with the same /p2p/ID")
		}
		peer, plain = id, append(plain, at)
	}
	if err := h.AddPeer(peer, plain); err != nil {
		return nil, err
	}
	o.Peer = peer
	return remote.Open(h, o), nil
}

// random names a row or a batch.
func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
