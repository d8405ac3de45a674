package api

import (
	"net/http"

	"cartwheel.dev/geo-config/fault"
)

// base is the path of all routes but those about the process itself.
const base = "/api/v1"

// changePath is what a server beside the API, such as the console's gateway, asks
// before it changes something for a visitor. It passes the visitor's headers on,
// and they are checked like those of a change of the API.
const changePath = base + "/session/change"

// Role is what a caller may do. A higher role may do all that a lower one may.
type Role int

// The roles, the lowest first. Public routes need no account at all.
const (
	// denied is what a route without an entry in the table needs: no one has it.
	denied Role = iota
	// Public routes answer anybody.
	Public
	// Viewer reads.
	Viewer
	// Operator moves and drains.
	Operator
	// Administrator changes who may do what, and what the cluster consists of.
	Administrator
)

// String returns the role's name, as accounts and problems have it.
func (r Role) String() string {
	switch r {
	case Public:
		return "public"
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	case Administrator:
		return "administrator"
	}
	return "denied"
}

// Principal is the account that a request acts for.
type Principal struct {
	// Name is what the audit log calls the account.
	Name string
	Role Role
}

// Authenticator says who calls. It answers Unauthorized where the request shows no
// account, or one that is not valid any more. It is called from many goroutines
// at once, does not change the request, and returns within the request's context.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// roles says which role each route needs. It is the only place that does. A route
// that is not here is refused to everybody.
var roles = map[string]Role{
	"GET /healthz":                       Public,
	"GET /readyz":                        Public,
	"GET /api/v1/overview":               Viewer,
	"GET /api/v1/sites":                  Viewer,
	"GET /api/v1/sites/{name}":           Viewer,
	"GET /api/v1/nodes":                  Viewer,
	"GET /api/v1/nodes/{id}":             Viewer,
	"GET /api/v1/slices":                 Viewer,
	"GET /api/v1/slices/{id}":            Viewer,
	"GET /api/v1/network":                Viewer,
	"GET /api/v1/activity":               Viewer,
	"GET /api/v1/drills":                 Viewer,
	"GET /api/v1/snapshots":              Viewer,
	"GET /api/v1/schedules":              Viewer,
	"GET /api/v1/scrub":                  Viewer,
	"GET /api/v1/space":                  Viewer,
	"GET /api/v1/clients":                Viewer,
	"GET /api/v1/operations":             Viewer,
	"GET /api/v1/users":                  Viewer,
	"GET /api/v1/tokens":                 Administrator,
	"GET /api/v1/database":               Viewer,
	"GET /api/v1/settings":               Viewer,
	"POST /api/v1/sites":                 Administrator,
	"PUT /api/v1/sites/{name}":           Administrator,
	"DELETE /api/v1/sites/{name}":        Administrator,
	"DELETE /api/v1/nodes/{id}":          Administrator,
	"POST /api/v1/nodes/{id}/drain":      Operator,
	"POST /api/v1/nodes/{id}/undrain":    Operator,
	"POST /api/v1/sites/{name}/drain":    Operator,
	"POST /api/v1/sites/{name}/undrain":  Operator,
	"PUT /api/v1/slices/{id}/policy":     Operator,
	"POST /api/v1/slices/{id}/hand-over": Operator,
	"POST /api/v1/snapshots":             Administrator,
	"DELETE /api/v1/snapshots/{name}":    Administrator,
	"POST /api/v1/schedules":             Administrator,
	"DELETE /api/v1/schedules/{name}":    Administrator,
	"POST /api/v1/nodes/{id}/scrub":      Administrator,
	"POST /api/v1/space":                 Operator,
	"POST /api/v1/users":                 Administrator,
	"PUT /api/v1/users/{name}/role":      Administrator,
	"DELETE /api/v1/users/{name}":        Administrator,
	"POST /api/v1/tokens":                Administrator,
	"DELETE /api/v1/tokens/{name}":       Administrator,
	"POST /api/v1/network/probe":         Operator,
	"POST /api/v1/what-if":               Viewer,
	"POST /api/v1/availability":          Viewer,
	"GET /api/v1/events":                 Viewer,
	"GET /api/v1/experiments":            Viewer,
	"GET /api/v1/experiments/{run}":      Viewer,

	"GET /api/v1/experiments/{run}/figures/{file}": Viewer,

	"GET /api/v1/session":                 Viewer,
	"GET /api/v1/session/change":          Operator,
	"POST /api/v1/session":                Public,
	"DELETE /api/v1/session":              Viewer,
	"PUT /api/v1/session/password":        Viewer,
	"GET /api/v1/session/ways":            Public,
	"GET /api/v1/session/oidc":            Public,
	"GET /api/v1/session/oidc/callback":   Public,
	"PUT /api/v1/accounts/{name}/subject": Administrator,
	"GET /api/v1/sessions":                Viewer,
	"DELETE /api/v1/sessions/{id}":        Viewer,
	"GET /api/v1/accounts":                Administrator,
	"POST /api/v1/accounts":               Administrator,
	"GET /api/v1/accounts/{name}":         Administrator,
	"PUT /api/v1/accounts/{name}":         Administrator,
	"DELETE /api/v1/accounts/{name}":      Administrator,
	"POST /api/v1/accounts/{name}/link":   Administrator,
}

// permit answers nil where a caller may use a route that needs a role. A nil
// Authenticator knows no one.
func permit(auth Authenticator, r *http.Request, needs Role) (Principal, error) {
	const op fault.Op = "api.permit"
	switch {
	case needs == Public:
		return Principal{}, nil
	case needs == denied:
		return Principal{}, fault.E(fault.Permission, op, r.URL.Path, "no role may use this route")
	case auth == nil:
		return Principal{}, fault.E(fault.Unauthorized, op, "", "this node knows no accounts: ask another node")
	}
	p, err := auth.Authenticate(r)
	if err != nil {
		return Principal{}, err
	}
	if p.Role < needs {
		return Principal{}, fault.Errorf(fault.Permission, op, p.Name, "needs the role %s and has the role %s", needs, p.Role)
	}
	return p, nil
}
