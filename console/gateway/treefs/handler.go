package treefs

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/problem"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// PropertiesDirective is the Caddyfile's word for PropertiesHandler.
const PropertiesDirective = "cartwheel_properties"

var (
	_ caddy.Provisioner           = (*PropertiesHandler)(nil)
	_ caddyfile.Unmarshaler       = (*PropertiesHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*PropertiesHandler)(nil)
)

// PropertiesHandler answers GET of a path with the JSON of Properties, as module
// http.handlers.cartwheel_properties. Failures are problems (RFC 9457). It checks no
// session: the Caddyfile puts that before it.
type PropertiesHandler struct {
	// FileSystem names an FS of the global options.
	FileSystem string `json:"file_system"`

	systems caddy.FileSystems
}

// CaddyModule implements caddy.Module.
func (*PropertiesHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + PropertiesDirective, New: func() caddy.Module { return new(PropertiesHandler) }}
}

// ParseProperties reads `cartwheel_properties FILESYSTEM`.
func ParseProperties(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	p := new(PropertiesHandler)
	return p, p.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler.
func (p *PropertiesHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive
	if !d.AllArgs(&p.FileSystem) {
		return d.ArgErr()
	}
	return nil
}

// Provision implements caddy.Provisioner.
func (p *PropertiesHandler) Provision(ctx caddy.Context) error {
	p.systems = ctx.FileSystems()
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (p *PropertiesHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	const op fault.Op = "treefs.ServeHTTP"
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, nil)
	}
	props, err := p.find(r)
	if err != nil {
		failed := problem.Of(err, "")
		if fault.Is(err, fault.Permission) {
			failed.Remedy = "" // the problem's own speaks of roles, and it is the cluster's user that lacks the right
		}
		failed.Write(w)
		return nil
	}
	body, err := json.Marshal(props)
	if err != nil {
		return fault.Wrap(fault.Other, op, r.URL.Path, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the visitor has gone where it fails
	return nil
}

func (p *PropertiesHandler) find(r *http.Request) (Properties, error) {
	const op fault.Op = "treefs.find"
	system, ok := p.systems.Get(p.FileSystem)
	if !ok {
		return Properties{}, fault.E(fault.Invalid, op, p.FileSystem, "is no file system of the Caddyfile")
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" {
		name = "."
	}
	opened, err := system.Open(name)
	if err != nil {
		return Properties{}, untranslated(op, "/"+name, err)
	}
	defer func() { _ = opened.Close() }() // nothing was written
	f, ok := opened.(*file)
	if !ok {
		return Properties{}, fault.E(fault.Invalid, op, p.FileSystem, "is no file system of Cartwheel's")
	}
	return f.properties(r.Context())
}
