package treefs

import (
	"net/http"
	"path"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/problem"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Handler is an HTTP handler of this package. It checks no session: the Caddyfile
// puts that before it. Its failures are problems (RFC 9457).
type Handler interface {
	caddy.Module
	caddy.Provisioner
	caddyfile.Unmarshaler
	caddyhttp.MiddlewareHandler
}

// Directive is a Caddyfile's word for a Handler: `NAME FILESYSTEM`.
type Directive struct {
	Name string
	New  func() Handler
}

// Directives are those of all handlers.
func Directives() []Directive {
	return []Directive{
		{propertiesDirective, func() Handler { return new(PropertiesHandler) }},
		{uploadDirective, func() Handler { return new(UploadHandler) }},
		{modeDirective, func() Handler { return new(ModeHandler) }},
		{namesDirective, func() Handler { return new(NamesHandler) }},
	}
}

// Parse makes the handler that a directive of a Caddyfile asks for.
func (d Directive) Parse(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	made := d.New()
	return made, made.UnmarshalCaddyfile(h.Dispenser)
}

// module describes the handler of a directive to Caddy.
func module(directive string, create func() caddy.Module) caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: caddy.ModuleID("http.handlers." + directive), New: create}
}

// handler is what all handlers have: the file system that they serve.
type handler struct {
	// FileSystem names an FS of the global options.
	FileSystem string `json:"file_system"`

	systems caddy.FileSystems
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler.
func (h *handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive
	if !d.AllArgs(&h.FileSystem) {
		return d.ArgErr()
	}
	return nil
}

// Provision implements caddy.Provisioner.
func (h *handler) Provision(ctx caddy.Context) error {
	h.systems = ctx.FileSystems()
	return nil
}

// open opens a file or folder, as io/fs names it. The caller closes it.
func (h *handler) open(name string) (*file, error) {
	const op fault.Op = "treefs.open"
	system, ok := h.systems.Get(h.FileSystem)
	if !ok {
		return nil, fault.E(fault.Invalid, op, h.FileSystem, "is no file system of the Caddyfile")
	}
	opened, err := system.Open(name)
	if err != nil {
		return nil, untranslated(op, path.Join("/", name), err)
	}
	f, ok := opened.(*file)
	if !ok {
		_ = opened.Close() // nothing was written
		return nil, fault.E(fault.Invalid, op, h.FileSystem, "is no file system of Cartwheel's")
	}
	return f, nil
}

// change has do change the file system, and answers with a status, or with what
// failed.
func (h *handler) change(w http.ResponseWriter, status int, do func(*FS) error) {
	root, err := h.open(".")
	if err == nil {
		err = do(root.fs)
		_ = root.Close() // nothing was written
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(status)
}

// fail answers with the problem of an error.
func fail(w http.ResponseWriter, err error) {
	p := problem.Of(err, "")
	switch fault.KindOf(err) {
	case fault.Permission:
		p.Remedy = "" // the problem's own speaks of roles, and it is the cluster's user that lacks the right
	case fault.TimedOut:
		p.Remedy = "Load the folder again to see whether it was done."
	}
	p.Write(w)
}
