package calls

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// Principal is the user as whom a request acts, without supplementary groups. These
// cost a look into the process table, so that they go along only where the answer
// may depend on them.
func Principal(c mount.Caller) *pb.Principal { return &pb.Principal{Uid: c.UID, Gid: c.GID} }

// WithGroups is Principal with supplementary groups.
func WithGroups(c mount.Caller) *pb.Principal {
	p := Principal(c)
	if c.UID != 0 {
		p.Groups = mount.Groups(c)
	}
	return p
}

// IsDenied reports whether a refusal may be for want of groups.
func IsDenied(err error) bool {
	k := fault.KindOf(err)
	return k == fault.Permission || k == fault.NotOwner
}

// AsCaller runs fn with the caller's principal, and once more with its groups
// where it was refused without them. A refusal changed nothing, so that the
// second run is an operation of its own.
func AsCaller(c mount.Caller, fn func(p *pb.Principal) error) error {
	err := fn(Principal(c))
	if err == nil || c.UID == 0 || !IsDenied(err) {
		return err
	}
	p := WithGroups(c)
	if len(p.Groups) == 0 {
		return err
	}
	return fn(p)
}
