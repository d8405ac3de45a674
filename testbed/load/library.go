package load

import (
	"context"
	"path"
	"strings"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Library is a Store through the client library: no kernel between.
type Library struct {
	client  *cartwheel.Client
	objects *cartwheel.Objects
	dir     mount.Inode
	path    string
}

var _ Store = (*Library)(nil)

// OpenLibrary connects to the cluster of a contact file, as a client that
// stands at site, and stores in the folder of that path from the root; cues are
// components of it, and the last component is made where it is not there.
func OpenLibrary(ctx context.Context, contactFile, site, folder string) (*Library, error) {
	file, err := contact.Load(contactFile)
	if err != nil {
		return nil, err
	}
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: ids.Site(site), Name: "load"})
	if err != nil {
		return nil, err
	}
	l := &Library{client: c, path: folder}
	if err = l.find(ctx); err == nil {
		l.objects, err = c.Objects(ctx, mount.Caller{}, folder)
	}
	if err != nil {
		_ = c.Close() // nothing was written
		return nil, err
	}
	return l, nil
}

// find walks to the folder.
func (l *Library) find(ctx context.Context) error {
	const op fault.Op = "load.find"
	l.dir = mount.Root
	parts := strings.Split(strings.Trim(path.Clean("/"+l.path), "/"), "/")
	for i, name := range parts {
		if name == "" {
			continue
		}
		e, err := l.client.Lookup(ctx, mount.Caller{}, l.dir, name)
		if i == len(parts)-1 && (fault.Is(err, fault.NotFound) || err == nil && e.Node == 0) {
			e, err = l.client.Mkdir(ctx, mount.Caller{}, l.dir, name, 0o755)
		}
		if err == nil && e.Node == 0 {
			err = fault.E(fault.NotFound, op, name, "is not there")
		}
		if err != nil {
			return fault.Wrap(fault.Other, op, l.path, err)
		}
		l.dir = e.Node
	}
	return nil
}

// Close ends the client.
func (l *Library) Close() error { return l.client.Close() }

// Put makes an object; it is acknowledged when that returns.
func (l *Library) Put(ctx context.Context, name string, data []byte) error {
	return l.objects.Put(ctx, name, data)
}

// Get reads an object.
func (l *Library) Get(ctx context.Context, name string) ([]byte, error) {
	return l.objects.Get(ctx, name)
}

// List reads all names.
func (l *Library) List(ctx context.Context) ([]string, error) { return l.objects.List(ctx) }

// Delete removes an object.
func (l *Library) Delete(ctx context.Context, name string) error { return l.objects.Delete(ctx, name) }

// Forget drops what the client has cached.
func (l *Library) Forget(ctx context.Context) error {
	return l.client.SetXattr(ctx, mount.Caller{}, l.dir, dropAttribute, []byte("1"), 0)
}
