// Package people knows who may use the console: accounts with their roles and
// passwords, one-time links that sign somebody in, and sessions. All of it is
// kept as records of geo-config, so every node knows the same people. It speaks
// no HTTP and sets no cookies, and it has nothing to do with the keys of mounts.
// A Service is safe for concurrent use; it starts no goroutine.
//
// Secrets are never stored: of a password its argon2id hash, of the token of a
// session or link its SHA-256.
package people

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Witness signs as this node, and checks what other nodes signed. It is safe for
// concurrent use.
type Witness interface {
	// Self is this node.
	Self() ids.Node
	// Sign signs data as this node.
	Sign(data []byte) ([]byte, error)
	// Verify returns an error unless by is a node of the cluster, and signed data.
	Verify(by ids.Node, data, signature []byte) error
}

// Options of a Service.
type Options struct {
	// Store keeps the records. The Service does not close it.
	Store geoconfig.Store
	// Wall tells the time of day; default: the system's.
	Wall func() time.Time
	// Rand gives the bits of tokens and salts; default: crypto/rand.
	Rand io.Reader
	// Idle ends a session that was not used for so long; default 30 minutes.
	Idle time.Duration
	// Absolute ends a session so long after the sign-in; default 12 hours.
	Absolute time.Duration
	// Grace is for how long a session that was checked goes on, as a viewer's,
	// while the store cannot be reached; default 10 minutes.
	Grace time.Duration
	// Patience bounds how long a session that was checked waits for the store, which
	// itself may try for longer; default 2 seconds.
	Patience time.Duration
	// Witness signs vouchers, and checks those of other nodes; nil: there are none,
	// so that sessions go on without the store only where they were checked.
	Witness Witness
	// Cost of a password's hash.
	Cost Cost
	// Limits of guessing.
	Limits Limits
}

func (o Options) withDefaults() Options {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	o.Idle = orDefault(o.Idle, 30*time.Minute)
	o.Absolute = orDefault(o.Absolute, 12*time.Hour)
	o.Grace = orDefault(o.Grace, 10*time.Minute)
	o.Patience = orDefault(o.Patience, 2*time.Second)
	o.Cost = o.Cost.withDefaults()
	o.Limits = o.Limits.withDefaults()
	return o
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// Service signs people in and changes their accounts.
type Service struct {
	o        Options
	hasher   *hasher
	accounts *throttle // failures by the name that was tried
	origins  *throttle // failures by the address that tried

	mu      sync.Mutex // guards the rest
	checked map[string]checkedSession
	// silent is until when sessions that were checked do not ask the store, because
	// it did not answer.
	silent time.Time
}

// New returns a Service over a store.
func New(o Options) *Service {
	o = o.withDefaults()
	return &Service{
		o: o, hasher: newHasher(o.Cost, o.Rand),
		accounts: newThrottle(o.Limits.Account, o.Limits.Entries), origins: newThrottle(o.Limits.Origin, o.Limits.Entries),
		checked: make(map[string]checkedSession),
	}
}

// The kinds of records, and the version of their bodies.
const (
	accountKind = "account"
	subjectKind = "oidc-subject"
	sessionKind = "session"
	linkKind    = "sign-in-link"
	form        = 1
)

// Origin says where a request came from, for the audit log and the list of
// sessions.
type Origin struct {
	// Address is the IP address of the other end, as the proxy tells it.
	Address string
	// Agent is what the browser calls itself. Only its first 200 bytes are kept.
	Agent string
}

// encode makes the record of a body.
func encode(kind, name string, body any, expires time.Time, rev ids.Revision) (geoconfig.Record, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return geoconfig.Record{}, fault.Wrap(fault.Invalid, "people.encode", name, err)
	}
	r := geoconfig.Record{Kind: kind, Name: name, Form: form, Body: text, Revision: rev}
	if !expires.IsZero() {
		r.ExpiresNS = expires.UnixNano()
	}
	return r, nil
}

// decode reads a record's body.
func decode(r geoconfig.Record, into any) error {
	if r.Form > form {
		return fault.Errorf(fault.NewerVersion, "people.decode", r.Key().String(), "is of form %d, and this program knows %d: install the newer program", r.Form, form)
	}
	return fault.Wrap(fault.Corrupt, "people.decode", r.Key().String(), json.Unmarshal(r.Body, into))
}

// find reads records by their keys, in any order; those that are not there are
// left out.
func (s *Service) find(ctx context.Context, keys ...geoconfig.RecordKey) (map[geoconfig.RecordKey]geoconfig.Record, error) {
	rows, err := s.o.Store.Read(ctx, geoconfig.Query{RecordKeys: keys})
	if err != nil {
		return nil, err
	}
	out := make(map[geoconfig.RecordKey]geoconfig.Record, len(rows.Records))
	for _, r := range rows.Records {
		out[geoconfig.RecordKey{Kind: r.Kind, Name: r.Name}] = r
	}
	return out, nil
}

// each calls fn with every record of a kind. A store holds
// geoconfig.MaxRecords of them at most.
func (s *Service) each(ctx context.Context, kind string, fn func(geoconfig.Record) error) error {
	q := geoconfig.Query{Records: geoconfig.MaxRecordPage, RecordKind: kind}
	for {
		rows, err := s.o.Store.Read(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range rows.Records {
			if err := fn(r); err != nil {
				return err
			}
			q.RecordsAfter = r.Name
		}
		if !rows.MoreRecords {
			return nil
		}
	}
}

// apply runs a batch with a record of it in the audit log. An outcome that is
// not known is found out by one repetition.
func (s *Service) apply(ctx context.Context, b geoconfig.Batch, acts ...geoconfig.AuditRecord) (ids.Revision, error) {
	var key [16]byte
	if _, err := io.ReadFull(s.o.Rand, key[:]); err != nil {
		return 0, fault.Wrap(fault.IO, "people.apply", "", err)
	}
	b.Key = "people-" + hex.EncodeToString(key[:])
	for _, a := range acts {
		a.AtNS = s.o.Wall().UnixNano()
		b.Audit = append(b.Audit, a)
	}
	rev, err := s.o.Store.Apply(ctx, b)
	if fault.Is(err, fault.Unreachable) || fault.Is(err, fault.TimedOut) {
		rev, err = s.o.Store.Apply(ctx, b)
	}
	return rev, err
}

// isExpired reports whether a record counts no more.
func isExpired(r geoconfig.Record, now time.Time) bool {
	return r.ExpiresNS != 0 && now.UnixNano() >= r.ExpiresNS
}

func removal(r geoconfig.Record) geoconfig.Removal {
	return geoconfig.Removal{Key: r.Key(), Revision: r.Revision}
}

// sweepLimit is how many expired records one batch removes.
const sweepLimit = 500

// Sweep removes sessions and links that have expired, and says how many. Run it
// now and then; nothing that has expired counts before it is removed either.
func (s *Service) Sweep(ctx context.Context) (int, error) {
	var b geoconfig.Batch
	now := s.o.Wall()
	for _, kind := range []string{sessionKind, linkKind} {
		err := s.each(ctx, kind, func(r geoconfig.Record) error {
			if isExpired(r, now) && len(b.Remove) < sweepLimit {
				b.Remove = append(b.Remove, removal(r))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if len(b.Remove) == 0 {
		return 0, nil
	}
	if _, err := s.apply(ctx, b); err != nil {
		return 0, err
	}
	return len(b.Remove), nil
}
