package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Types of objects, as in st_mode.
const (
	TypeMask    = 0o170000
	TypeSocket  = 0o140000
	TypeLink    = 0o120000
	TypeRegular = 0o100000
	TypeBlock   = 0o060000
	TypeDir     = 0o040000
	TypeChar    = 0o020000
	TypeFifo    = 0o010000

	setUID = 0o4000
	setGID = 0o2000
	sticky = 0o1000
)

// Inode is the record of an object. Its version counts up with the format.
type Inode struct {
	Object ids.Object // not stored: the key has it
	Mode   uint32     // type and permissions
	UID    uint32
	GID    uint32
	Nlink  uint32
	Rdev   uint32
	Size   uint64
	Stored uint64 // bytes of Size that are not in holes
	Atime  int64  // nanoseconds since 1970, as are the others
	Mtime  int64
	Ctime  int64
	Btime  int64
	// Version is the serial that last changed content, Change anything.
	Version, Change uint64
	// Parent is a directory's parent. Of another object it is the one
	// directory whose leases cover its attributes; 0 where there is none,
	// because it has several names or its name is in another slice.
	Parent ids.Object
	// Root is the manifest of a file's content; zero where the file is empty
	// or its bytes lie beside the record (Beside).
	Root   chunk.Address
	Height uint8
	Beside bool
	// Xattrs is the size of all extended attributes but the ACLs, which lie here.
	Xattrs     uint32
	ACL        []byte // system.posix_acl_access
	DefaultACL []byte // system.posix_acl_default
	Target     []byte // of a symbolic link
	Side       SideVersions
	// Sealed files are write-once ones whose content never changes again.
	Sealed bool
	Cues   *pb.Cues
}

// SideVersions are those by which content at the active and in side logs is compared.
type SideVersions struct {
	// Merged is the newest version that a side log's content had when it was merged
	// with the file's; 0: none was.
	Merged uint64
	// Began is the version of the active's that a side log's content began from. At the
	// active it is the version by which the content of Merged came, while that is the
	// file's. Else it is 0.
	Began uint64
}

// IsDir reports whether the object is a directory.
func (n *Inode) IsDir() bool { return n.Mode&TypeMask == TypeDir }

// IsRegular reports whether the object is a file with content.
func (n *Inode) IsRegular() bool { return n.Mode&TypeMask == TypeRegular }

// root returns the content as the chunk package names it.
func (n *Inode) root() chunk.Root {
	return chunk.Root{Address: n.Root, Height: n.Height, Size: n.Size, Stored: n.Stored}
}

const inodeVersion = 1

// Flags of what a record has besides what all have.
const (
	hasRdev = 1 << iota
	hasContent
	hasRoot
	hasBeside
	hasTarget
	hasACL
	hasDefaultACL
	hasXattrs
	hasCues
	hasParent
	isSealed
	hasSideVersion
	hasBegan
)

func (n *Inode) flags() uint64 {
	var f uint64
	set := func(on bool, bit uint64) {
		if on {
			f |= bit
		}
	}
	set(n.Rdev != 0, hasRdev)
	set(n.Size != 0 || n.Stored != 0, hasContent)
	set(!n.Root.IsZero(), hasRoot)
	set(n.Beside, hasBeside)
	set(len(n.Target) > 0, hasTarget)
	set(len(n.ACL) > 0, hasACL)
	set(len(n.DefaultACL) > 0, hasDefaultACL)
	set(n.Xattrs != 0, hasXattrs)
	set(n.Cues != nil, hasCues)
	set(n.Parent != 0, hasParent)
	set(n.Sealed, isSealed)
	set(n.Side.Merged != 0, hasSideVersion)
	set(n.Side.Began != 0, hasBegan)
	return f
}

