package holds

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Victim is what a name means that is about to be removed or replaced.
type Victim struct {
	Object ids.Object // 0: not known, or nothing
	// Expect is what the active is to check that the name means; 0: nothing.
	Expect ids.Object
	// IsOpen is whether the active is told that it is open here: also where it is
	// not known, because a file that is open must not go; a hold too many is given
	// back.
	IsOpen bool
	end    func()
}

// End is to be called when it is decided whether the victim is gone.
func (v *Victim) End() {
	if v.end != nil {
		v.end()
	}
}

// Victim returns what a name means, by a lease on its directory or else for all
// that shown says, which the active then checks; 0: nothing is said. Opens of the
// victim wait until End, unless it is open already.
func (r *Releaser) Victim(dir ids.Object, name string, shown ids.Object) (v Victim) {
	e, _, ok := r.opt.Names.Lookup(dir, name)
	if !ok {
		e.Object = shown
	}
	if e.Object == 0 {
		return Victim{IsOpen: !ok}
	}
	v.Object = e.Object
	if !ok {
		v.Expect = shown
	}
	v.IsOpen, v.end = r.opt.Nodes.BeginRemoval(e.Object)
	return v
}

// Removed hears that an object lost a name, and what its attributes are since; nil:
// it is gone. What is open here stays held at the active until it is closed. told
// says that the active heard that it is open.
func (r *Releaser) Removed(o ids.Object, a *pb.Attr, told bool) {
	if o == 0 {
		return
	}
	if a != nil && a.Nlink > 0 && a.Mode&mount.TypeMask != mount.TypeDir {
		return
	}
	if !told {
		r.opt.Names.Forget(o)
		return
	}
	l, isClosed := r.opt.Nodes.Unnamed(o)
	if !isClosed {
		return
	}
	r.opt.Names.Forget(o)
	r.Release(l)
}

// Replaced is Removed for what a rename replaced: how many names it still has, the
// answer does not say.
func (r *Releaser) Replaced(o ids.Object, told bool) {
	r.opt.Names.Forget(o)
	if told {
		r.Removed(o, nil, true)
	}
}
