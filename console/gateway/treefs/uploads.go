package treefs

import (
	"io"
	"net/http"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/problem"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// UploadDirective is the Caddyfile's word for UploadHandler.
	UploadDirective = "cartwheel_upload"
	// maxUploads bounds the uploads in flight. One more is told "overloaded".
	maxUploads = 16
	// silenceLimit is how long an upload may send nothing before it is cut off.
	silenceLimit = time.Minute
)

var (
	_ caddy.Provisioner           = (*UploadHandler)(nil)
	_ caddyfile.Unmarshaler       = (*UploadHandler)(nil)
	_ caddyhttp.MiddlewareHandler = (*UploadHandler)(nil)
)

// UploadHandler stores the body of a PUT as the file at its path, as module
// http.handlers.cartwheel_upload. A name that is taken is refused, unless the request
// says `If-Match: *`. Failures are problems (RFC 9457). It checks no session: the
// Caddyfile puts that before it.
type UploadHandler struct {
	// FileSystem names an FS of the global options.
	FileSystem string `json:"file_system"`

	systems caddy.FileSystems
	room    chan struct{}
}

// CaddyModule implements caddy.Module.
func (*UploadHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + UploadDirective, New: func() caddy.Module { return new(UploadHandler) }}
}

// ParseUpload reads `cartwheel_upload FILESYSTEM`.
func ParseUpload(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	u := new(UploadHandler)
	return u, u.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler.
func (u *UploadHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive
	if !d.AllArgs(&u.FileSystem) {
		return d.ArgErr()
	}
	return nil
}

// Provision implements caddy.Provisioner.
func (u *UploadHandler) Provision(ctx caddy.Context) error {
	u.systems, u.room = ctx.FileSystems(), make(chan struct{}, maxUploads)
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (u *UploadHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodPut {
		return next.ServeHTTP(w, r)
	}
	if err := u.take(w, r); err != nil {
		p := problem.Of(err, "")
		if fault.Is(err, fault.Permission) {
			p.Remedy = "" // the problem's own speaks of roles
		}
		p.Write(w)
		return nil
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (u *UploadHandler) take(w http.ResponseWriter, r *http.Request) error {
	const op fault.Op = "treefs.take"
	select {
	case u.room <- struct{}{}:
		defer func() { <-u.room }()
	default:
		return fault.Errorf(fault.Overloaded, op, r.URL.Path, "%d files are being uploaded already", maxUploads)
	}
	match := r.Header.Get("If-Match")
	if match != "" && match != "*" {
		return fault.E(fault.Invalid, op, "If-Match", "has to be *, which replaces a file that is there")
	}
	system, ok := u.systems.Get(u.FileSystem)
	if !ok {
		return fault.E(fault.Invalid, op, u.FileSystem, "is no file system of the Caddyfile")
	}
	root, err := system.Open(".")
	if err != nil {
		return untranslated(op, "/", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	f, ok := root.(*file)
	if !ok {
		return fault.E(fault.Invalid, op, u.FileSystem, "is no file system of Cartwheel's")
	}
	if err := f.fs.hasRoom(r.Context(), r.ContentLength); err != nil {
		return err
	}
	return f.fs.put(r.Context(), r.URL.Path, &patient{body: r.Body, connection: http.NewResponseController(w)}, match == "*")
}

// patient reads a body as long as something comes.
type patient struct {
	body       io.Reader
	connection *http.ResponseController
}

// Read implements io.Reader.
func (p *patient) Read(buf []byte) (int, error) {
	_ = p.connection.SetReadDeadline(time.Now().Add(silenceLimit)) // not every connection has one
	return p.body.Read(buf)
}