// AppendInode encodes a record.
func AppendInode(dst []byte, n *Inode) []byte {
	f := n.flags()
	dst = append(dst, inodeVersion)
	for _, v := range [...]uint64{f, uint64(n.Mode), uint64(n.UID), uint64(n.GID), uint64(n.Nlink), n.Version, n.Change} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, t := range [...]int64{n.Atime, n.Mtime, n.Ctime, n.Btime} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t))
	}
	if f&hasParent != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n.Parent))
	}
	if f&hasRdev != 0 {
		dst = binary.AppendUvarint(dst, uint64(n.Rdev))
	}
	if f&hasContent != 0 {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, n.Size), n.Stored)
	}
	if f&hasRoot != 0 {
		dst = append(append(dst, n.Root[:]...), n.Height)
	}
	if f&hasXattrs != 0 {
		dst = binary.AppendUvarint(dst, uint64(n.Xattrs))
	}
	for i, b := range [...][]byte{n.Target, n.ACL, n.DefaultACL} {
		if f&(hasTarget<<i) != 0 {
			dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
		}
	}
	if f&hasCues != 0 {
		dst = appendCues(dst, n.Cues)
	}
	if f&hasSideVersion != 0 {
		dst = binary.AppendUvarint(dst, n.Side.Merged)
	}
	if f&hasBegan != 0 {
		dst = binary.AppendUvarint(dst, n.Side.Began)
	}
	return dst
}

// DecodeInode reads what AppendInode wrote. Byte fields share memory with data.
func DecodeInode(o ids.Object, data []byte) (*Inode, error) {
	const op fault.Op = "tree.DecodeInode"
	r := reader{data: data}
	if v := r.byte(); v != inodeVersion {
		return nil, newer(op, o.String(), v, inodeVersion)
	}
	f := r.uvarint()
	n := &Inode{Object: o, Mode: r.uint32(), UID: r.uint32(), GID: r.uint32(), Nlink: r.uint32(), Version: r.uvarint(), Change: r.uvarint()}
	n.Atime, n.Mtime, n.Ctime, n.Btime = r.time(), r.time(), r.time(), r.time()
	if f&hasParent != 0 {
		n.Parent = ids.Object(r.uint64())
	}
	if f&hasRdev != 0 {
		n.Rdev = r.uint32()
	}
	if f&hasContent != 0 {
		n.Size, n.Stored = r.uvarint(), r.uvarint()
	}
	if f&hasRoot != 0 {
		n.Root, n.Height = chunk.Address(r.take(chunk.AddressSize)), r.byte()
	}
	n.Beside, n.Sealed = f&hasBeside != 0, f&isSealed != 0
	if f&hasXattrs != 0 {
		n.Xattrs = r.uint32()
	}
	for i, b := range [...]*[]byte{&n.Target, &n.ACL, &n.DefaultACL} {
		if f&(hasTarget<<i) != 0 {
			*b = r.bytes()
		}
	}
	if f&hasCues != 0 {
		n.Cues = r.cues()
	}
	if f&hasSideVersion != 0 {
		n.Side.Merged = r.uvarint()
	}
	if f&hasBegan != 0 {
		n.Side.Began = r.uvarint()
	}
	if !r.done() {
		return nil, fault.E(fault.Corrupt, op, o.String(), "the record is malformed")
	}
	return n, nil
}

// Flags of cues.
const (
	cueKeepTogether = 1 << iota
	cueWriteOnce
	cueEventualMerge
)

func appendCues(dst []byte, c *pb.Cues) []byte {
	var f byte
	if c.KeepTogether {
		f |= cueKeepTogether
	}
	if c.WriteOnce {
		f |= cueWriteOnce
	}
	if c.EventualMerge {
		f |= cueEventualMerge
	}
	dst = append(dst, f)
	dst = append(binary.AppendUvarint(dst, uint64(len(c.Site))), c.Site...)
	dst = binary.AppendUvarint(dst, uint64(c.RepSites))
	dst = binary.AppendUvarint(dst, uint64(c.RepLevel))
	return binary.AppendVarint(dst, c.CoherenceNs)
}

func (r *reader) cues() *pb.Cues {
	f := r.byte()
	return &pb.Cues{
		KeepTogether: f&cueKeepTogether != 0, WriteOnce: f&cueWriteOnce != 0, EventualMerge: f&cueEventualMerge != 0,
		Site: string(r.bytes()), RepSites: r.uint32(), RepLevel: r.uint32(), CoherenceNs: r.varint(),
	}
}
