package tree

import (
	"maps"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Merges lists the objects that the side changed, in waves. What is in directories that
// the side made comes in a later one than they do. So does what has a name of a file
// that was moved: that one is to have its new name first.
func (s *Side) Merges() ([][]ids.Object, error) {
	touched := map[ids.Object]struct{}{}
	for i := range s.over.list {
		if key := s.over.list[i].Key; key[0] == keyInode || key[0] == keyXattr {
			touched[objectOf(key)] = struct{}{}
		}
	}
	for o := range s.named {
		touched[o] = struct{}{}
	}
	of := order{side: s, merges: map[ids.Object]*pb.Merge{}, wave: map[ids.Object]int{}}
	for o := range touched {
		m, err := s.changed(o)
		if err != nil {
			return nil, err
		}
		if m != nil && (m.Attr != nil || !s.isReplaced(o)) {
			of.merges[o] = m
		}
	}
	waves := map[int][]ids.Object{}
	for _, o := range slices.Sorted(maps.Keys(of.merges)) {
		w := of.waveOf(o)
		waves[w] = append(waves[w], o)
	}
	var out [][]ids.Object
	for _, w := range slices.Sorted(maps.Keys(waves)) {
		out = append(out, waves[w])
	}
	return out, nil
}

// order says in which wave each merge of a side goes.
type order struct {
	side   *Side
	merges map[ids.Object]*pb.Merge
	wave   map[ids.Object]int
}

// waveOf is the wave of an object. Files that have each other's names wait for each
// other in a circle: the one that is looked at first goes first.
func (d order) waveOf(o ids.Object) int {
	if w, known := d.wave[o]; known {
		return w
	}
	d.wave[o] = 0
	m := d.merges[o]
	w := d.side.depth(m)
	for _, n := range m.Gained {
		before := []ids.Object{ids.Object(n.Dir)}
		if n.ReplacedLives {
			before = append(before, ids.Object(n.Replaced))
		}
		for _, b := range before {
			if first := d.merges[b]; first != nil && len(first.Gained) > 0 {
				w = max(w, d.waveOf(b)+1)
			}
		}
	}
	d.wave[o] = w
	return w
}

// isReplaced reports whether a name of an object was given to another one, which is not
// merged yet. What is gone comes behind that one, so that the name is never missing.
func (s *Side) isReplaced(o ids.Object) bool {
	for key := range s.named[o] {
		if was, is, err := s.entry([]byte(key)); err == nil && was.Object == o && is.Object != o && is.Object != 0 {
			return true
		}
	}
	return false
}

// behindAll is a wave behind those of all that is made, changed or moved.
const behindAll = 1 << 30

// depth orders merges: what is made or changed, by how many directories of the side's
// own lie above it; then what is gone, which may be directories of what is gone too.
func (s *Side) depth(m *pb.Merge) int {
	gone := 0
	if m.Attr == nil {
		gone = behindAll
	}
	all := append(slices.Clone(m.Gained), m.Lost...)
	if len(all) == 0 {
		return gone
	}
	d := 1
	for at := ids.Object(all[0].Dir); d < maxDepth; d++ {
		was, is, err := s.inodes(at)
		if err != nil || was != nil && gone == 0 || is == nil && was == nil {
			break
		}
		if is == nil {
			is = was
		}
		if at == is.Parent || is.Parent.Slice() != s.slice {
			break
		}
		at = is.Parent
	}
	if gone > 0 {
		return gone - d // children first
	}
	return d
}
