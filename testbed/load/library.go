package load

import (
	"context"
	"path"
	"strings"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Library is a Store through the client library: no kernel between.
type Library struct {
	client *cartwheel.Client
	dir    mount.NodeID
	path   string
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
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: geoconfig.SiteName(site), Name: "load"})
	if err != nil {
		return nil, err
	}
	l := &Library{client: c, path: folder}
	if err := l.find(ctx); err != nil {
		_ = c.Close() // nothing was written
		return nil, err
	}
	return l, nil
}

// find walks to the folder.
func (l *Library) find(ctx context.Context) error {
	const op fault.Op = "load.OpenLibrary"
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
	e, o, err := l.client.Create(ctx, mount.Caller{}, l.dir, name, mount.TypeRegular|0o644, mount.OpenWrite|mount.OpenExclusive)
	if err != nil {
		return err
	}
	defer l.client.Forget(e.Node, 1)
	defer l.client.Release(e.Node, o.Handle, 0, false)
	if _, err := l.client.Write(ctx, mount.Caller{}, e.Node, o.Handle, 0, data, 0); err != nil {
		return err
	}
	return l.client.Flush(ctx, mount.Caller{}, e.Node, o.Handle, 0)
}

// Get reads an object.
func (l *Library) Get(ctx context.Context, name string) ([]byte, error) {
	e, err := l.client.Lookup(ctx, mount.Caller{}, l.dir, name)
	if err != nil {
		return nil, err
	}
	if e.Node == 0 {
		return nil, fault.E(fault.NotFound, "load.Get", name, "")
	}
	defer l.client.Forget(e.Node, 1)
	o, err := l.client.Open(ctx, mount.Caller{}, e.Node, mount.OpenRead)
	if err != nil {
		return nil, err
	}
	defer l.client.Release(e.Node, o.Handle, 0, false)
	data := make([]byte, e.Attr.Size)
	n, err := l.client.Read(ctx, mount.Caller{}, e.Node, o.Handle, 0, data)
	return data[:n], err
}

// List reads all names.
func (l *Library) List(ctx context.Context) ([]string, error) {
	o, err := l.client.OpenDir(ctx, mount.Caller{}, l.dir)
	if err != nil {
		return nil, err
	}
	defer l.client.ReleaseDir(l.dir, o.Handle)
	var s sink
	for {
		before := s.last
		if err := l.client.ReadDir(ctx, mount.Caller{}, l.dir, o.Handle, s.last, false, &s); err != nil {
			return nil, err
		}
		if s.last == before {
			return s.names, nil
		}
	}
}

// sink takes all names but the folder's own two.
type sink struct {
	names []string
	last  uint64
}

func (s *sink) Add(e mount.DirEntry) bool {
	s.last = e.Offset
	if e.Name != "." && e.Name != ".." {
		s.names = append(s.names, e.Name)
	}
	return true
}

func (s *sink) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return s.Add(e) }

// Delete removes an object.
func (l *Library) Delete(ctx context.Context, name string) error {
	return l.client.Unlink(ctx, mount.Caller{}, l.dir, name)
}

// Forget drops what the client has cached.
func (l *Library) Forget(ctx context.Context) error {
	return l.client.SetXattr(ctx, mount.Caller{}, l.dir, dropAttribute, []byte("1"), 0)
}
