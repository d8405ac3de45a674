package mounttest

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func permissionCases() []testCase {
	return []testCase{
		{"modes keep others out", 1, modes},
		{"supplementary groups let in", 1, groups},
		{"owners and who may change them", 1, owners},
		{"the umask", 1, umask},
		{"the sticky bit", 1, sticky},
		{"set-id bits go when others write or owners change", 1, setID},
		{"set-id bits and capabilities go at each kind of write", 1, privileges},
		{"set-gid directories hand their group down", 1, setGIDDirectory},
		{"an access ACL lets in and keeps out", 1, accessACL},
		{"a default ACL is inherited", 1, defaultACL},
	}
}

func modes(e *env) {
	path := e.at("f")
	e.write(path, "secret")
	e.ok(os.Chmod(path, 0o640))
	e.ok(os.Chown(path, alice, staff))
	read := func() error { _, err := os.ReadFile(path); return err }
	write := func() error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	}
	e.ok(e.as(alice, alice, nil, read))
	e.ok(e.as(alice, alice, nil, write))
	e.ok(e.as(bob, staff, nil, read))
	e.want(e.as(bob, staff, nil, write), syscall.EACCES)
	e.want(e.as(bob, bob, nil, read), syscall.EACCES)
	// Without search permission the name is out of reach, cached or not.
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.write(e.at("d", "x"), "x")
	look := func() error { _, err := os.Stat(e.at("d", "x")); return err }
	e.ok(e.as(bob, bob, nil, look))
	e.ok(os.Chmod(e.at("d"), 0o700))
	e.want(e.as(bob, bob, nil, look), syscall.EACCES)
	e.want(e.as(bob, bob, nil, func() error { return os.WriteFile(e.at("new"), nil, 0o644) }), syscall.EACCES)
	e.want(e.as(bob, bob, nil, func() error { return os.Remove(path) }), syscall.EACCES)
	e.want(e.as(bob, bob, nil, func() error { return unix.Access(path, unix.R_OK) }), syscall.EACCES)
}

func groups(e *env) {
	path := e.at("f")
	e.write(path, "for staff")
	e.ok(os.Chmod(path, 0o060))
	e.ok(os.Chown(path, alice, staff))
	read := func() error { _, err := os.ReadFile(path); return err }
	e.ok(e.as(bob, bob, []int{17, staff}, read))
	e.want(e.as(bob, bob, []int{17}, read), syscall.EACCES)
	e.want(e.as(alice, alice, []int{staff}, read), syscall.EACCES)
}

func owners(e *env) {
	path := e.at("f")
	e.write(path, "x")
	e.ok(os.Chown(path, alice, alice))
	e.want(e.as(alice, alice, nil, func() error { return os.Chown(path, bob, -1) }), syscall.EPERM)
	e.want(e.as(alice, alice, nil, func() error { return os.Chown(path, -1, staff) }), syscall.EPERM)
	e.ok(e.as(alice, alice, []int{staff}, func() error { return os.Chown(path, -1, staff) }))
	e.want(e.as(bob, bob, nil, func() error { return os.Chmod(path, 0o777) }), syscall.EPERM)
	e.ok(e.as(alice, alice, nil, func() error { return os.Chmod(path, 0o604) }))
	st := e.stat(path)
	equal(e, st.Uid, alice)
	equal(e, st.Gid, staff)
	equal(e, st.Mode&0o7777, 0o604)
	e.ok(os.Symlink("f", e.at("s")))
	e.ok(os.Lchown(e.at("s"), bob, bob))
	equal(e, e.stat(e.at("s")).Uid, bob)
	equal(e, e.stat(path).Uid, alice)
}

func umask(e *env) {
	defer syscall.Umask(syscall.Umask(0o027))
	e.ok(os.Mkdir(e.at("d"), 0o777))
	f, err := os.OpenFile(e.at("f"), os.O_CREATE|os.O_WRONLY, 0o666)
	e.ok(err)
	f.Close()
	e.ok(unix.Mkfifo(e.at("p"), 0o666))
	equal(e, e.stat(e.at("d")).Mode&0o7777, 0o750)
	equal(e, e.stat(e.at("f")).Mode&0o7777, 0o640)
	equal(e, e.stat(e.at("p")).Mode&0o7777, 0o640)
}

func sticky(e *env) {
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.ok(os.Chmod(e.at("d"), 0o777|os.ModeSticky))
	e.write(e.at("d", "f"), "x")
	e.ok(os.Chown(e.at("d", "f"), alice, alice))
	e.want(e.as(bob, bob, nil, func() error { return unix.Unlink(e.at("d", "f")) }), syscall.EPERM)
	e.want(e.as(bob, bob, nil, func() error { return unix.Rename(e.at("d", "f"), e.at("d", "g")) }), syscall.EPERM)
	e.ok(e.as(alice, alice, nil, func() error { return unix.Unlink(e.at("d", "f")) }))
}

