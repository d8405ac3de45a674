package chunk

import (
	"errors"

	"cartwheel.dev/geo-config/fault"
)

// errStop ends a walk early; it never leaves the package.
var errStop = errors.New("stop")

// Lookup calls fn with the extents that hold [offset, offset+length) of the
// file, in order, clipped to that range and to the file's end. It stops early
// where fn returns false. Only the nodes above the range are read.
func Lookup(r Reader, root Root, offset, length uint64, fn func(Extent) bool) error {
	const op fault.Op = "chunk.Lookup"
	if offset >= root.Size || length == 0 {
		return nil
	}
	w := walker{reader: r, from: offset, to: offset + min(length, root.Size-offset), fn: fn}
	err := w.walk(root.Address, int(root.Height), 0, root.Size)
	if errors.Is(err, errStop) {
		return nil
	}
	return fault.Wrap(fault.Corrupt, op, root.Address.String(), err)
}

// Extents returns what Lookup finds, at most limit extents where limit is
// above 0; the caller goes on behind the last one.
func Extents(r Reader, root Root, offset, length uint64, limit int) ([]Extent, error) {
	var out []Extent
	err := Lookup(r, root, offset, length, func(e Extent) bool {
		out = append(out, e)
		return limit <= 0 || len(out) < limit
	})
	return out, err
}

type walker struct {
	reader   Reader
	from, to uint64
	fn       func(Extent) bool
}

// walk goes through the node at the given height that holds length bytes of
// the file from base on.
func (w *walker) walk(a Address, height int, base, length uint64) error {
	const op fault.Op = "chunk.walk"
	data, err := w.reader.Node(a)
	if err != nil {
		return err
	}
	if height == 0 {
		return w.leaf(a, data, base, length)
	}
	d := decoder{data: data}
	at := base
	for range d.header(innerKind, AddressSize+2) {
		k := d.ref(at - base)
		if d.bad || at >= w.to || at+k.length > base+length {
			break
		}
		if at+k.length > w.from {
			if err := w.walk(k.address, height-1, at, k.length); err != nil {
				return err
			}
		}
		at += k.length
	}
	if at < min(w.to, base+length) {
		return fault.E(fault.Corrupt, op, a.String(), "a manifest node is malformed or shorter than its parent says")
	}
	return nil
}

// leaf gives the extents of a leaf that lie in the range to fn. It decodes no
// further than it must: a store proves nodes by their address.
func (w *walker) leaf(a Address, data []byte, base, length uint64) error {
	const op fault.Op = "chunk.leaf"
	d := decoder{data: data}
	at := base
	for range d.header(leafKind, 3) {
		e := d.extent(at)
		if d.bad || at >= w.to || e.End() > base+length {
			break
		}
		at = e.End()
		if at <= w.from {
			continue
		}
		if e = e.Clip(w.from, w.to); !w.fn(e) {
			return errStop
		}
	}
	if at < min(w.to, base+length) {
		return fault.E(fault.Corrupt, op, a.String(), "a manifest leaf is malformed or shorter than its parent says")
	}
	return nil
}

// Walk visits everything that a version holds on to: each manifest node and,
// below its leaves, each chunk. Where visit returns false for a node, what is
// below it is skipped, so that a caller that knows a subtree need not read it.
func Walk(r Reader, root Root, visit func(a Address, isNode bool) bool) error {
	const op fault.Op = "chunk.Walk"
	if root.Size == 0 {
		return nil
	}
	return fault.Wrap(fault.Corrupt, op, root.Address.String(), visitNode(r, root.Address, int(root.Height), visit))
}

func visitNode(r Reader, a Address, height int, visit func(Address, bool) bool) error {
	const op fault.Op = "chunk.visitNode"
	if !visit(a, true) {
		return nil
	}
	data, err := r.Node(a)
	if err != nil {
		return err
	}
	if height > 0 {
		kids, err := decodeInner(nil, data)
		if err != nil {
			return err
		}
		for i := range kids {
			if err := visitNode(r, kids[i].address, height-1, visit); err != nil {
				return err
			}
		}
		return nil
	}
	if len(data) > 0 && data[0] != leafKind {
		return fault.E(fault.Corrupt, op, a.String(), "a manifest is higher than its root says")
	}
	return Refs(data, func(c Address, _ bool) { visit(c, false) })
}
