package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

const rootID = ids.RootObject

var (
	super = Principal{}
	alice = Principal{UID: 1, GID: 1, Groups: []uint32{100}}
	bob   = Principal{UID: 2, GID: 2}
)

func createOp(dir ids.Object, name string, mode uint32) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(dir), Name: []byte(name), Mode: mode, Exclusive: true, Target: target(mode)}}}
}

func target(mode uint32) []byte {
	if mode&TypeMask == TypeLink {
		return []byte("somewhere")
	}
	return nil
}

func commitOp(id, offset uint64, n int) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: id, Extents: []*pb.Extent{
		{Offset: offset, Length: uint64(n), Source: &pb.Extent_BodyOffset{}}}}}}
}

// desk is a world of one slice with a path language for tables.
type desk struct {
	*world
	t testing.TB
}

func newDesk(t testing.TB) *desk {
	d := &desk{newWorld(t, 1, 1), t}
	d.do(super, fault.None, setMode(uint64(rootID), 0o777))
	return d
}

func setMode(o uint64, mode uint32) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: o, Mode: &mode}}}
}

func (d *desk) do(who Principal, want fault.Kind, op *pb.Operation) *pb.Result {
	d.t.Helper()
	r, _ := d.run(rootID, who, 0, op, nil)
	if fault.Kind(r.Kind) != want {
		d.t.Errorf("%v by %d: got %v, want %v", op, who.UID, fault.Kind(r.Kind), want)
	}
	return r
}

func (d *desk) id(path string) ids.Object {
	d.t.Helper()
	o := rootID
	for _, name := range strings.Split(path, "/") {
		if name == "" {
			continue
		}
		e, err := Lookup(d.places[1].over, o, []byte(name))
		if err != nil {
			d.t.Fatalf("%s: %v", path, err)
		}
		o = e.Object
	}
	return o
}

func (d *desk) attr(path string) *pb.Attr {
	d.t.Helper()
	a, err := GetAttr(d.places[1].over, d.id(path), true, true)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

func (d *desk) make(who Principal, path string, mode uint32) *pb.Result {
	d.t.Helper()
	dir, name := split(path)
	return d.do(who, fault.None, createOp(d.id(dir), name, mode))
}

func split(path string) (dir, name string) {
	i := strings.LastIndex(path, "/")
	return path[:i+1], path[i+1:]
}

func (d *desk) unlink(path string, dir bool) *pb.Operation {
	p, name := split(path)
	return &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(d.id(p)), Name: []byte(name), Directory: dir}}}
}

func (d *desk) rename(from, to string, flags ...string) *pb.Operation {
	p, name := split(from)
	q, other := split(to)
	r := &pb.Rename{Dir: uint64(d.id(p)), Name: []byte(name), NewDir: uint64(d.id(q)), NewName: []byte(other)}
	for _, f := range flags {
		r.NoReplace = r.NoReplace || f == "noreplace"
		r.Exchange = r.Exchange || f == "exchange"
	}
	return &pb.Operation{Op: &pb.Operation_Rename{Rename: r}}
}

