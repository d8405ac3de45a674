// Package xattrs reads and changes extended attributes of objects, and answers the
// questions that a client answers itself, as extended attributes below
// user.cartwheel: where an object is, under which cues, in which version, and which
// nodes hold what was written last. Those are not listed, so that copies do not
// carry them on. The package knows objects, and no inodes.
package xattrs

import (
	"context"
	"slices"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/destination"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up a Service. None may be missing.
type Options struct {
	Calls       *calls.Sender
	Names       *names.Cache
	Router      *route.Router
	Cluster     *contact.Cluster
	Tickets     *tickets.Table
	Receipts    *receipts.Table
	Deferred    *deferred.Publisher
	Destination *destination.Chooser
	// Remotely returns the context for calls on behalf of one request.
	Remotely func(context.Context) (context.Context, context.CancelFunc)
}

// Service has the extended attributes. It has no state and is safe for use by many
// goroutines. Its methods may block until a node answers.
type Service struct{ opt Options }

// New returns a Service.
func New(o Options) *Service { return &Service{opt: o} }

// isACL reports whether an attribute is an access control list.
func isACL(name string) bool { return name == mount.AccessACL || name == mount.DefaultACL }

// Get returns an attribute's value, which must not be changed. It knows none of
// those that Own answers.
func (s *Service) Get(ctx context.Context, o ids.Object, name string) ([]byte, error) {
	var a *pb.Attr
	var err error
	if isACL(name) {
		a, err = s.opt.Calls.Attr(ctx, o)
	} else {
		a, err = s.opt.Calls.Xattrs(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return find(a, name)
}

func find(a *pb.Attr, name string) ([]byte, error) {
	if isACL(name) && !a.HasAcl {
		return nil, fault.E(fault.NoAttribute, "xattrs.Get", name, "")
	}
	for _, x := range a.Xattrs {
		if x.Name == name {
			return x.Value, nil
		}
	}
	return nil, fault.E(fault.NoAttribute, "xattrs.Get", name, "")
}

// Known is Get of attributes as they were known last, which have ACLs and no others.
func Known(a *pb.Attr, name string) ([]byte, error) {
	if isACL(name) || a.NoXattrs {
		return find(a, name)
	}
	return nil, fault.E(fault.TimedOut, "xattrs.Known", name, "no node answers that has the attribute")
}

// List returns the names of all attributes, sorted, each with a zero byte behind.
func (s *Service) List(ctx context.Context, o ids.Object) ([]byte, error) {
	a, err := s.opt.Calls.Xattrs(ctx, o)
	if err != nil {
		return nil, err
	}
	return joined(a), nil
}

// ListKnown is List of attributes as they were known last, which have ACLs and no others.
func ListKnown(a *pb.Attr) ([]byte, error) {
	if a.NoXattrs {
		return joined(a), nil
	}
	return nil, fault.E(fault.TimedOut, "xattrs.ListKnown", "", "no node answers that has the attributes")
}

// joined are the names of attributes, as listxattr gives them.
func joined(a *pb.Attr) []byte {
	list := make([]string, 0, len(a.Xattrs))
	for _, x := range a.Xattrs {
		list = append(list, x.Name)
	}
	slices.Sort(list)
	var out []byte
	for _, name := range slices.Compact(list) {
		out = append(append(out, name...), 0)
	}
	return out
}

// Set sets an attribute of an object that was reached under cues, or removes it.
func (s *Service) Set(ctx context.Context, who mount.Caller, o ids.Object, cues cue.Set, set *pb.SetXattr) error {
	set.Object = uint64(o)
	out, cancel := s.opt.Remotely(ctx)
	defer cancel()
	run := func(p *pb.Principal) error {
		_, err := s.opt.Calls.Change(out, o, calls.Operation{Principal: p, Level: cues.Only(cue.Chmod).Sync(),
			Op: &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: set}}})
		return err
	}
	p := calls.Principal(who)
	if isACL(set.Name) { // whether set-gid is cleared depends on the groups
		p = calls.WithGroups(who)
	}
	err := run(p)
	if err != nil && who.UID != 0 && len(p.Groups) == 0 && calls.IsDenied(err) {
		if p = calls.WithGroups(who); len(p.Groups) > 0 {
			err = run(p)
		}
	}
	return err
}

// CopyOut copies a value by the rule that an empty buf asks for the size.
func CopyOut(buf, value []byte, err error) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case len(buf) == 0:
		return len(value), nil
	case len(buf) < len(value):
		return len(value), fault.E(fault.TooSmall, "xattrs.CopyOut", "", "")
	}
	return copy(buf, value), nil
}
