package reading

import (
	"context"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
)

func TestReached_WantsAWayToTheObject(t *testing.T) {
	b := newBench(t)
	open := b.mkdir(ids.RootObject, "open", 0o711, ann)
	shut := b.mkdir(open, "shut", 0o700, ann)
	in, under := b.file(open, "in", 0o600, ann, ""), b.mkdir(shut, "under", 0o777, ann)
	file := b.file(under, "file", 0o666, ann, "")
	away := b.apart(under, "away", otherSlice, tree.TypeDir|0o777, ann)
	awayIn := b.apart(open, "awayin", otherSlice, tree.TypeDir|0o777, ann)
	below := b.mkdir(awayIn, "below", 0o700, ann)
	b.hold(file, asBob().Client)
	another := asBob()
	another.Client++
	valid := func(who Asker, o ids.Object) []byte { return b.Tickets.Reached(*who.Holder, o, 0, 0) }
	for what, c := range map[string]struct {
		who    Asker
		object ids.Object
		ticket []byte
		want   fault.Kind
	}{
		"a node":                               {node(), under, nil, fault.None},
		"the root":                             {asBob(), ids.RootObject, nil, fault.None},
		"a ticket":                             {asBob(), under, valid(asBob(), under), fault.None},
		"a ticket of another object":           {asBob(), under, valid(asBob(), in), fault.Permission},
		"a ticket of another user":             {asBob(), under, valid(asAnn(), under), fault.Permission},
		"no ticket, a way to search":           {asBob(), shut, nil, fault.None},
		"no ticket, no way to search":          {asBob(), under, nil, fault.Permission},
		"no ticket, the owner of the way":      {asAnn(), under, nil, fault.None},
		"a file that the client has open":      {asBob(), file, nil, fault.None},
		"a file that another client has open":  {another, file, nil, fault.Permission},
		"a private file, a way to search":      {asBob(), in, nil, fault.None},
		"what is not there":                    {asBob(), ids.NewObject(rootSlice, 99), nil, fault.Stale},
		"at another node, under a way":         {asBob(), awayIn, nil, fault.None},
		"at another node, under one no way":    {asBob(), away, nil, fault.Permission},
		"at another node, in its directories":  {asBob(), below, nil, fault.None},
		"at another node that does not answer": {asBob(), ids.NewObject(99, 1), nil, fault.Unreachable},
	} {
		b.fails(what, b.Reached(t.Context(), &c.who, c.object, c.ticket), c.want)
	}
	who := asBob()
	if !b.HasReached(&who, ids.RootObject, nil) || b.HasReached(&who, shut, nil) {
		t.Error("without a walk, a user has reached the root, and nothing else")
	}
	late := valid(asBob(), under)
	b.wall.Add(int64(ticket.Life))
	b.fails("a ticket that has ended", b.Reached(t.Context(), &who, under, late), fault.Permission)
}

func TestReached_EndsInALoopOfDirectories(t *testing.T) {
	b := newBench(t)
	dir := func(o, parent uint64) *pb.Attr {
		return &pb.Attr{Object: o, Parent: parent, Mode: tree.TypeDir | 0o777}
	}
	for what, c := range map[string]map[uint64]*pb.Attr{
		"two directories in each other": {1: dir(1, 2), 2: dir(2, 1)},
		"a directory in itself":         {1: dir(1, 1)},
		"a directory in none":           {1: dir(1, 0)},
	} {
		asked := 0
		b.Elsewhere = func(_ context.Context, o ids.Object, _ hlc.Time) (*pb.Attr, error) {
			if asked++; asked > 2*maxDepth {
				return nil, fault.E(fault.Loop, "test.Elsewhere", o.String(), "the walk does not end")
			}
			return c[o.Number()], nil
		}
		who := asBob()
		b.fails(what, b.Reached(t.Context(), &who, ids.NewObject(otherSlice, 1), nil), fault.Permission)
	}
}