// TestEvaluate_ErrorsAndTheirOrder checks each operation's failures, and their
// order where several are due.
func TestEvaluate_ErrorsAndTheirOrder(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/dir", TypeDir|0o755)
	d.make(alice, "/dir/sub", TypeDir|0o755)
	d.make(alice, "/dir/file", TypeRegular|0o644)
	d.make(alice, "/empty", TypeDir|0o755)
	d.make(alice, "/private", TypeDir|0o700)
	d.make(alice, "/private/file", TypeRegular|0o666)
	d.make(super, "/tmp", TypeDir|0o1777)
	d.make(alice, "/tmp/a", TypeRegular|0o666)
	d.make(alice, "/tmp/d", TypeDir|0o777)
	d.make(alice, "/open", TypeDir|0o777)
	d.make(bob, "/open/b", TypeRegular|0o600)
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		name string
		who  Principal
		want fault.Kind
		op   *pb.Operation
	}{
		{"a name of 256 bytes", alice, fault.NameTooLong, createOp(rootID, long, TypeRegular)},
		{"a name with a slash", alice, fault.Invalid, createOp(rootID, "a/b", TypeRegular)},
		{"below a file", alice, fault.NotDirectory, createOp(d.id("/dir/file"), "x", TypeRegular)},
		{"exists, though the directory is not writable", bob, fault.Exists, createOp(d.id("/dir"), "sub", TypeDir)},
		{"not writable", bob, fault.Permission, createOp(d.id("/dir"), "new", TypeDir)},
		{"not searchable, though it exists", bob, fault.Permission, createOp(d.id("/private"), "file", TypeRegular)},
		{"a device by a user", alice, fault.NotOwner, createOp(rootID, "dev", TypeBlock)},
		{"a device where the directory is not writable", bob, fault.Permission, createOp(d.id("/dir"), "dev", TypeBlock)},
		{"an object that is gone", alice, fault.Stale, createOp(ids.NewObject(1, 999), "x", TypeRegular)},
		{"unlink of nothing", alice, fault.NotFound, d.unlink("/none", false)},
		{"unlink of a directory", alice, fault.IsDirectory, d.unlink("/empty", false)},
		{"unlink of a directory that is not writable", bob, fault.Permission, d.unlink("/dir/sub", false)},
		{"rmdir of a file", alice, fault.NotDirectory, d.unlink("/dir/file", true)},
		{"rmdir of a full directory", alice, fault.NotEmpty, d.unlink("/dir", true)},
		{"rmdir of dot", alice, fault.Invalid, d.unlink("/dir/.", true)},
		{"rmdir of dot dot", alice, fault.NotEmpty, d.unlink("/dir/..", true)},
		{"sticky: another's file", bob, fault.NotOwner, d.unlink("/tmp/a", false)},
		{"sticky: another's directory as a file", bob, fault.NotOwner, d.unlink("/tmp/d", false)},
		{"sticky: rename of another's file", bob, fault.NotOwner, d.rename("/tmp/a", "/tmp/b")},
		{"sticky: rename onto another's file", bob, fault.NotOwner, d.rename("/open/b", "/tmp/a")},
		{"sticky: exchange with another's file", bob, fault.NotOwner, d.rename("/open/b", "/tmp/a", "exchange")},
		{"rename of nothing", alice, fault.NotFound, d.rename("/none", "/x")},
		{"rename with both flags", alice, fault.Invalid, d.rename("/dir", "/x", "exchange", "noreplace")},
		{"rename onto a name with noreplace", alice, fault.Exists, d.rename("/empty", "/dir", "noreplace")},
		{"exchange with nothing", alice, fault.NotFound, d.rename("/empty", "/x", "exchange")},
		{"rename below itself", alice, fault.Invalid, d.rename("/dir", "/dir/sub/x")},
		{"rename into itself", alice, fault.Invalid, d.rename("/dir", "/dir/x")},
		{"exchange with an ancestor", alice, fault.Invalid, d.rename("/dir/sub", "/dir", "exchange")},
		{"rename onto an ancestor", alice, fault.NotEmpty, d.rename("/dir/sub", "/dir")},
		{"rename of a directory onto a file", alice, fault.NotDirectory, d.rename("/empty", "/dir/file")},
		{"rename of a file onto a directory", alice, fault.IsDirectory, d.rename("/dir/file", "/empty")},
		{"rename onto a full directory", alice, fault.NotEmpty, d.rename("/empty", "/dir")},
		{"rename out of a directory that is not writable", bob, fault.Permission, d.rename("/dir/file", "/x")},
		{"rename of a directory that one may not write", bob, fault.Permission, d.rename("/open/b", "/private/b")},
		{"moving another's directory", bob, fault.NotOwner, d.rename("/tmp/d", "/open/d")},
		{"link to a directory", super, fault.NotOwner, &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(d.id("/dir")), Dir: uint64(rootID), Name: []byte("l")}}}},
		{"link onto a name", alice, fault.Exists, &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(d.id("/dir/file")), Dir: uint64(rootID), Name: []byte("dir")}}}},
		{"chmod of another's", bob, fault.NotOwner, setMode(uint64(d.id("/tmp/a")), 0o777)},
	} {
		t.Run(c.name, func(t *testing.T) {
			(&desk{d.world, t}).do(c.who, c.want, c.op)
		})
	}
}

