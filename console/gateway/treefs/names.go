package treefs

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// namesDirective is the Caddyfile's word for NamesHandler.
	namesDirective = "cartwheel_names"
	// methodMkcol and methodMove are WebDAV's (RFC 4918, 9.3 and 9.9).
	methodMkcol, methodMove = "MKCOL", "MOVE"
	// newFolderMode is what a folder may be at most that the gateway makes; the default
	// ACL of the one around it and newUmask take from it.
	newFolderMode = 0o777
)

// NamesHandler changes the names of the tree, as module
// http.handlers.cartwheel_names. MKCOL makes a folder, MOVE gives a file or folder the
// path in the header Destination, and DELETE removes a file or an empty folder.
// Other than in WebDAV, a MOVE replaces a file only if it says `Overwrite: T`.
type NamesHandler struct{ handler }

// CaddyModule implements caddy.Module.
func (*NamesHandler) CaddyModule() caddy.ModuleInfo {
	return module(namesDirective, func() caddy.Module { return new(NamesHandler) })
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (n *NamesHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch r.Method {
	case methodMkcol:
		n.change(w, http.StatusCreated, func(f *FS) error { return f.makeFolder(r.Context(), r.URL.Path) })
	case methodMove:
		n.change(w, http.StatusCreated, func(f *FS) error {
			to, err := destination(r)
			if err != nil {
				return err
			}
			overwrite, err := overwrites(r)
			if err != nil {
				return err
			}
			return f.move(r.Context(), r.URL.Path, to, overwrite)
		})
	case http.MethodDelete:
		n.change(w, http.StatusNoContent, func(f *FS) error { return f.remove(r.Context(), r.URL.Path) })
	default:
		return next.ServeHTTP(w, r)
	}
	return nil
}

// destination is the path below Root where a MOVE leads. Its header has it as an
// address of this server, with what the Caddyfile has cut off the request's path.
func destination(r *http.Request) (string, error) {
	const op fault.Op = "treefs.destination"
	asked := r.Header.Get("Destination")
	to, err := url.Parse(asked)
	if err != nil || !strings.HasPrefix(to.Path, "/") || to.RawQuery != "" || to.Fragment != "" {
		return "", fault.E(fault.Invalid, op, "Destination", "has to be the new path, encoded like an address: /files/new%20name")
	}
	if to.Host != "" && to.Host != r.Host {
		return "", fault.E(fault.Invalid, op, "Destination", "names another server: a move stays in the tree of this one")
	}
	given, _ := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	prefix := ""
	if given.URL != nil {
		prefix = strings.TrimSuffix(path.Clean(given.URL.Path), path.Clean(r.URL.Path))
	}
	inside, ok := strings.CutPrefix(to.Path, prefix)
	if !ok || !strings.HasPrefix(inside, "/") {
		return "", fault.Errorf(fault.Invalid, op, "Destination", "has to begin with %s/, as the path of the request does", prefix)
	}
	return inside, nil
}

// overwrites reports whether a MOVE may replace a file.
func overwrites(r *http.Request) (bool, error) {
	const op fault.Op = "treefs.overwrites"
	switch r.Header.Get("Overwrite") {
	case "T":
		return true, nil
	case "F", "":
		return false, nil
	}
	return false, fault.E(fault.Invalid, op, "Overwrite", "has to be T, which replaces a file that is there, or F")
}

// changeable is the path below Root of a name that is to be changed. Reading takes a
// path as it comes; a change refuses what may mean something else than its author
// thinks.
func changeable(name string) (string, error) {
	const op fault.Op = "treefs.changeable"
	for part := range strings.SplitSeq(name, "/") {
		_, isCue, err := cue.Parse(part)
		switch {
		case part == "..":
			return "", fault.E(fault.Invalid, op, name, "has a part that is \"..\": write the path without it")
		case isCue || err != nil:
			return "", fault.E(fault.Invalid, op, part, "is a cue, and the gateway takes none: choose another name, or use a mount")
		case strings.ContainsRune(part, 0):
			return "", fault.E(fault.Invalid, op, "name", "has a NUL byte, which no name may have: choose another one")
		case len(part) > mount.NameMax:
			return "", fault.Errorf(fault.NameTooLong, op, "name", "has %d bytes, and may have %d: choose a shorter one", len(part), mount.NameMax)
		}
	}
	whole := path.Clean("/" + name)
	if whole == "/" {
		return "", fault.E(fault.Invalid, op, whole, "is the folder that the gateway shows: name something in it")
	}
	return whole, nil
}

// spot is a name that may be there or not, in a folder whose names the user may
// change.
type spot struct {
	path, name string // the path is below Root
	dir        mount.Inode
}

// spot finds the folder of a path. The caller forgets its node.
func (f *FS) spot(ctx context.Context, name string) (spot, error) {
	const op fault.Op = "treefs.spot"
	whole, err := changeable(name)
	if err != nil {
		return spot{}, err
	}
	folder, last := path.Split(whole)
	e, err := f.walk(folder)
	if err != nil {
		return spot{}, untranslated(op, folder, err)
	}
	if e.Attr.Mode&mount.TypeMask != mount.TypeDir {
		err = fault.E(fault.NotDirectory, op, folder, "is no folder")
	} else if err = f.client.Access(ctx, f.who, e.Node, mount.AccessWrite|mount.AccessExecute); err != nil {
		err = fault.Errorf(fault.KindOf(err), op, folder, "uid %d, as whom the gateway acts, may not add or remove names here: give it the right by mode, group or ACL", f.who.UID)
	}
	if err != nil {
		f.client.Forget(e.Node, 1)
		return spot{}, err
	}
	return spot{path: whole, name: last, dir: e.Node}, nil
}

// isFolder reports whether a folder has a spot's name, and fails where nothing has it
// that the gateway shows.
func (f *FS) isFolder(at spot) (bool, error) {
	const op fault.Op = "treefs.isFolder"
	e, err := f.walk(at.path)
	if err != nil {
		return false, untranslated(op, at.path, err)
	}
	f.client.Forget(e.Node, 1)
	return e.Attr.Mode&mount.TypeMask == mount.TypeDir, nil
}

// makeFolder makes an empty folder.
func (f *FS) makeFolder(ctx context.Context, name string) error {
	const op fault.Op = "treefs.makeFolder"
	at, err := f.spot(ctx, name)
	if err != nil {
		return err
	}
	defer f.client.Forget(at.dir, 1)
	who := f.who
	who.Umask = newUmask
	made, err := f.client.Mkdir(ctx, who, at.dir, at.name, newFolderMode)
	if err != nil {
		return explained(op, at.path, err)
	}
	f.client.Forget(made.Node, 1)
	return nil
}

// remove removes a file or an empty folder.
func (f *FS) remove(ctx context.Context, name string) error {
	const op fault.Op = "treefs.remove"
	at, err := f.spot(ctx, name)
	if err != nil {
		return err
	}
	defer f.client.Forget(at.dir, 1)
	isFolder, err := f.isFolder(at)
	if err != nil {
		return err
	}
	if isFolder {
		return explained(op, at.path, f.client.Rmdir(ctx, f.who, at.dir, at.name))
	}
	return explained(op, at.path, f.client.Unlink(ctx, f.who, at.dir, at.name))
}

// move gives a file or folder another path. Only a file replaces something, and only
// a file.
func (f *FS) move(ctx context.Context, name, to string, overwrite bool) error {
	const op fault.Op = "treefs.move"
	source, err := f.spot(ctx, name)
	if err != nil {
		return err
	}
	defer f.client.Forget(source.dir, 1)
	isFolder, err := f.isFolder(source)
	if err != nil {
		return err
	}
	switch cleaned := path.Clean(to); {
	case cleaned == source.path:
		return fault.E(fault.Invalid, op, cleaned, "is the path that it has: choose another one")
	case strings.HasPrefix(cleaned, source.path+"/"):
		return fault.E(fault.Invalid, op, cleaned, "is inside of what is moved: choose another folder")
	}
	target, err := f.spot(ctx, to)
	if err != nil {
		return err
	}
	defer f.client.Forget(target.dir, 1)
	remedy, flags := "choose another name, or send Overwrite: T to replace it", mount.RenameNoReplace
	if isFolder {
		remedy, overwrite = "choose another name: a folder replaces nothing", false
	}
	if overwrite {
		flags = 0
	}
	if err := f.mayTake(ctx, target.dir, target.name, overwrite, remedy); err != nil {
		return err
	}
	return explained(op, target.path, f.client.Rename(ctx, f.who, source.dir, source.name, target.dir, target.name, flags))
}

// explained says what to do about a change of names that the cluster refused.
func explained(op fault.Op, whole string, err error) error {
	switch kind := fault.KindOf(err); kind {
	case fault.Exists:
		return fault.E(kind, op, whole, "is there already: choose another name")
	case fault.NotEmpty:
		return fault.E(kind, op, whole, "has something in it: delete what is in it, or use a mount")
	case fault.NotOwner, fault.Permission:
		return fault.E(kind, op, whole, "is another's, and the folder has the sticky bit, or it is a folder that the gateway's user may not write: use a mount as its owner")
	}
	return fault.Wrap(fault.Other, op, whole, err)
}