func setID(e *env) {
	path := e.at("f")
	reset := func() {
		e.Helper()
		e.ok(os.WriteFile(path, []byte("program"), 0o644))
		e.ok(os.Chown(path, alice, alice))
		e.ok(unix.Chmod(path, 0o6777))
		equal(e, e.stat(path).Mode&0o7777, 0o6777)
	}
	for _, each := range []struct {
		what   string
		change func() error
	}{
		{"write", func() error { return appendTo(path) }},
		{"truncate", func() error { return os.Truncate(path, 3) }},
		{"open with O_TRUNC", func() error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err == nil {
				f.Close()
			}
			return err
		}},
	} {
		reset()
		e.ok(e.as(bob, bob, nil, each.change))
		if mode := e.stat(path).Mode & 0o7777; mode != 0o777 {
			e.Fatalf("after %s by another user the mode is %o", each.what, mode)
		}
	}
	reset()
	e.ok(appendTo(path))
	equal(e, e.stat(path).Mode&0o7777, 0o6777)
	e.ok(os.Chown(path, bob, bob))
	equal(e, e.stat(path).Mode&0o7777, 0o777)
	// Set-gid without group execution is not a group to run as: it stays.
	e.ok(unix.Chmod(path, 0o2644))
	e.ok(os.Chown(path, alice, alice))
	equal(e, e.stat(path).Mode&0o7777, 0o2644)
	// An owner outside the file's group cannot set the bit.
	e.ok(os.Chown(path, alice, staff))
	e.ok(e.as(alice, alice, nil, func() error { return unix.Chmod(path, 0o2755) }))
	equal(e, e.stat(path).Mode&0o7777, 0o755)
}

// capability is a version 2 security.capability that grants net_raw.
var capability = []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

const capabilityName = "security.capability"

// privileges has another user change a file's content in each way there is, and
// looks at its set-id bits and capability while it is still open.
func privileges(e *env) {
	path := e.at("f")
	other := e.at("g")
	e.write(other, "other content")
	allocate := func(mode uint32) func(int) error {
		return func(fd int) error { return unix.Fallocate(fd, mode, 0, 4096) }
	}
	for _, each := range []struct {
		what   string
		flags  int
		change func(fd int) error
	}{
		{"a write", 0, func(fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 1); return err }},
		{"an append", unix.O_APPEND, func(fd int) error { _, err := unix.Write(fd, []byte("x")); return err }},
		{"a direct write", unix.O_DIRECT, func(fd int) error { _, err := unix.Pwrite(fd, aligned(4096), 0); return err }},
		{"a truncation", 0, func(fd int) error { return unix.Ftruncate(fd, 3) }},
		{"an allocation", 0, allocate(0)},
		{"an allocation beyond the end", 0, allocate(unix.FALLOC_FL_KEEP_SIZE)},
		{"a hole", 0, allocate(unix.FALLOC_FL_KEEP_SIZE | unix.FALLOC_FL_PUNCH_HOLE)},
		{"zeroes", 0, allocate(unix.FALLOC_FL_ZERO_RANGE)},
		{"a copied range", 0, func(fd int) error {
			from, err := unix.Open(other, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(from)
			_, err = unix.CopyFileRange(from, nil, fd, nil, 5, 0)
			return err
		}},
	} {
		e.ok(os.WriteFile(path, []byte("program"), 0o644))
		e.ok(os.Chown(path, alice, alice))
		e.ok(unix.Chmod(path, 0o6777))
		e.ok(unix.Setxattr(path, capabilityName, capability, 0))
		var st unix.Stat_t
		err := e.as(bob, bob, nil, func() error {
			fd, err := unix.Open(path, unix.O_RDWR|each.flags, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err = each.change(fd); err == nil {
				err = unix.Fstat(fd, &st)
			}
			return err
		})
		if err != nil {
			e.Errorf("%s: %v", each.what, err)
			continue
		}
		if mode := st.Mode & 0o7777; mode != 0o777 {
			e.Errorf("after %s by another user the mode is %o", each.what, mode)
		}
		if _, err := unix.Getxattr(path, capabilityName, make([]byte, 64)); !errors.Is(err, unix.ENODATA) {
			e.Errorf("after %s by another user the capability is there: %v", each.what, err)
		}
	}
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("!")
	return err
}

func setGIDDirectory(e *env) {
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.ok(os.Chown(e.at("d"), -1, staff))
	e.ok(unix.Chmod(e.at("d"), 0o2777))
	e.ok(e.as(alice, alice, nil, func() error {
		if err := os.WriteFile(e.at("d", "f"), nil, 0o644); err != nil {
			return err
		}
		return os.Mkdir(e.at("d", "sub"), 0o755)
	}))
	equal(e, e.stat(e.at("d", "f")).Gid, staff)
	sub := e.stat(e.at("d", "sub"))
	equal(e, sub.Gid, staff)
	equal(e, sub.Mode&0o7777, 0o2755)
}

// aclEntry is one line of an ACL: a tag, its permissions and its ID.
type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// Tags of POSIX ACLs, and the ID of those that have none.
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclMask     = 0x10
	aclOther    = 0x20
	aclNoID     = 0xffffffff
)