// TestRename_MovedDirectoryNeedsWrite moves a directory between parents that all
// may write. Its ".." changes, and so the caller needs write permission on it.
func TestRename_MovedDirectoryNeedsWrite(t *testing.T) {
	d := newDesk(t)
	d.make(super, "/a", TypeDir|0o777)
	d.make(super, "/a/d", TypeDir|0o755)
	d.make(super, "/b", TypeDir|0o777)
	d.do(bob, fault.Permission, d.rename("/a/d", "/b/d"))
	d.do(bob, fault.None, d.rename("/a/d", "/a/e"))
}

func TestLink_RefusesTooManyLinks(t *testing.T) {
	d := newDesk(t)
	d.make(super, "/f", TypeRegular|0o644)
	d.make(super, "/d", TypeDir|0o755)
	d.make(super, "/e", TypeDir|0o755)
	d.flush(d.places[1])
	for _, name := range []string{"/f", "/d"} {
		n, err := readInode(d.places[1].state, d.id(name))
		if err != nil {
			t.Fatal(err)
		}
		n.Nlink = MaxLinks
		if err := d.places[1].state.apply([]Mutation{{Key: objectKey(keyInode, n.Object), Value: AppendInode(nil, n)}}, 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	link := &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(d.id("/f")), Dir: uint64(rootID), Name: []byte("l")}}}
	d.do(super, fault.TooManyLinks, link)
	d.do(super, fault.TooManyLinks, createOp(d.id("/d"), "x", TypeDir|0o755))
	d.do(super, fault.TooManyLinks, d.rename("/e", "/d/e"))
}

// TestEvaluate_MovesTheRightTimes checks which times an operation moves.
func TestEvaluate_MovesTheRightTimes(t *testing.T) {
	d := newDesk(t)
	d.make(super, "/d", TypeDir|0o755)
	d.make(super, "/d/f", TypeRegular|0o644)
	step := func(path string, op *pb.Operation, body []byte) (before, after *pb.Attr) {
		t.Helper()
		before = d.attr(path)
		op.TimeNs = int64(d.clock) + 1000
		if r, _ := d.run(rootID, super, 0, op, body); r.Kind != 0 {
			t.Fatalf("%v: %v", op, fault.Kind(r.Kind))
		}
		return before, d.attr(path)
	}
	if b, a := step("/d/f", setMode(uint64(d.id("/d/f")), 0o600), nil); a.CtimeNs <= b.CtimeNs || a.MtimeNs != b.MtimeNs {
		t.Error("chmod shall move ctime, not mtime")
	}
	if b, a := step("/d", createOp(d.id("/d"), "g", TypeRegular), nil); a.CtimeNs <= b.CtimeNs || a.MtimeNs <= b.MtimeNs || a.AtimeNs != b.AtimeNs {
		t.Error("create shall move the directory's mtime and ctime")
	}
	if b, a := step("/d/f", commitOp(uint64(d.id("/d/f")), 0, 3), []byte("abc")); a.CtimeNs <= b.CtimeNs || a.MtimeNs <= b.MtimeNs || a.Version <= b.Version {
		t.Error("a write shall move mtime, ctime and version")
	}
	if b, a := step("/d/f", &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(d.id("/d/f")), Dir: uint64(rootID), Name: []byte("l")}}}, nil); a.CtimeNs <= b.CtimeNs || a.Version != b.Version || a.Parent != 0 {
		t.Error("link shall move ctime, and no directory covers two names")
	}
	ns := int64(-5_000_000_001)
	if _, a := step("/d/f", &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(d.id("/d/f")), MtimeNs: &ns, AtimeNow: true}}}, nil); a.MtimeNs != ns || a.AtimeNs != a.CtimeNs {
		t.Errorf("utimensat: mtime %d, want %d", a.MtimeNs, ns)
	}
	at := int64(77)
	d.do(bob, fault.NotOwner, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(d.id("/d/f")), MtimeNs: &at}}})
	d.do(bob, fault.Permission, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(d.id("/d/f")), MtimeNow: true}}})
	buffered := &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(d.id("/d/f")), MtimeNs: &at, ByHandle: true}}}
	d.do(bob, fault.NotOwner, buffered)
	d.do(super, fault.None, setMode(uint64(d.id("/d/f")), 0o666))
	d.do(bob, fault.None, buffered)
}

