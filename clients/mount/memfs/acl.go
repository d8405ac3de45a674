package memfs

import (
	"encoding/binary"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// acl is a POSIX ACL as Linux carries it: version 2, then entries of tag,
// permissions and ID, all little endian, sorted by tag and ID.
type acl []aclEntry

type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// The tags, in the order that a valid ACL has them.
const (
	tagUserObj  = 0x01
	tagUser     = 0x02
	tagGroupObj = 0x04
	tagGroup    = 0x08
	tagMask     = 0x10
	tagOther    = 0x20
)

const (
	aclVersion   = 2
	aclEntrySize = 8
	noID         = ^uint32(0)
)

func parseACL(value []byte) (acl, error) {
	const op fault.Op = "memfs.parseACL"
	if len(value) < 4 || (len(value)-4)%aclEntrySize != 0 || binary.LittleEndian.Uint32(value) != aclVersion {
		return nil, fault.E(fault.Invalid, op, "", "")
	}
	a := make(acl, 0, (len(value)-4)/aclEntrySize)
	for rest := value[4:]; len(rest) > 0; rest = rest[aclEntrySize:] {
		a = append(a, aclEntry{
			tag: binary.LittleEndian.Uint16(rest), perm: binary.LittleEndian.Uint16(rest[2:]),
			id: binary.LittleEndian.Uint32(rest[4:]),
		})
	}
	if !a.valid() {
		return nil, fault.E(fault.Invalid, op, "", "")
	}
	return a, nil
}

func (a acl) encode() []byte {
	out := make([]byte, 4, 4+len(a)*aclEntrySize)
	binary.LittleEndian.PutUint32(out, aclVersion)
	for _, e := range a {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.perm)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}
	return out
}

// valid checks the order, that the three basic entries are there once each,
// and that named entries come with a mask.
func (a acl) valid() bool {
	seen, named := map[uint16]int{}, false
	last := aclEntry{}
	for n, e := range a {
		if e.perm > 7 || n > 0 && e.tag < last.tag {
			return false
		}
		switch e.tag {
		case tagUser, tagGroup:
			named = true
		case tagUserObj, tagGroupObj, tagMask, tagOther:
		default:
			return false
		}
		seen[e.tag]++
		last = e
	}
	return seen[tagUserObj] == 1 && seen[tagGroupObj] == 1 && seen[tagOther] == 1 &&
		seen[tagMask] <= 1 && (!named || seen[tagMask] == 1)
}

// perm finds the permissions of the entry of a basic tag.
func (a acl) perm(tag uint16) (*uint16, bool) {
	for n := range a {
		if a[n].tag == tag {
			return &a[n].perm, true
		}
	}
	return nil, false
}

// groupClass is what the group bits of the mode stand for: the mask, or the
// owning group where there is none.
func (a acl) groupClass() *uint16 {
	if p, ok := a.perm(tagMask); ok {
		return p
	}
	p, _ := a.perm(tagGroupObj)
	return p
}

// mode answers the nine permission bits that show the ACL.
func (a acl) mode() uint32 {
	user, _ := a.perm(tagUserObj)
	other, _ := a.perm(tagOther)
	return uint32(*user)<<6 | uint32(*a.groupClass())<<3 | uint32(*other)
}

// chmod brings the ACL in line with new mode bits.
func (a acl) chmod(mode uint32) {
	user, _ := a.perm(tagUserObj)
	other, _ := a.perm(tagOther)
	*user, *a.groupClass(), *other = uint16(mode>>6&7), uint16(mode>>3&7), uint16(mode&7)
}

// inherit makes, from a directory's default ACL, the ACL of a new object that
// was asked for with mode.
func (a acl) inherit(mode uint32) acl {
	made := append(acl(nil), a...)
	user, _ := made.perm(tagUserObj)
	other, _ := made.perm(tagOther)
	group := made.groupClass()
	*user &= uint16(mode >> 6 & 7)
	*group &= uint16(mode >> 3 & 7)
	*other &= uint16(mode & 7)
	return made
}

// plain reports whether mode bits alone can say the same.
func (a acl) plain() bool { return len(a) == 3 }

// allows decides as acl(5) does.
func (a acl) allows(who *identity, owner, group uint32, want uint16) bool {
	mask := uint16(7)
	if p, ok := a.perm(tagMask); ok {
		mask = *p
	}
	inGroup := false
	for _, e := range a {
		switch e.tag {
		case tagUserObj:
			if who.caller.UID == owner {
				return e.perm&want == want
			}
		case tagUser:
			if who.caller.UID == e.id {
				return e.perm&mask&want == want
			}
		case tagGroupObj, tagGroup:
			id := e.id
			if e.tag == tagGroupObj {
				id = group
			}
			if !who.in(id) {
				continue
			}
			if e.perm&mask&want == want {
				return true
			}
			inGroup = true
		case tagOther:
			return !inGroup && e.perm&want == want
		}
	}
	return false
}

func isACL(name string) bool { return name == mount.AccessACL || name == mount.DefaultACL }