func TestMayMake_WantsADirectoryToAddTo(t *testing.T) {
	b := newBench(t)
	own, open := b.mkdir(ids.RootObject, "own", 0o755, ann), b.mkdir(ids.RootObject, "open", 0o777, ann)
	write := b.mkdir(ids.RootObject, "write", 0o722, ann) // to write, and not to search
	gid := b.mkdir(ids.RootObject, "gid", 0o777|setGID, root)
	shut := b.mkdir(ids.RootObject, "shut", 0o700, ann)
	under := b.mkdir(shut, "under", 0o777, ann)
	file := b.file(ids.RootObject, "file", 0o777, ann, "")
	for what, c := range map[string]struct {
		who   Asker
		apart *pb.MakeObject
		want  fault.Kind
	}{
		"the user's own":             {asAnn(), &pb.MakeObject{Parent: uint64(own)}, fault.None},
		"another's":                  {asBob(), &pb.MakeObject{Parent: uint64(own)}, fault.Permission},
		"one for everyone":           {asBob(), &pb.MakeObject{Parent: uint64(open)}, fault.None},
		"one without a way in":       {asBob(), &pb.MakeObject{Parent: uint64(write)}, fault.Permission},
		"one under a shut one":       {asBob(), &pb.MakeObject{Parent: uint64(under)}, fault.Permission},
		"a file":                     {asBob(), &pb.MakeObject{Parent: uint64(file)}, fault.Permission},
		"nothing":                    {asBob(), &pb.MakeObject{Parent: uint64(ids.NewObject(rootSlice, 99))}, fault.Stale},
		"nothing, for a node":        {node(), &pb.MakeObject{Parent: uint64(ids.NewObject(rootSlice, 99))}, fault.Stale},
		"with the user's group":      {asBob(), &pb.MakeObject{Parent: uint64(open), UseGid: true, Gid: bob.GID}, fault.None},
		"with another group":         {asBob(), &pb.MakeObject{Parent: uint64(open), UseGid: true, Gid: ann.GID}, fault.Permission},
		"with the directory's group": {asBob(), &pb.MakeObject{Parent: uint64(gid), UseGid: true, Gid: root.GID}, fault.None},
		"with a group it hands not":  {asBob(), &pb.MakeObject{Parent: uint64(gid), UseGid: true, Gid: ann.GID}, fault.Permission},
		"with a group that is unset": {asBob(), &pb.MakeObject{Parent: uint64(open), Gid: ann.GID}, fault.None},
	} {
		b.fails(what, b.MayMake(t.Context(), &c.who, c.apart), c.want)
	}
}

// shown is a file's or directory's attributes with all that may be withheld.
func shown(mode uint32) *pb.Attr {
	a := &pb.Attr{Object: uint64(ids.NewObject(rootSlice, 20)), Mode: mode, Uid: ann.UID, Gid: ann.GID,
		Xattrs: []*pb.Xattr{{Name: "user.note"}, {Name: "security.label"}}}
	if mode&tree.TypeMask == tree.TypeRegular {
		a.Content = &pb.Content{Inline: []byte("content")}
	}
	return a
}

// visible tells what is left of shown's secrets.
func visible(a *pb.Attr) string {
	var out []string
	for _, x := range a.Xattrs {
		out = append(out, x.Name)
	}
	switch c := a.Content; {
	case c == nil:
	case c.Withheld && c.Inline == nil:
		out = append(out, "withheld")
	default:
		out = append(out, string(c.Inline))
	}
	return strings.Join(out, " ")
}

