package treefs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/where"
	"cartwheel.dev/geo-config/fault"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// propertiesDirective is the Caddyfile's word for PropertiesHandler.
	propertiesDirective = "cartwheel_properties"
	// maxWhere bounds the answer about where an object is, in bytes.
	maxWhere = 256 << 10
)

// PropertiesHandler answers GET of a path with the JSON of Properties, as module
// http.handlers.cartwheel_properties.
type PropertiesHandler struct{ handler }

// CaddyModule implements caddy.Module.
func (*PropertiesHandler) CaddyModule() caddy.ModuleInfo {
	return module(propertiesDirective, func() caddy.Module { return new(PropertiesHandler) })
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
		fail(w, err)
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
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" {
		name = "."
	}
	f, err := p.open(name)
	if err != nil {
		return Properties{}, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return f.properties(r.Context())
}

// Properties is what the gateway knows of a file or folder. Times are UTC.
type Properties struct {
	Path       string    `json:"path"` // below the gateway's folder
	IsFolder   bool      `json:"is_folder"`
	Mode       string    `json:"mode"` // permission, set-id and sticky bits, octal
	UID        uint32    `json:"uid"`
	GID        uint32    `json:"gid"`
	SizeBytes  uint64    `json:"size_bytes"`
	Links      uint32    `json:"links"`
	ModifiedAt time.Time `json:"modified_at"`
	ChangedAt  time.Time `json:"changed_at"` // of the attributes
	MadeAt     time.Time `json:"made_at"`
	// Cues are those in force: the object's own, and those of the gateway's folder.
	Cues  string     `json:"cues"`
	Where where.View `json:"where"`
	// As is the user as whom the gateway acts, with what it may do here.
	As Rights `json:"as"`
}

// Rights is what one user may do with an object: Search is to go through a folder,
// or to run a file.
type Rights struct {
	UID    uint32 `json:"uid"`
	Read   bool   `json:"read"`
	Write  bool   `json:"write"`
	Search bool   `json:"search"`
}

// properties asks the cluster about an open file or folder. The user may read it:
// Open has checked that.
func (f *file) properties(ctx context.Context) (Properties, error) {
	const op fault.Op = "treefs.properties"
	a := f.info.attr
	whole := "/" + f.info.path
	if f.info.path == "." {
		whole = "/"
	}
	p := Properties{Path: whole, IsFolder: f.info.IsDir(), Mode: fmt.Sprintf("%04o", a.Mode&0o7777), UID: a.UID, GID: a.GID, SizeBytes: a.Size,
		Links: a.Nlink, ModifiedAt: timeOf(a.Mtime), ChangedAt: timeOf(a.Ctime), MadeAt: timeOf(a.Btime), As: Rights{UID: f.fs.who.UID}}
	buf := make([]byte, maxWhere)
	n, err := f.fs.client.GetXattr(ctx, f.fs.who, f.node, where.Attribute, buf)
	if err != nil {
		return Properties{}, fault.Wrap(fault.Unreachable, op, whole, err)
	}
	if p.Where, err = where.Parse(whole, buf[:n]); err != nil {
		return Properties{}, err
	}
	if n, err = f.fs.client.GetXattr(ctx, f.fs.who, f.node, where.Cues, buf); err != nil {
		return Properties{}, fault.Wrap(fault.Unreachable, op, whole, err)
	}
	p.Cues = string(buf[:n])
	for mask, may := range map[uint32]*bool{mount.AccessRead: &p.As.Read, mount.AccessWrite: &p.As.Write, mount.AccessExecute: &p.As.Search} {
		err := f.fs.client.Access(ctx, f.fs.who, f.node, mask)
		if err != nil && !fault.Is(err, fault.Permission) {
			return Properties{}, err
		}
		*may = err == nil
	}
	return p, nil
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// untranslated is an error of io/fs as a fault that says what to do.
func untranslated(op fault.Op, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.E(fault.NotFound, op, path, "is not there, or is neither a file nor a folder")
	case errors.Is(err, fs.ErrPermission):
		return fault.E(fault.Permission, op, path, "the gateway's user may not read this: give that user the right by mode, group or ACL")
	}
	return err
}
