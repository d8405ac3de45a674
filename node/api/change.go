package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/wire"
)

// ChangeHeaders are what each change may say about itself. huma reads them only where
// the type is exported.
type ChangeHeaders struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"64" doc:"Names the change: repeating it with the same key and the same words does nothing more."`
	IfMatch        string `header:"If-Match" maxLength:"32" doc:"The row's ETag: the change is refused with 412 where the row has another one by now."`

	from string // the caller's address
	what string // method and path
}

// Resolve implements huma.Resolver: it notes where the request comes from.
func (h *ChangeHeaders) Resolve(ctx huma.Context) []error {
	r, _ := humago.Unwrap(ctx)
	h.from, h.what = callerOf(r.Context()).origin.Address, r.Method+" "+r.URL.Path
	return nil
}

func (h *ChangeHeaders) isConditional() bool { return h.IfMatch != "" }

// order makes an order of the request. words are the request's body: one key with
// other words is another change.
func (h *ChangeHeaders) order(ctx context.Context, s *Server, words any) (changes.Order, error) {
	if s.o.Admin == nil {
		return changes.Order{}, fault.E(fault.NotSupported, "api.order", "nodes/"+string(s.o.Self), "this node may not change the configuration: set api_key to an administrator's key in its configuration, or ask another node")
	}
	return h.nodeOrder(ctx, s.o.Wall(), words)
}

// nodeOrder is order for what a node itself may change.
func (h *ChangeHeaders) nodeOrder(ctx context.Context, now time.Time, words any) (changes.Order, error) {
	const op fault.Op = "api.nodeOrder"
	o := changes.Order{Who: principal(ctx).Name, From: h.from, At: now}
	if h.IfMatch != "" {
		n, err := strconv.ParseUint(strings.Trim(h.IfMatch, `"`), 10, 64)
		if err != nil || n == 0 {
			return o, fault.E(fault.Invalid, op, "If-Match", "is not the ETag of a row")
		}
		o.Match = ids.Revision(n)
	}
	encoded, err := json.Marshal(words)
	if err != nil {
		return o, fault.Wrap(fault.Invalid, op, "body", err)
	}
	key := h.IdempotencyKey
	if key == "" {
		key = requestID(ctx)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s", o.Who, key, h.what, h.IfMatch, encoded))
	o.Key = "api-" + hex.EncodeToString(sum[:])
	return o, nil
}

type siteBody struct {
	Name     string `json:"name" minLength:"1" maxLength:"63" pattern:"^[A-Za-z0-9_-]+$"`
	Location string `json:"location,omitempty" maxLength:"200" doc:"Where it is, for people."`
}

// done answers a change: which revision the configuration has reached at least.
type done struct {
	Status int `json:"-"`
	Body   Changed
}

// Changed says that a change was made.
type Changed struct {
	Subject string `json:"subject" doc:"The row that was changed, as sites/oslo."`
}

func changed(key geoconfig.RowKey, err error) (*done, error) {
	if err != nil {
		return nil, err
	}
	return &done{http.StatusOK, Changed{key.String()}}, nil
}

func (s *Server) addSite(ctx context.Context, in *struct {
	ChangeHeaders
	Body siteBody
}) (*done, error) {
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	row := geoconfig.Site{Name: ids.Site(in.Body.Name), Location: in.Body.Location}
	return changed(row.Key(), changes.AddSite(ctx, s.o.Admin, o, row))
}

func (s *Server) setSite(ctx context.Context, in *struct {
	ChangeHeaders
	Name string `path:"name" maxLength:"63"`
	Body struct {
		Location string `json:"location" maxLength:"200"`
	}
}) (*done, error) {
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	row, err := changes.SetSite(ctx, s.o.Admin, o, ids.Site(in.Name), in.Body.Location)
	return changed(row.Key(), err)
}