func TestStamp_WithholdsWhatMayNotBeRead(t *testing.T) {
	b := newBench(t)
	const all, none = "user.note security.label content", "security.label withheld"
	version := chunk.Sum([]byte("a version"))
	for what, c := range map[string]struct {
		who   Asker
		mode  uint32
		could chunk.Address
		want  string
	}{
		"a file for all":                  {asBob(), tree.TypeRegular | 0o644, chunk.Address{}, all},
		"a private file":                  {asBob(), tree.TypeRegular | 0o600, chunk.Address{}, none},
		"one whose version it could read": {asBob(), tree.TypeRegular | 0o600, version, all},
		"one to execute":                  {asBob(), tree.TypeRegular | 0o611, chunk.Address{}, all},
		"one to write":                    {asBob(), tree.TypeRegular | 0o622, chunk.Address{}, none},
		"its owner's":                     {asAnn(), tree.TypeRegular, chunk.Address{}, all},
		"a directory for all":             {asBob(), tree.TypeDir | 0o755, chunk.Address{}, "user.note security.label"},
		"a directory to search":           {asBob(), tree.TypeDir | 0o711, chunk.Address{}, "security.label"},
		"a node":                          {node(), tree.TypeRegular | 0o600, chunk.Address{}, all},
	} {
		a := shown(c.mode)
		b.Stamp(&c.who, a, c.could)
		if got := visible(a); got != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	who := asBob()
	b.Stamp(&who, nil, chunk.Address{}) // what is not there needs no ticket
}

func TestStamp_SealsWhatTheUserMayDo(t *testing.T) {
	b := newBench(t)
	for what, c := range map[string]struct {
		mode   uint32
		rights ticket.Rights
		gid    uint32
	}{
		"a file to write":                  {tree.TypeRegular | 0o666, 0, 0},
		"a directory to read":              {tree.TypeDir | 0o755, 0, 0},
		"a directory to write alone":       {tree.TypeDir | 0o722, 0, 0},
		"a directory to add to":            {tree.TypeDir | 0o777, ticket.MayAdd, 0},
		"a directory that hands its group": {tree.TypeDir | 0o755 | setGID, ticket.Inherits, ann.GID},
		"one that does both":               {tree.TypeDir | 0o777 | setGID, ticket.MayAdd | ticket.Inherits, ann.GID},
	} {
		who, a := asBob(), shown(c.mode)
		b.Stamp(&who, a, chunk.Address{})
		rights, gid, ok := b.Tickets.OpenReached(a.Ticket, *who.Holder, ids.Object(a.Object))
		if !ok || rights != c.rights || gid != c.gid {
			t.Errorf("%s: got rights %v with group %d, %v, want %v with %d", what, rights, gid, ok, c.rights, c.gid)
		}
	}
}

func TestStamp_SealsVersionsThatMayBeRead(t *testing.T) {
	b := newBench(t)
	version := chunk.Sum([]byte("a version"))
	for _, readable := range []bool{true, false} {
		who, a := asBob(), shown(tree.TypeRegular|0o600)
		if readable {
			a.Mode |= 0o044
		}
		a.Content = &pb.Content{Root: version[:]}
		b.Stamp(&who, a, chunk.Address{})
		if got := b.Tickets.OpenReadable(a.Content.Ticket, *who.Holder, ids.Object(a.Object), version); got != readable {
			t.Errorf("readable: %v, the ticket opens: %v", readable, got)
		}
	}
}

func TestWithhold_KeepsFromWhomAHostNames(t *testing.T) {
	const all, none = "user.note security.label content", "security.label withheld"
	for what, c := range map[string]struct {
		who  Asker
		mode uint32
		want string
	}{
		"a private file":         {Asker{Principal: bob, Trusted: true, Named: true}, 0o600, none},
		"a file for all":         {Asker{Principal: bob, Trusted: true, Named: true}, 0o644, all},
		"the host itself":        {Asker{Principal: bob, Trusted: true}, 0o600, all},
		"a private file's owner": {Asker{Principal: ann, Trusted: true, Named: true}, 0o600, all},
	} {
		a := shown(tree.TypeRegular | c.mode)
		withhold(&c.who, a)
		if got := visible(a); got != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}

func TestName_SealsOnlyForUsers(t *testing.T) {
	b := newBench(t)
	who, o := asBob(), ids.NewObject(otherSlice, 7)
	if !b.HasReached(&who, o, b.Name(&who, o)) {
		t.Error("a user's ticket does not open")
	}
	host := node()
	if b.Name(&host, o) != nil || b.Name(&who, 0) != nil {
		t.Error("a ticket was sealed for a node, or for no object")
	}
	before := b.Name(&who, o)
	b.wall.Add(int64(time.Second))
	if now := b.Name(&who, o); len(now) != len(before) || string(now) == string(before) {
		t.Error("a later ticket ends when an earlier one does")
	}
}