// TestSetAttr_ClearsSetIDBits checks when set-id bits go.
func TestSetAttr_ClearsSetIDBits(t *testing.T) {
	d := newDesk(t)
	mode := func() uint32 { return d.attr("/f").Mode & 0o7777 }
	d.make(alice, "/f", TypeRegular|0o6775)
	id := uint64(d.id("/f"))
	gid := uint32(100)
	d.do(alice, fault.None, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: id, Gid: &gid}}})
	if mode() != 0o775 {
		t.Errorf("chown leaves %o, want 775", mode())
	}
	d.do(alice, fault.None, setMode(id, 0o6775))
	if r, _ := d.run(rootID, super, 0, commitOp(id, 0, 1), []byte("x")); r.Kind != 0 || mode() != 0o6775 {
		t.Errorf("a write by root leaves %o, want 6775", mode())
	}
	if r, _ := d.run(rootID, alice, 0, commitOp(id, 0, 1), []byte("x")); r.Kind != 0 || mode() != 0o775 {
		t.Errorf("a write by its owner leaves %o, want 775", mode())
	}
	other := uint32(2)
	d.do(super, fault.None, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: id, Gid: &other}}})
	d.do(alice, fault.None, setMode(id, 0o2755))
	if mode() != 0o755 {
		t.Errorf("set-gid by one outside the group gives %o, want 755", mode())
	}
	d.do(alice, fault.NotOwner, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: id, Uid: &other}}})
}

// aclValue builds an ACL from tag, permission, ID.
func aclValue(entries ...[3]uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

const none = 1<<32 - 1

func setACL(o ids.Object, name string, value []byte) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: uint64(o), Name: name, Value: value}}}
}

func TestACL_GovernsAccessAndInheritance(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/d", TypeDir|0o700)
	dir := d.id("/d")
	d.do(bob, fault.Permission, createOp(dir, "b", TypeRegular|0o666))
	d.do(bob, fault.NotOwner, setACL(dir, XattrACL, nil))
	full := aclValue([3]uint32{aclUserObj, 7, none}, [3]uint32{aclUser, 7, 2}, [3]uint32{aclGroupObj, 5, none}, [3]uint32{aclMask, 7, none}, [3]uint32{aclOther, 0, none})
	d.do(alice, fault.None, setACL(dir, XattrACL, full))
	if got := d.attr("/d").Mode & 0o777; got != 0o770 {
		t.Errorf("setfacl gives mode %o, want 770", got)
	}
	d.do(bob, fault.None, createOp(dir, "b", TypeRegular|0o666))
	d.do(alice, fault.None, setMode(uint64(dir), 0o750)) // the mask is r-x now
	d.do(bob, fault.Permission, createOp(dir, "c", TypeRegular|0o666))
	d.do(bob, fault.Exists, createOp(dir, "b", TypeRegular|0o666))
	d.do(alice, fault.Invalid, setACL(dir, XattrACL, full[:len(full)-8]))
	d.do(alice, fault.Permission, setACL(ids.Object(d.make(alice, "/f", TypeRegular|0o600).Attr.Object), XattrDefaultACL, full))

	// a default ACL is inherited, and the umask does not count
	d.do(alice, fault.None, setACL(dir, XattrDefaultACL, full))
	op := createOp(dir, "kid", TypeRegular|0o666)
	op.GetCreate().Umask = 0o77
	d.do(alice, fault.None, op)
	kid := d.attr("/d/kid")
	if kid.Mode&0o777 != 0o660 || !kid.HasAcl {
		t.Errorf("inherited mode %o, ACL %v; want 660 and an ACL", kid.Mode&0o777, kid.HasAcl)
	}
	d.do(alice, fault.None, createOp(dir, "subdir", TypeDir|0o777))
	if sub := d.attr("/d/subdir"); len(sub.Xattrs) != 2 {
		t.Errorf("a subdirectory inherits %d ACLs, want 2", len(sub.Xattrs))
	}
	// an ACL that mode bits can say is not kept
	d.do(alice, fault.None, setACL(dir, XattrACL, aclValue([3]uint32{aclUserObj, 7, none}, [3]uint32{aclGroupObj, 5, none}, [3]uint32{aclOther, 5, none})))
	if a := d.attr("/d"); a.Mode&0o777 != 0o755 || len(a.Xattrs) != 1 {
		t.Errorf("a minimal ACL gives mode %o and %d ACLs, want 755 and 1", a.Mode&0o777, len(a.Xattrs))
	}
}