func aclValue(entries ...aclEntry) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, a := range entries {
		out = binary.LittleEndian.AppendUint16(out, a.tag)
		out = binary.LittleEndian.AppendUint16(out, a.perm)
		out = binary.LittleEndian.AppendUint32(out, a.id)
	}
	return out
}

// setACL skips the case where the mount has no ACLs.
func (e *env) setACL(path, name string, value []byte) {
	e.Helper()
	err := unix.Setxattr(path, name, value, 0)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		e.Skip("the mount does not offer POSIX ACLs")
	}
	e.ok(err)
}

func forBob(perm, mask uint16) []byte {
	return aclValue(aclEntry{aclUserObj, 7, aclNoID}, aclEntry{aclUser, perm, bob},
		aclEntry{aclGroupObj, 0, aclNoID}, aclEntry{aclMask, mask, aclNoID}, aclEntry{aclOther, 0, aclNoID})
}

func accessACL(e *env) {
	const name = "system.posix_acl_access"
	path := e.at("f")
	e.write(path, "for bob")
	e.ok(os.Chown(path, alice, alice))
	e.ok(os.Chmod(path, 0o600))
	read := func() error { _, err := os.ReadFile(path); return err }
	e.want(e.as(bob, bob, nil, read), syscall.EACCES)
	e.setACL(path, name, forBob(6, 7))
	equal(e, e.stat(path).Mode&0o777, 0o770)
	e.ok(e.as(bob, bob, nil, read))
	e.ok(e.as(bob, bob, nil, func() error { return appendTo(path) }))
	e.want(e.as(bob+1, bob+1, nil, read), syscall.EACCES)
	// The group bits of chmod are the mask.
	e.ok(os.Chmod(path, 0o740))
	e.ok(e.as(bob, bob, nil, read))
	e.want(e.as(bob, bob, nil, func() error { return appendTo(path) }), syscall.EACCES)
	buf := make([]byte, 200)
	n, err := unix.Getxattr(path, name, buf)
	e.ok(err)
	e.same(buf[:n], forBob(6, 4))
	e.want(e.as(bob, bob, nil, func() error { return unix.Setxattr(path, name, forBob(7, 7), 0) }), syscall.EPERM)
	e.ok(unix.Removexattr(path, name))
	e.want(e.as(bob, bob, nil, read), syscall.EACCES)
	// One that says no more than the mode is kept as the mode.
	e.setACL(path, name, aclValue(aclEntry{aclUserObj, 6, aclNoID}, aclEntry{aclGroupObj, 4, aclNoID}, aclEntry{aclOther, 4, aclNoID}))
	equal(e, e.stat(path).Mode&0o777, 0o644)
	_, err = unix.Getxattr(path, name, buf)
	e.want(err, syscall.ENODATA)
}

func defaultACL(e *env) {
	const name = "system.posix_acl_default"
	defer syscall.Umask(syscall.Umask(0o077))
	e.ok(os.Mkdir(e.at("d"), 0o755))
	e.ok(os.Chmod(e.at("d"), 0o755))
	e.setACL(e.at("d"), name, forBob(6, 7))
	equal(e, e.stat(e.at("d")).Mode&0o777, 0o755)
	f, err := os.OpenFile(e.at("d", "f"), os.O_CREATE|os.O_WRONLY, 0o664)
	e.ok(err)
	f.Close()
	// The default ACL takes the place of the umask.
	equal(e, e.stat(e.at("d", "f")).Mode&0o777, 0o660)
	e.ok(e.as(bob, bob, nil, func() error { return appendTo(e.at("d", "f")) }))
	e.ok(os.Mkdir(e.at("d", "sub"), 0o777))
	buf := make([]byte, 200)
	n, err := unix.Getxattr(e.at("d", "sub"), name, buf)
	e.ok(err)
	e.same(buf[:n], forBob(6, 7))
	e.want(unix.Setxattr(e.at("d", "f"), name, forBob(6, 7), 0), syscall.EACCES)
	e.ok(unix.Removexattr(e.at("d"), name))
	e.write(e.at("d", "g"), "x")
	equal(e, e.stat(e.at("d", "g")).Mode&0o777, 0o600)
}
