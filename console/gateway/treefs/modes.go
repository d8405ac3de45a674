package treefs

import (
	"encoding/json"
	"io"
	"net/http"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/problem"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// ModeDirective is the Caddyfile's word for ModeHandler.
	ModeDirective = "cartwheel_mode"
	// maxChange bounds the body of a change, in bytes.
	maxChange = 4 << 10
)

var (
	_ caddy.Provisioner           = (*ModeHandler)(nil)
	_ caddyfile.Unmarshaler       = (*ModeHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*ModeHandler)(nil)
)

// ModeHandler gives the file or folder at the path of a PATCH the mode of its JSON
// body, {"mode": "0640"}, as module http.handlers.cartwheel_mode. Failures are
// problems (RFC 9457). It checks no session: the Caddyfile puts that before it.
type ModeHandler struct {
	// FileSystem names an FS of the global options.
	FileSystem string `json:"file_system"`

	systems caddy.FileSystems
}

// CaddyModule implements caddy.Module.
func (*ModeHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + ModeDirective, New: func() caddy.Module { return new(ModeHandler) }}
}

// ParseMode reads `cartwheel_mode FILESYSTEM`.
func ParseMode(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m := new(ModeHandler)
	return m, m.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler.
func (m *ModeHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive
	if !d.AllArgs(&m.FileSystem) {
		return d.ArgErr()
	}
	return nil
}

// Provision implements caddy.Provisioner.
func (m *ModeHandler) Provision(ctx caddy.Context) error {
	m.systems = ctx.FileSystems()
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (m *ModeHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodPatch {
		return next.ServeHTTP(w, r)
	}
	if err := m.change(r); err != nil {
		p := problem.Of(err, "")
		if fault.Is(err, fault.Permission) {
			p.Remedy = "" // the problem's own speaks of roles
		}
		p.Write(w)
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (m *ModeHandler) change(r *http.Request) error {
	const op fault.Op = "treefs.change"
	var asked struct {
		Mode string `json:"mode"`
	}
	body := json.NewDecoder(io.LimitReader(r.Body, maxChange))
	body.DisallowUnknownFields()
	if err := body.Decode(&asked); err != nil {
		return fault.E(fault.Invalid, op, "body", `has to be JSON like {"mode": "0640"}`)
	}
	mode, err := parseMode(asked.Mode)
	if err != nil {
		return err
	}
	system, ok := m.systems.Get(m.FileSystem)
	if !ok {
		return fault.E(fault.Invalid, op, m.FileSystem, "is no file system of the Caddyfile")
	}
	root, err := system.Open(".")
	if err != nil {
		return untranslated(op, "/", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	f, ok := root.(*file)
	if !ok {
		return fault.E(fault.Invalid, op, m.FileSystem, "is no file system of Cartwheel's")
	}
	return f.fs.setMode(r.Context(), r.URL.Path, mode)
}