func TestXattrs_SetReplaceAndRemove(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o600)
	o := uint64(d.id("/f"))
	x := func(name, value string, flags string) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: o, Name: name, Value: []byte(value),
			Create: flags == "create", Replace: flags == "replace", Remove: flags == "remove"}}}
	}
	d.do(alice, fault.NoAttribute, x("user.a", "1", "replace"))
	if !d.attr("/f").NoXattrs {
		t.Error("a new file's answer does not say that it has no extended attributes")
	}
	d.do(alice, fault.None, x("user.a", "1", "create"))
	if d.attr("/f").NoXattrs {
		t.Error("the answer says that there are no extended attributes after one was set")
	}
	d.do(alice, fault.Exists, x("user.a", "1", "create"))
	d.do(alice, fault.None, x("user.a", "22", "replace"))
	d.do(bob, fault.Permission, x("user.a", "3", ""))
	d.do(alice, fault.NotOwner, x("trusted.a", "3", ""))
	d.do(alice, fault.NotSupported, x("user.cartwheel.where", "3", ""))
	d.do(alice, fault.NotSupported, x("nothing", "3", ""))
	d.do(alice, fault.TooLarge, x("user.b", strings.Repeat("x", MaxXattr+1), ""))
	for i := range 3 {
		d.do(alice, fault.None, x(fmt.Sprintf("user.big%d", i), strings.Repeat("x", MaxXattr), ""))
	}
	d.do(alice, fault.NoSpace, x("user.big3", strings.Repeat("x", MaxXattr), ""))
	if a := d.attr("/f"); len(a.Xattrs) != 4 || !bytes.Equal(a.Xattrs[0].Value, []byte("22")) {
		t.Errorf("got %d attributes, want 4", len(a.Xattrs))
	}
	d.do(alice, fault.None, x("user.a", "", "remove"))
	d.do(alice, fault.NoAttribute, x("user.a", "", "remove"))
	d.do(super, fault.None, x(xattrCapability, "cap", ""))
	if r, _ := d.run(rootID, alice, 0, commitOp(o, 0, 1), []byte("x")); r.Kind != 0 {
		t.Fatal("write")
	}
	d.do(super, fault.NoAttribute, x(xattrCapability, "", "remove"))
	d.do(alice, fault.None, d.unlink("/f", false))
	d.flush(d.places[1])
	for k := range d.places[1].state.values {
		if k[0] == keyXattr {
			t.Errorf("%q is left of a removed file", k)
		}
	}
}

// counting counts what a scan visits.
type counting struct {
	View
	visited int
}

func (c *counting) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	return c.View.Scan(from, to, func(key, value []byte) bool {
		c.visited++
		return fn(key, value)
	})
}

// TestList_CostsWhatItReturns checks that a page of a large directory costs what
// it returns.
func TestList_CostsWhatItReturns(t *testing.T) {
	d := newDesk(t)
	const names = 2000
	for i := range names {
		d.make(super, fmt.Sprintf("/n%06d", i), TypeRegular|0o644)
	}
	d.flush(d.places[1])
	v := &counting{View: d.places[1].state}
	var after []byte
	seen := 0
	for more := true; more; {
		page, again, err := List(v, rootID, after, 100)
		if err != nil || len(page) == 0 {
			t.Fatalf("%d names after %q: %v", len(page), after, err)
		}
		more, after = again, page[len(page)-1].Name
		seen += len(page)
	}
	if seen != names || v.visited > names+names/100 {
		t.Errorf("listed %d names and visited %d, want %d", seen, v.visited, names)
	}
}
