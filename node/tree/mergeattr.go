package tree

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// attributes gives the object the side's mode, owner, times and extended attributes,
// where the side changed them last.
func (g *merging) attributes(newer bool) error {
	if !newer {
		return nil
	}
	a, o := g.m.Attr, g.m.Object
	for _, x := range g.m.Xattrs {
		set := &pb.SetXattr{Object: o, Name: x.Name, Value: x.Value}
		if err := g.do(&pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: set}}, nil); err != nil {
			return err
		}
	}
	if err := g.dropXattrs(); err != nil {
		return err
	}
	mode := a.Mode & 0o7777
	set := &pb.SetAttr{Object: o, Uid: &a.Uid, Gid: &a.Gid, AtimeNs: &a.AtimeNs, MtimeNs: &a.MtimeNs}
	if a.Mode&TypeMask != TypeLink {
		set.Mode = &mode
	}
	return g.do(&pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: set}}, nil)
}

// dropXattrs removes the extended attributes that the side does not have.
func (g *merging) dropXattrs() error {
	known := map[string]bool{}
	for _, x := range g.m.Xattrs {
		known[x.Name] = true
	}
	var gone []string
	n, err := readInode(g.layer, ids.Object(g.m.Object))
	if err != nil || n == nil {
		return err
	}
	for _, x := range n.acls() {
		if !known[x.Name] {
			gone = append(gone, x.Name)
		}
	}
	err = scanXattrs(g.layer, n.Object, func(name string, _ []byte) bool {
		if !known[name] {
			gone = append(gone, name)
		}
		return true
	})
	for _, name := range gone {
		if err == nil {
			err = g.do(&pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: g.m.Object, Name: name, Remove: true}}}, nil)
		}
	}
	return err
}
