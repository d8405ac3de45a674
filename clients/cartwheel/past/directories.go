package past

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// firstName is the cookie of the first name: "." and ".." are before it.
const firstName = 2

// OpenDir implements mount.Directories.
func (f *FileSystem) OpenDir(ctx context.Context, who mount.Caller, id mount.Inode) (mount.Opened, error) {
	if !isPast(id) {
		return f.Inner.OpenDir(ctx, who, id)
	}
	n := f.table.get(id)
	if n == nil {
		return mount.Opened{}, staleNode
	}
	return mount.Opened{Handle: f.opened.add(&handle{node: n, listing: &listing{}}), KeepCache: true, CacheDir: true}, nil
}

// ReleaseDir implements mount.Directories.
func (f *FileSystem) ReleaseDir(id mount.Inode, h mount.Handle) {
	if !isPast(id) {
		f.Inner.ReleaseDir(id, h)
		return
	}
	f.opened.remove(h)
}

// FsyncDir implements mount.Directories.
func (f *FileSystem) FsyncDir(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, dataOnly bool) error {
	if isPast(id) {
		return nil
	}
	return f.Inner.FsyncDir(ctx, who, id, h, dataOnly)
}

// ReadDir implements mount.Directories.
func (f *FileSystem) ReadDir(ctx context.Context, who mount.Caller, id mount.Inode, hid mount.Handle, offset uint64, plus bool, sink mount.DirSink) error {
	if !isPast(id) {
		return f.Inner.ReadDir(ctx, who, id, hid, offset, plus, sink)
	}
	h := f.opened.get(hid)
	if h == nil || h.listing == nil {
		return fault.E(fault.BadHandle, "past.ReadDir", "", "")
	}
	ctx, done := within(ctx, h.node)
	defer done()
	a, err := f.attr(ctx, h.node)
	if err != nil {
		return err
	}
	if !dots(h.node, a, offset, plus, sink) {
		return nil
	}
	l := h.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := max(offset, firstName) - firstName; ; at++ {
		e, err := f.at(ctx, who, h.node, l, at)
		if err != nil || e == nil {
			return err
		}
		if !f.hand(h.node, e, at+firstName+1, plus, sink) {
			return nil
		}
	}
}

// dots hands "." and ".." over, and reports whether there is room for more.
func dots(n *node, a *pb.Attr, offset uint64, plus bool, sink mount.DirSink) bool {
	for i, e := range []mount.DirEntry{
		{Name: ".", Ino: number(n.object, n.at), Type: mount.TypeDir, Offset: 1},
		{Name: "..", Ino: number(ids.Object(a.Parent), n.at), Type: mount.TypeDir, Offset: firstName},
	} {
		if offset > uint64(i) {
			continue
		}
		if plus && !sink.AddPlus(e, &mount.Entry{}) || !plus && !sink.Add(e) {
			return false
		}
	}
	return true
}

// at returns the name at a place of a listing, nil behind the last one.
func (f *FileSystem) at(ctx context.Context, who mount.Caller, n *node, l *listing, at uint64) (*pb.Entry, error) {
	if at < l.base { // the kernel goes back
		l.page, l.base, l.begun = nil, 0, false
	}
	for at >= l.base+uint64(len(l.page)) {
		if l.begun && !l.more {
			return nil, nil
		}
		after := ""
		if len(l.page) > 0 {
			after = string(l.page[len(l.page)-1].Name)
		}
		resp, err := f.list(ctx, who, n, after)
		if err != nil {
			return nil, err
		}
		if resp.More && len(resp.Entries) == 0 {
			return nil, fault.E(fault.Corrupt, "past.ReadDir", n.object.String(), "a page of a listing has no names")
		}
		l.base += uint64(len(l.page))
		l.page, l.more, l.begun = resp.Entries, resp.More, true
	}
	return l.page[at-l.base], nil
}

// hand gives the kernel one name, looked up where the attributes came with it.
func (f *FileSystem) hand(dir *node, e *pb.Entry, cookie uint64, plus bool, sink mount.DirSink) bool {
	out := mount.DirEntry{Name: string(e.Name), Ino: number(ids.Object(e.Object), dir.at), Type: e.Mode, Offset: cookie}
	switch {
	case !plus:
		return sink.Add(out)
	case e.Attr == nil:
		return sink.AddPlus(out, &mount.Entry{})
	}
	n := f.table.look(place{ids.Object(e.Object), dir.at, dir.cues}, dir.id, out.Name)
	a, _ := n.known()
	if a == nil {
		a = e.Attr
		n.learn(a)
	}
	looked := entry(n, a)
	if sink.AddPlus(out, &looked) {
		return true
	}
	f.table.forget(n.id, 1)
	return false
}
