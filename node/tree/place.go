package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// maxConflicts bounds what a slice remembers of conflicts; with more, the oldest is
// forgotten. What was kept stays.
const maxConflicts = 1000

// names gives the object more names.
func (g *merging) names(list []*pb.Named) error {
	for _, n := range list {
		dir, name, err := g.place(n, true)
		if err != nil {
			return err
		}
		if name == nil || g.into != 0 {
			continue
		}
		link := &pb.Link{Object: g.m.Object, Dir: uint64(dir), Name: name}
		if err := g.do(&pb.Operation{Op: &pb.Operation_Link{Link: link}}, nil); err != nil {
			return err
		}
	}
	return nil
}

// namesLost are the names that the object is to lose here. A client may have sent the same
// create to the active, which did it late. The name from that create goes too, unless the
// side kept it: else the next file of that name would open this one.
func (g *merging) namesLost(x *Inode) ([]*pb.Named, error) {
	if !g.m.Fresh || x.IsDir() || x.Side.Merged != 0 || x.Parent == 0 {
		return g.m.Lost, nil
	}
	name, err := nameIn(g.layer, x.Parent, x.Object)
	if err != nil || name == nil {
		return g.m.Lost, err
	}
	made := &pb.Named{Dir: uint64(x.Parent), Name: name}
	for _, n := range g.m.Gained {
		if n.Dir == made.Dir && bytes.Equal(n.Name, name) {
			return g.m.Lost, nil
		}
	}
	return append(slices.Clone(g.m.Lost), made), nil
}

// place finds out under which name the object gets what the side named so, and makes
// room for it. No name: it has that already. Where the object is the same as the one
// that has the name, g.into says so. exists says that the object is here already.
func (g *merging) place(n *pb.Named, exists bool) (dir ids.Object, name []byte, err error) {
	if dir, err = g.home(n.Dir); err != nil {
		return 0, nil, err
	}
	e, found, err := g.find(uint64(dir), n.Name)
	switch {
	case err != nil:
		return 0, nil, err
	case !found:
		return dir, n.Name, nil
	case uint64(e.Object) == g.m.Object:
		return dir, nil, nil
	}
	other, err := readInode(g.layer, e.Object) // none where it is another slice's
	if err != nil {
		return 0, nil, err
	}
	moved := n.ReplacedLives && n.Replaced == uint64(e.Object) && other != nil && !other.IsDir() && other.Nlink <= 1
	if moved {
		if done, err := g.exchange(dir, n.Name); err != nil || done {
			return dir, nil, err
		}
	}
	if !moved && n.Replaced == uint64(e.Object) && other != nil && (!other.IsRegular() || other.Version == n.ReplacedVersion) {
		unlink := &pb.Unlink{Dir: uint64(dir), Name: n.Name, Object: n.Replaced, Directory: other.IsDir()}
		kind, err := g.try(&pb.Operation{Op: &pb.Operation_Unlink{Unlink: unlink}}, nil)
		if err != nil || kind == fault.None {
			return dir, n.Name, err
		}
	}
	return g.contend(n, dir, e, other, exists || moved)
}

// exchange gives what has a name one that the side took from this object, which gets
// that name for it.
func (g *merging) exchange(dir ids.Object, name []byte) (bool, error) {
	for _, l := range g.m.Given {
		if has, err := g.has(l); err != nil || !has {
			if err != nil {
				return false, err
			}
			continue
		}
		swap := &pb.Rename{Dir: l.Dir, Name: l.Name, NewDir: uint64(dir), NewName: name, Object: g.m.Object, Exchange: true}
		kind, err := g.try(&pb.Operation{Op: &pb.Operation_Rename{Rename: swap}}, nil)
		return kind == fault.None, err
	}
	return false, nil
}

// contend decides who has a name that another object has here.
func (g *merging) contend(n *pb.Named, dir ids.Object, e Entry, other *Inode, exists bool) (ids.Object, []byte, error) {
	isDir := g.m.Attr.Mode&TypeMask == TypeDir
	if !exists && g.m.Fresh && other != nil {
		same := isDir && other.IsDir()
		if !isDir {
			var err error
			if same, err = g.isSame(other); err != nil {
				return 0, nil, err
			}
		}
		if same {
			g.into = e.Object
			return dir, nil, nil
		}
	}
	spare, has, err := g.spareName(dir, n.Name, func(n *Inode) (bool, error) {
		if exists || isDir {
			return uint64(n.Object) == g.m.Object, nil
		}
		return g.isSame(n)
	})
	if err != nil || has {
		return dir, nil, err
	}
	if isDir || other == nil || other.IsDir() || g.m.AtNs <= other.Ctime {
		g.note(e.Object, dir, n.Name, ids.Object(g.m.Object), spare, "another object has the name")
		return dir, spare, nil
	}
	away := &pb.Rename{Dir: uint64(dir), Name: n.Name, NewDir: uint64(dir), NewName: spare, Object: uint64(e.Object), NoReplace: true}
	g.note(ids.Object(g.m.Object), dir, n.Name, e.Object, spare, "a newer object has the name")
	return dir, n.Name, g.do(&pb.Operation{Op: &pb.Operation_Rename{Rename: away}}, nil)
}

// home is the directory that the side's is here. One that was removed meanwhile is
// made again, with what is above it in the slice.
func (g *merging) home(dir uint64) (ids.Object, error) {
	n, err := readInode(g.layer, ids.Object(dir))
	if err != nil || n != nil && n.IsDir() && n.Nlink > 0 {
		return ids.Object(dir), err
	}
	i := slices.IndexFunc(g.m.Above, func(w *pb.Way) bool { return w.Dir == dir })
	if i < 0 {
		return 0, refusal(fault.Stale)
	}
	way := g.m.Above[i].Up
	for i, up := range way {
		n, err := readInode(g.layer, ids.Object(up.Dir))
		if err != nil {
			return 0, err
		}
		if n != nil && n.IsDir() && n.Nlink > 0 {
			return g.again(n.Object, way[:i+1])
		}
	}
	return 0, refusal(fault.Stale)
}

