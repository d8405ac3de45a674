package treefs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// uploadDirective is the Caddyfile's word for UploadHandler.
	uploadDirective = "cartwheel_upload"
	// maxUploads bounds the uploads in flight. One more is told "overloaded".
	maxUploads = 16
	// silenceLimit is how long an upload may send nothing before it is cut off.
	silenceLimit = time.Minute
	// blockBytes is what an upload keeps in memory of its own.
	blockBytes = 1 << 20
	// newMode is what an uploaded file may be at most; the folder's default ACL and
	// newUmask take from it.
	newMode, newUmask = 0o666, 0o022
)

// UploadHandler stores the body of a PUT as the file at its path, as module
// http.handlers.cartwheel_upload. A name that is taken is refused, unless the request
// says `If-Match: *`.
type UploadHandler struct {
	handler

	room chan struct{}
}

// CaddyModule implements caddy.Module.
func (*UploadHandler) CaddyModule() caddy.ModuleInfo {
	return module(uploadDirective, func() caddy.Module { return new(UploadHandler) })
}

// Provision implements caddy.Provisioner.
func (u *UploadHandler) Provision(ctx caddy.Context) error {
	u.room = make(chan struct{}, maxUploads)
	return u.handler.Provision(ctx)
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (u *UploadHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	const op fault.Op = "treefs.ServeHTTP"
	if r.Method != http.MethodPut {
		return next.ServeHTTP(w, r)
	}
	select {
	case u.room <- struct{}{}:
		defer func() { <-u.room }()
	default:
		fail(w, fault.Errorf(fault.Overloaded, op, r.URL.Path, "%d files are being uploaded already", maxUploads))
		return nil
	}
	match := r.Header.Get("If-Match")
	if match != "" && match != "*" {
		fail(w, fault.E(fault.Invalid, op, "If-Match", "has to be *, which replaces a file that is there"))
		return nil
	}
	u.change(w, http.StatusCreated, func(f *FS) error {
		if err := f.hasRoom(r.Context(), r.ContentLength); err != nil {
			return err
		}
		return f.put(r.Context(), r.URL.Path, &patient{body: r.Body, connection: http.NewResponseController(w)}, match == "*")
	})
	return nil
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

// put stores what body has as a file at a path below Root. The file has no name
// before all of it is stored at the required members. Where the name is taken, put
// answers Exists, or with overwrite gives the name to the new file, which has the
// rights of a new one. A failure leaves nothing behind: the nodes sweep nameless
// files away.
func (f *FS) put(ctx context.Context, name string, body io.Reader, overwrite bool) error {
	const op fault.Op = "treefs.put"
	at, err := f.spot(ctx, name)
	if err != nil {
		return err
	}
	defer f.client.Forget(at.dir, 1)
	if err := f.mayTake(ctx, at.dir, at.name, overwrite, "choose another name, or send If-Match: * to replace it"); err != nil {
		return err
	}
	who := f.who
	who.Umask = newUmask
	made, opened, err := f.client.CreateNameless(ctx, who, at.dir, newMode, mount.OpenWrite)
	if err != nil {
		return fault.Wrap(fault.Other, op, at.path, err)
	}
	defer f.client.Forget(made.Node, 1)
	defer f.client.Release(made.Node, opened.Handle, 0, false)
	if err := f.fill(ctx, made.Node, opened.Handle, body); err != nil {
		return fault.Wrap(fault.Other, op, at.path, err)
	}
	return f.name(ctx, made.Node, at.dir, at.name, overwrite)
}

// hasRoom refuses what is known to be larger than the free space; size is in bytes,
// -1: unknown.
func (f *FS) hasRoom(ctx context.Context, size int64) error {
	const op fault.Op = "treefs.hasRoom"
	space, err := f.client.StatFS(ctx, f.who, mount.Root)
	if err != nil {
		return fault.Wrap(fault.Other, op, "", err)
	}
	if free := space.AvailBlocks * uint64(space.BlockSize); size > 0 && uint64(size) > free {
		return fault.Errorf(fault.NoSpace, op, "", "the cluster has %d bytes free and the file has %d: add a node or remove files", free, size)
	}
	return nil
}

// mayTake refuses a name that is taken, with a remedy. To overwrite is to take a
// file's name.
func (f *FS) mayTake(ctx context.Context, dir mount.Inode, name string, overwrite bool, remedy string) error {
	const op fault.Op = "treefs.mayTake"
	there, err := f.client.Lookup(ctx, f.who, dir, name)
	switch {
	case err != nil:
		return fault.Wrap(fault.Other, op, name, err)
	case there.Node == 0:
		return nil
	}
	f.client.Forget(there.Node, 1)
	switch {
	case there.Attr.Mode&mount.TypeMask != mount.TypeRegular:
		return fault.E(fault.Exists, op, name, "is there and is no file: choose another name")
	case !overwrite:
		return fault.E(fault.Exists, op, name, "is there already: "+remedy)
	}
	return nil
}

// fill writes a body to an open file and waits until its nodes have it. A body that
// breaks off is an error of its own, not an end.
func (f *FS) fill(ctx context.Context, node mount.Inode, handle mount.Handle, body io.Reader) error {
	buf := make([]byte, blockBytes)
	filled, at := 0, int64(0)
	for {
		n, end := body.Read(buf[filled:])
		filled += n
		if filled == len(buf) || end != nil && filled > 0 {
			if _, err := f.client.Write(ctx, f.who, node, handle, at, buf[:filled], 0); err != nil {
				return err
			}
			at, filled = at+int64(filled), 0
		}
		switch {
		case end == io.EOF:
			return f.client.Fsync(ctx, f.who, node, handle, false)
		case end != nil:
			return end
		}
	}
}

// name gives a stored file its name.
func (f *FS) name(ctx context.Context, node, dir mount.Inode, name string, overwrite bool) error {
	const op fault.Op = "treefs.name"
	e, err := f.client.Link(ctx, f.who, node, dir, name)
	if err == nil {
		f.client.Forget(e.Node, 1)
		return nil
	}
	if !overwrite || !fault.Is(err, fault.Exists) {
		return fault.Wrap(fault.Other, op, name, err)
	}
	aside := fmt.Sprintf(".upload-%s", rand.Text())
	if e, err = f.client.Link(ctx, f.who, node, dir, aside); err != nil {
		return fault.Wrap(fault.Other, op, name, err)
	}
	f.client.Forget(e.Node, 1)
	if err = f.client.Rename(ctx, f.who, dir, aside, dir, name, 0); err == nil {
		return nil
	}
	return errors.Join(fault.Wrap(fault.Other, op, name, err), f.client.Unlink(ctx, f.who, dir, aside))
}
