package reading

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"google.golang.org/protobuf/proto"
)

// Bounds of what comes along with an answer of the names below a directory,
// however much is asked for.
const (
	maxBelowBytes = 256 << 10
	maxBelow      = 512 // entries
	// maxPassed bounds the names that are read to find directories among them,
	// maxPassedOne those of one directory.
	maxPassed    = 8192
	maxPassedOne = 1024
)

// below gathers names below a directory for who did not ask for them, so that
// they are known when they are asked for: the directories first, breadth-first,
// as those lead on, then the other names in what room is left. It stays in one
// slice, waits for nobody, and leaves out what the caller may not read and
// search, what another session is alone in, and what is about to change.
type below struct {
	s     *Server
	who   Asker
	p     *operate.Published
	view  tree.View
	bytes int // that are left
	left  int // entries
	pass  int // names that may still be read

	grants []*pb.Grant
	found  []*level
}

// level is one directory whose names are given.
type level struct {
	out   *pb.Names
	rest  []tree.NamedEntry // names that are not among the entries yet
	known bool              // every name was read
}

// below returns the names below a directory on whose names the caller has just
// got a lease, in about so many bytes, and the leases that cover them.
func (s *Server) below(who Asker, p *operate.Published, dir ids.Object, most int) ([]*pb.Names, []*pb.Grant) {
	if who.Session == 0 {
		return nil, nil // it could not keep them
	}
	b := &below{s: s, who: who, p: p, view: s.Committed(dir.Slice()), bytes: min(most, maxBelowBytes), left: maxBelow, pass: maxPassed}
	// Half of the room is for the files of what is found.
	files, bytes := b.left/2, b.bytes/2
	b.left, b.bytes = b.left-files, b.bytes-bytes
	b.open(dir)
	for i := 0; i < len(b.found) && b.left > 0 && b.bytes > 0; i++ {
		b.directories(b.found[i])
	}
	b.left, b.bytes = b.left+files, b.bytes+bytes
	out := make([]*pb.Names, 0, len(b.found))
	for _, l := range b.found {
		b.others(l)
		if l.out.Whole = l.known && len(l.rest) == 0; l.out.Whole || len(l.out.Entries) > 0 {
			out = append(out, l.out)
		}
	}
	return out, b.grants
}

// open reads a directory's names, as far as they may be given.
func (b *below) open(dir ids.Object) {
	if b.pass <= 0 {
		return
	}
	if _, err := tree.Directory(b.view, dir, &b.who.Principal, 4|1); err != nil {
		return
	}
	if held, err := tree.NamesLocked(b.view, dir); err != nil || held != 0 {
		return
	}
	names, more, err := tree.List(b.view, dir, nil, min(b.pass, maxPassedOne))
	if err != nil {
		return // whoever asks for them hears of it
	}
	b.pass -= len(names)
	b.found = append(b.found, &level{out: &pb.Names{Dir: uint64(dir)}, rest: names, known: !more})
}

// directories gives the directories among a level's names and opens them.
func (b *below) directories(l *level) {
	l.rest = slices.DeleteFunc(l.rest, func(n tree.NamedEntry) bool {
		dir := ids.Object(l.out.Dir)
		if n.Type != tree.TypeDir || n.Object.Slice() != dir.Slice() || b.left <= 0 || b.bytes <= 0 {
			return false
		}
		before := len(b.grants)
		b.grants = b.s.grant(b.grants, b.who, b.p, n.Object, pb.Grant_NAMES) // before it is read
		given := b.give(l, &n)
		if given && len(b.grants) > before {
			b.open(n.Object)
		}
		return given
	})
}

// others gives the rest of a level's names.
func (b *below) others(l *level) {
	l.rest = slices.DeleteFunc(l.rest, func(n tree.NamedEntry) bool {
		return b.left > 0 && b.bytes > 0 && b.give(l, &n)
	})
}

// give adds one name with its attributes; false where it cannot be read now.
func (b *below) give(l *level, n *tree.NamedEntry) bool {
	e, err := entry(b.view, ids.Object(l.out.Dir), n)
	if err != nil {
		return false
	}
	b.s.stampEntries(&b.who, []*pb.Entry{e})
	l.out.Entries = append(l.out.Entries, e)
	b.left--
	b.bytes -= proto.Size(e)
	return true
}