func (s *Server) removeSite(ctx context.Context, in *struct {
	ChangeHeaders
	Name string `path:"name" maxLength:"63"`
}) (*done, error) {
	o, err := in.order(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	row, err := changes.RemoveSite(ctx, s.o.Admin, o, ids.Site(in.Name))
	return changed(row.Key(), err)
}

func (s *Server) removeNode(ctx context.Context, in *struct {
	ChangeHeaders
	ID string `path:"id" maxLength:"128"`
}) (*done, error) {
	o, err := in.order(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	row, ok := s.o.Directory.Node(ids.Node(in.ID))
	if !ok {
		row = geoconfig.Node{ID: ids.Node(in.ID)}
	}
	return changed(row.Key(), changes.RemoveNode(ctx, s.o.Admin, o, row))
}

func (s *Server) addUser(ctx context.Context, in *struct {
	ChangeHeaders
	Body struct {
		Name        string   `json:"name" minLength:"1" maxLength:"63" pattern:"^[A-Za-z0-9._-]+$"`
		Key         string   `json:"key" minLength:"1" maxLength:"1024" doc:"The identity of the user's key, as cartwheel key prints it, or the line of an ssh-ed25519 public key."`
		UID         uint32   `json:"uid,omitempty"`
		GIDs        []uint32 `json:"gids,omitempty" maxItems:"64"`
		TrustedHost bool     `json:"trusted_host,omitempty"`
		Role        string   `json:"role" enum:"user,administrator"`
	}
}) (*done, error) {
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	b := &in.Body
	key, err := wire.UserKeyID(b.Key)
	if err != nil {
		return nil, err
	}
	row := geoconfig.User{Name: ids.User(b.Name), Key: key, UID: b.UID, GIDs: b.GIDs, TrustedHost: b.TrustedHost, Admin: b.Role == "administrator"}
	return changed(row.RowKey(), changes.AddUser(ctx, s.o.Admin, o, row))
}

func (s *Server) setUserRole(ctx context.Context, in *struct {
	ChangeHeaders
	Name string `path:"name" maxLength:"63"`
	Body struct {
		Role string `json:"role" enum:"user,administrator"`
	}
}) (*done, error) {
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	row, err := changes.SetRole(ctx, s.o.Admin, o, ids.User(in.Name), in.Body.Role == "administrator")
	return changed(row.RowKey(), err)
}

// named is a change that needs no more than a name.
type named struct {
	ChangeHeaders
	Name string `path:"name" maxLength:"128"`
}

// revokeUser removes a user, or a token: both are rows of the users.
func (s *Server) revokeUser(ctx context.Context, in *named) (*done, error) {
	o, err := in.order(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	row, err := changes.Revoke(ctx, s.o.Admin, o, ids.User(in.Name))
	return changed(row.RowKey(), err)
}

// NewToken is a token with its secret, which is shown this once.
type NewToken struct {
	Token     string    `json:"token" doc:"Whoever has it may join. It is not kept."`
	Name      ids.User  `json:"name"`
	Site      ids.Site  `json:"site"`
	ExpiresAt time.Time `json:"expires_at"`
}

// addToken makes a token. Its secret is not kept, so a repeated request is refused
// where the first one made the token.
func (s *Server) addToken(ctx context.Context, in *struct {
	ChangeHeaders
	Body struct {
		Site      string `json:"site" minLength:"1" maxLength:"63" pattern:"^[A-Za-z0-9_-]+$"`
		ExpiresMS int64  `json:"expires_ms" minimum:"1000" maximum:"2592000000" doc:"For how long it is good."`
	}
}) (*view.Answer[NewToken], error) {
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	t, err := join.Make(ctx, s.o.Admin, o, s.o.GeoConfig, ids.Site(in.Body.Site), time.Duration(in.Body.ExpiresMS)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return &view.Answer[NewToken]{Body: NewToken{t.String(), t.Name, t.Site, time.Unix(0, t.ExpiresNS).UTC()}}, nil
}
