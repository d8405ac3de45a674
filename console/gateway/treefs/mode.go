package treefs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// modeDirective is the Caddyfile's word for ModeHandler.
	modeDirective = "cartwheel_mode"
	// maxChange bounds the body of a change, in bytes.
	maxChange = 4 << 10
	// permissions are the bits that the gateway changes; it keeps the others.
	permissions = 0o777
	// special are the set-id and sticky bits.
	special = 0o7000
)

// ModeHandler gives the file or folder at the path of a PATCH the mode of its JSON
// body, {"mode": "0640"}, as module http.handlers.cartwheel_mode.
type ModeHandler struct{ handler }

// CaddyModule implements caddy.Module.
func (*ModeHandler) CaddyModule() caddy.ModuleInfo {
	return module(modeDirective, func() caddy.Module { return new(ModeHandler) })
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (m *ModeHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodPatch {
		return next.ServeHTTP(w, r)
	}
	mode, err := askedMode(r.Body)
	if err != nil {
		fail(w, err)
		return nil
	}
	m.change(w, http.StatusNoContent, func(f *FS) error { return f.setMode(r.Context(), r.URL.Path, mode) })
	return nil
}

// askedMode reads the mode that a body asks for.
func askedMode(from io.Reader) (uint32, error) {
	const op fault.Op = "treefs.askedMode"
	var asked struct {
		Mode string `json:"mode"`
	}
	body := json.NewDecoder(io.LimitReader(from, maxChange))
	body.DisallowUnknownFields()
	if err := body.Decode(&asked); err != nil {
		return 0, fault.E(fault.Invalid, op, "body", `has to be JSON like {"mode": "0640"}`)
	}
	return parseMode(asked.Mode)
}

// parseMode reads an octal mode of one to four digits.
func parseMode(text string) (uint32, error) {
	const op fault.Op = "treefs.parseMode"
	mode, err := strconv.ParseUint(text, 8, 12)
	if err != nil || len(text) > 4 {
		return 0, fault.E(fault.Invalid, op, "mode", "has to be one to four octal digits, like 0640")
	}
	return uint32(mode), nil
}

// setMode gives the file or folder at a path below Root a mode, as its owner may.
// The set-id and sticky bits stay as they are: a mode that gives others than the
// object has is refused, and one that gives none keeps them.
func (f *FS) setMode(ctx context.Context, name string, mode uint32) error {
	const op fault.Op = "treefs.setMode"
	e, err := f.walk(name)
	if err != nil {
		return untranslated(op, name, err)
	}
	defer f.client.Forget(e.Node, 1)
	if f.who.UID != 0 && f.who.UID != e.Attr.UID {
		return fault.Errorf(fault.Permission, op, name, "belongs to uid %d, and the gateway acts as uid %d: only the owner may change the mode", e.Attr.UID, f.who.UID)
	}
	kept := e.Attr.Mode & special
	if given := mode & special; given != 0 && given != kept {
		return fault.E(fault.Invalid, op, "mode", fmt.Sprintf("may not change the set-id and sticky bits, which are %04o: change those at a mount", kept))
	}
	_, err = f.client.SetAttr(ctx, f.who, e.Node, mount.SetAttr{Valid: mount.SetMode, Mode: mode&permissions | kept})
	return fault.Wrap(fault.Other, op, name, err)
}
