package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
)

// ACLs are kept as the kernel's extended attributes spell them: version 2 as
// 32 bits, then 8 bytes an entry: tag 16, permissions 16, ID 32, little endian.
const (
	aclVersion   = 2
	aclHeader    = 4
	aclEntrySize = 8
	maxACL       = aclHeader + 1024*aclEntrySize

	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

// The extended attributes that are ACLs.
const (
	XattrACL        = "system.posix_acl_access"
	XattrDefaultACL = "system.posix_acl_default"
)

// acl is an ACL in its stored form.
type acl []byte

func (a acl) count() int { return (len(a) - aclHeader) / aclEntrySize }

func (a acl) at(i int) (tag, perm uint16, id uint32) {
	e := a[aclHeader+i*aclEntrySize:]
	return binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:]), binary.LittleEndian.Uint32(e[4:])
}

func (a acl) setPerm(i int, perm uint16) {
	binary.LittleEndian.PutUint16(a[aclHeader+i*aclEntrySize+2:], perm)
}

// find returns the index of the first entry with a tag, or -1.
func (a acl) find(tag uint16) int {
	for i := range a.count() {
		if t, _, _ := a.at(i); t == tag {
			return i
		}
	}
	return -1
}

// parseACL checks an ACL: entries in order, the three obligatory ones once, a
// mask where users or groups are named. An empty one is nil.
func parseACL(value []byte) (acl, error) {
	if len(value) == 0 {
		return nil, nil
	}
	if len(value) < aclHeader || (len(value)-aclHeader)%aclEntrySize != 0 || binary.LittleEndian.Uint32(value) != aclVersion {
		return nil, refusal(fault.Invalid)
	}
	if len(value) > maxACL {
		return nil, refusal(fault.NoSpace)
	}
	a := acl(value)
	if a.count() == 0 {
		return nil, nil
	}
	var last uint16
	var once uint16
	named := false
	for i := range a.count() {
		tag, perm, _ := a.at(i)
		if perm > 7 || tag < last {
			return nil, refusal(fault.Invalid)
		}
		switch tag {
		case aclUser, aclGroup:
			named = true
		case aclUserObj, aclGroupObj, aclMask, aclOther:
			if once&tag != 0 {
				return nil, refusal(fault.Invalid)
			}
		default:
			return nil, refusal(fault.Invalid)
		}
		once |= tag
		last = tag
	}
	const must = aclUserObj | aclGroupObj | aclOther
	if once&must != must || (named && once&aclMask == 0) {
		return nil, refusal(fault.Invalid)
	}
	return a, nil
}

// mode returns the nine bits that the ACL stands for.
func (a acl) mode() uint32 {
	var m uint32
	masked := a.find(aclMask) >= 0
	for i := range a.count() {
		tag, perm, _ := a.at(i)
		switch tag {
		case aclUserObj:
			m |= uint32(perm) << 6
		case aclGroupObj:
			if !masked {
				m |= uint32(perm) << 3
			}
		case aclMask:
			m |= uint32(perm) << 3
		case aclOther:
			m |= uint32(perm)
		}
	}
	return m
}

// minimal reports whether mode bits say all that the ACL says.
func (a acl) minimal() bool { return a.count() == 3 }

// chmod returns the ACL with the nine bits of mode put in.
func (a acl) chmod(mode uint32) acl {
	out := append(acl(nil), a...)
	out.setPerm(out.find(aclUserObj), uint16(mode>>6&7))
	group := out.find(aclMask)
	if group < 0 {
		group = out.find(aclGroupObj)
	}
	out.setPerm(group, uint16(mode>>3&7))
	out.setPerm(out.find(aclOther), uint16(mode&7))
	return out
}

// inherit gives a new object's access ACL from its directory's default ACL and
// the mode asked for, and the mode that results; the ACL is nil where the mode
// says it all.
func (a acl) inherit(mode uint32) (acl, uint32) {
	out := append(acl(nil), a...)
	limit := func(tag uint16, shift uint) uint32 {
		i := out.find(tag)
		_, perm, _ := out.at(i)
		perm &= uint16(mode >> shift & 7)
		out.setPerm(i, perm)
		return uint32(perm) << shift
	}
	bits := limit(aclUserObj, 6)
	if out.find(aclMask) >= 0 {
		bits |= limit(aclMask, 3)
	} else {
		bits |= limit(aclGroupObj, 3)
	}
	bits |= limit(aclOther, 0)
	mode = mode&^0o777 | bits
	if out.minimal() {
		return nil, mode
	}
	return out, mode
}

// allows answers whether the ACL gives a principal the permissions wanted.
func (a acl) allows(p *Principal, uid, gid uint32, want uint32) bool {
	mask := uint32(7)
	if i := a.find(aclMask); i >= 0 {
		_, perm, _ := a.at(i)
		mask = uint32(perm)
	}
	member := false
	for i := range a.count() {
		tag, perm, id := a.at(i)
		granted := uint32(perm)
		switch tag {
		case aclUserObj:
			if p.UID == uid {
				return granted&want == want
			}
		case aclUser:
			if p.UID == id {
				return granted&mask&want == want
			}
		case aclGroupObj, aclGroup:
			if tag == aclGroupObj {
				id = gid
			}
			if p.in(id) {
				member = true
				if granted&mask&want == want {
					return true
				}
			}
		case aclOther:
			return !member && granted&want == want
		}
	}
	return false
}