// again finds or makes the directories of a way down from one that is here; the last
// name is the first on the way.
func (g *merging) again(at ids.Object, down []*pb.Named) (ids.Object, error) {
	for i := len(down) - 1; i >= 0; i-- {
		name := down[i].Name
		e, found, err := g.find(uint64(at), name)
		if err != nil {
			return 0, err
		}
		if found && e.Type != TypeDir {
			if name, found, err = g.spareName(at, name, isDirectory); err != nil {
				return 0, err
			}
			if e, _, err = g.find(uint64(at), name); err != nil {
				return 0, err
			}
		}
		if !found {
			mkdir := &pb.Create{Dir: uint64(at), Name: name, Mode: TypeDir | 0o755}
			if err := g.do(&pb.Operation{Op: &pb.Operation_Create{Create: mkdir}}, nil); err != nil {
				return 0, err
			}
			if e, _, err = g.find(uint64(at), name); err != nil {
				return 0, err
			}
			own := &pb.SetAttr{Object: uint64(e.Object), Uid: &g.m.Attr.Uid, Gid: &g.m.Attr.Gid}
			if err := g.do(&pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: own}}, nil); err != nil {
				return 0, err
			}
			g.note(e.Object, at, name, 0, nil, "the directory was removed elsewhere, and something was made in it at the side: it is there again")
		}
		at = e.Object
	}
	return at, nil
}

func isDirectory(n *Inode) (bool, error) { return n.IsDir(), nil }

// spareName is a free name for what loses one: it says from where it is, and of when.
// Where a merge made it before, it is the name of what is the one looked for.
func (g *merging) spareName(dir ids.Object, name []byte, isIt func(*Inode) (bool, error)) (spare []byte, found bool, err error) {
	when := time.Unix(0, g.m.AtNs).UTC().Format("2006-01-02 15.04.05")
	for i := 1; i < 1000; i++ {
		mark := " (conflict of " + g.m.Node + " " + when
		if i > 1 {
			mark += " " + strconv.Itoa(i)
		}
		spare = withMark(string(name), mark+")")
		e, taken, err := g.find(uint64(dir), spare)
		if err != nil || !taken {
			return spare, false, err
		}
		n, err := readInode(g.layer, e.Object)
		if err != nil {
			return nil, false, err
		}
		if n == nil {
			continue
		}
		if is, err := isIt(n); err != nil || is {
			return spare, is, err
		}
	}
	return nil, false, refusal(fault.Exists)
}

// withMark puts a mark before the ending of a name, which is cut where both are too
// long.
func withMark(name, mark string) []byte {
	end := path.Ext(name)
	if end == name || len(end) > 16 {
		end = ""
	}
	base := name[:len(name)-len(end)]
	for len(base)+len(mark)+len(end) > MaxName {
		_, size := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-size]
	}
	return []byte(base + mark + end)
}

func (g *merging) note(won, dir ids.Object, name []byte, kept ids.Object, spare []byte, why string) {
	g.notes = append(g.notes, &pb.Conflict{Object: uint64(won), Dir: uint64(dir), Name: bytes.Clone(name), Kept: uint64(kept), KeptName: spare,
		Reason: why, AtNs: g.m.AtNs, MergedNs: int64(g.c.Time), Node: g.m.Node})
}

// keepNotes writes what is to be reported, and was not before.
func (g *merging) keepNotes() error {
	if len(g.notes) == 0 {
		return nil
	}
	var all [][]byte
	known := map[string]bool{}
	err := g.layer.Scan([]byte{keyConflict}, []byte{keyConflict + 1}, func(key, value []byte) bool {
		all = append(all, bytes.Clone(key))
		c := &pb.Conflict{}
		if proto.Unmarshal(value, c) == nil {
			known[about(c)] = true
		}
		return true
	})
	var out []Mutation
	for i, n := range g.notes {
		value, e := proto.Marshal(n)
		if err = orKeep(err, e); known[about(n)] {
			continue
		}
		key := binary.BigEndian.AppendUint64([]byte{keyConflict}, uint64(g.c.Time))
		out = append(out, Mutation{Key: append(key, byte(i)), Value: value})
	}
	if over := len(all) + len(out) - maxConflicts; over > 0 {
		for _, key := range all[:min(over, len(all))] {
			out = append(out, Mutation{Key: key})
		}
	}
	g.add(out)
	return err
}

// about tells conflicts apart.
func about(c *pb.Conflict) string {
	return fmt.Sprint(c.Object, c.Dir, string(c.Name), c.Kept, c.Reason)
}

// Conflicts lists what merges of side logs kept in a slice beside what won, the
// oldest first.
func Conflicts(v View) (out []*pb.Conflict, err error) {
	const op fault.Op = "tree.Conflicts"
	var bad error
	err = v.Scan([]byte{keyConflict}, []byte{keyConflict + 1}, func(_, value []byte) bool {
		c := &pb.Conflict{}
		if bad = proto.Unmarshal(value, c); bad != nil {
			return false
		}
		out = append(out, c)
		return true
	})
	if err == nil && bad != nil {
		err = fault.Wrap(fault.Corrupt, op, "", bad)
	}
	return out, fault.Wrap(fault.IO, op, "", err)
}
