// Package treefs is the Caddy module that shows a part of Cartwheel's tree as a
// read-only file system, so that Caddy's file server makes a web site of it. It
// reads as the user of one key, follows no links, and takes no cues from visitors.
// An FS is safe for use by many goroutines; Cleanup joins all of its own.
package treefs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

const (
	// openLimit bounds the first connection to the cluster, opTimeout one
	// operation on the tree: then a visitor gets an error.
	openLimit = 10 * time.Second
	opTimeout = 15 * time.Second
	// memory is what the client of one FS aims to stay under, in bytes.
	memory = 128 << 20
	// maySearch and mayRead are bits of access(2).
	maySearch, mayRead = 1, 4
)

var (
	_ caddy.Provisioner     = (*FS)(nil)
	_ caddy.CleanerUpper    = (*FS)(nil)
	_ caddyfile.Unmarshaler = (*FS)(nil)
	_ fs.StatFS             = (*FS)(nil)
	_ fs.ReadDirFS          = (*FS)(nil)
)

// FS is a folder of the tree, as module caddy.fs.cartwheel.
type FS struct {
	// Contact is the contact file of the cluster, with the user's key.
	Contact string `json:"contact"`
	// Site is where this gateway stands; empty: unknown.
	Site string `json:"site,omitempty"`
	// Root is the folder of the tree that is shown; cues of the operator may be in
	// it. Empty: the whole tree.
	Root string `json:"root,omitempty"`

	client *cartwheel.Client
	who    mount.Caller    // the user of the key
	ctx    context.Context // of calls: fs.FS has none of its own
	end    context.CancelFunc
}

// CaddyModule implements caddy.Module.
func (*FS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.cartwheel", New: func() caddy.Module { return new(FS) }}
}

// UnmarshalCaddyfile reads the block of the global option `filesystem NAME cartwheel`:
//
//	contact FILE
//	site NAME
//	root FOLDER
func (f *FS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if d.NextArg() {
		return d.ArgErr()
	}
	into := map[string]*string{"contact": &f.Contact, "site": &f.Site, "root": &f.Root}
	for d.NextBlock(0) {
		key := d.Val()
		if into[key] == nil {
			return d.Errf("%q is no option of cartwheel: use contact, site or root", key)
		}
		if !d.AllArgs(into[key]) {
			return d.ArgErr()
		}
	}
	return nil
}

// Provision implements caddy.Provisioner: it connects to the cluster.
func (f *FS) Provision(ctx caddy.Context) error {
	const op fault.Op = "treefs.Provision"
	if f.Contact == "" {
		return fault.E(fault.Invalid, op, "contact", "is missing: name the contact file of the cluster")
	}
	file, err := contact.Load(f.Contact)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, f.Contact, err)
	}
	begin, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if f.who, err = userOf(begin, file); err != nil {
		return err
	}
	f.client, err = cartwheel.Open(begin, cartwheel.Options{Contact: file, Site: ids.Site(f.Site), Name: "gateway", OpTimeout: opTimeout,
		Memory: memory, Logger: ctx.Slogger()})
	if err != nil {
		return fault.Wrap(fault.Unreachable, op, f.Contact, err)
	}
	f.ctx, f.end = context.WithCancel(context.WithoutCancel(ctx))
	return nil
}

// userOf asks the cluster whose key it is. It refuses a trusted host's: through
// that, visitors would read what nobody gave them.
func userOf(ctx context.Context, file contact.File) (mount.Caller, error) {
	const op fault.Op = "treefs.userOf"
	c, err := contact.New(contact.Options{File: file, Name: "gateway"})
	if err != nil {
		return mount.Caller{}, fault.Wrap(fault.IO, op, file.UserKey, err)
	}
	err = c.Connect(ctx)
	who := c.Who()
	if err := errors.Join(err, c.Close()); err != nil {
		return mount.Caller{}, fault.Wrap(fault.Unreachable, op, "", err)
	}
	if who.Trusted {
		return mount.Caller{}, fault.E(fault.Permission, op, file.UserKey, "is the key of a trusted host, which acts as any user: give the gateway the key of one user")
	}
	a := mount.Caller{UID: who.Uid}
	if len(who.Gids) > 0 {
		a.GID = who.Gids[0]
	}
	return a, nil
}

// Cleanup implements caddy.CleanerUpper: it ends the client.
func (f *FS) Cleanup() error {
	if f.client == nil {
		return nil
	}
	f.end()
	return f.client.Close()
}

// Open implements fs.FS. The file is the caller's, who closes it; it is also an
// io.Seeker and an fs.ReadDirFile.
func (f *FS) Open(name string) (fs.File, error) {
	e, err := f.walk(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file := &file{fs: f, info: infoOf(name, e.Attr), node: e.Node}
	if !file.info.IsDir() {
		opened, err := f.client.Open(f.ctx, f.who, e.Node, mount.OpenRead)
		if err != nil {
			f.client.Forget(e.Node, 1)
			return nil, &fs.PathError{Op: "open", Path: name, Err: translated(err)}
		}
		file.handle = opened.Handle
	}
	return file, nil
}

// Stat implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	e, err := f.walk(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	f.client.Forget(e.Node, 1)
	return infoOf(name, e.Attr), nil
}

// ReadDir implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	opened, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	list, err := opened.(*file).ReadDir(-1)
	return list, errors.Join(err, opened.Close())
}

// walk finds what a visitor's name means below Root. Links, devices and names that
// are cues are not there. The caller forgets the node.
func (f *FS) walk(name string) (mount.Entry, error) {
	inside := path.Clean("/" + name) // ".." ends at the root
	for part := range strings.SplitSeq(inside, "/") {
		if _, isCue, err := cue.Parse(part); isCue || err != nil {
			return mount.Entry{}, fs.ErrNotExist
		}
	}
	e, err := f.search(f.Root + inside)
	if err != nil {
		return mount.Entry{}, translated(err)
	}
	if err := f.client.Access(f.ctx, f.who, e.Node, mayRead); err != nil {
		f.client.Forget(e.Node, 1)
		return mount.Entry{}, translated(err)
	}
	if t := e.Attr.Mode & mount.TypeMask; t != mount.TypeDir && t != mount.TypeRegular {
		f.client.Forget(e.Node, 1)
		return mount.Entry{}, fs.ErrNotExist
	}
	return e, nil
}

// search goes down a path and checks at each folder that the user may search it: the
// client library leaves that to the kernel, and there is none here.
func (f *FS) search(whole string) (mount.Entry, error) {
	const op fault.Op = "treefs.search"
	e, err := f.client.Lookup(f.ctx, f.who, mount.Root, ".")
	for part := range strings.SplitSeq(whole, "/") {
		if err != nil {
			return mount.Entry{}, err
		}
		if part == "" || part == "." {
			continue
		}
		dir := e.Node
		if e.Attr.Mode&mount.TypeMask != mount.TypeDir {
			err = fault.E(fault.NotDirectory, op, whole, "")
		} else if err = f.client.Access(f.ctx, f.who, dir, maySearch); err == nil {
			e, err = f.client.Lookup(f.ctx, f.who, dir, part)
		}
		f.client.Forget(dir, 1)
		if err == nil && e.Node == 0 {
			err = fault.E(fault.NotFound, op, whole, "")
		}
	}
	return e, err
}

// translated is an error in the words of io/fs, which the file server turns into
// its answers.
func translated(err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.NotDirectory, fault.NameTooLong:
		return fs.ErrNotExist
	case fault.Permission, fault.Unauthorized:
		return fs.ErrPermission
	}
	return err
}
