package reading

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// path is a list of names: a/b.
func path(text string) [][]byte {
	var out [][]byte
	for _, name := range strings.Split(text, "/") {
		out = append(out, []byte(name))
	}
	return out
}

// walked tells the steps of a walk: the object's number, or why there is none.
func walked(out *pb.ResolveResponse, numbers map[uint64]string) string {
	var steps []string
	for _, s := range out.Steps {
		text := numbers[s.Object]
		switch {
		case s.Kind != 0:
			text = fault.Kind(s.Kind).String()
		case s.Attr == nil:
			text += " elsewhere"
		case s.Attr.Object != s.Object || s.Attr.Mode&tree.TypeMask != s.TypeMode:
			text += " with another's attributes"
		}
		steps = append(steps, text)
	}
	return strings.Join(steps, ", ")
}

// granted tells the leases of an answer.
func granted(grants []*pb.Grant, numbers map[uint64]string) []string {
	var out []string
	for _, g := range grants {
		out = append(out, fmt.Sprint(g.What, " ", numbers[g.Object]))
	}
	return out
}

// plant is the tree that walks are tested on.
func (b *bench) plant() map[uint64]string {
	b.Helper()
	d := b.mkdir(ids.RootObject, "d", 0o755, ann)
	names := map[uint64]string{uint64(ids.RootObject): "root", uint64(d): "d"}
	note := func(o ids.Object, name string) ids.Object {
		names[uint64(o)] = name
		return o
	}
	note(b.file(d, "f", 0o644, ann, "hello"), "f")
	note(b.create(d, "link", tree.TypeLink|0o777, ann), "link")
	shut := note(b.mkdir(d, "shut", 0o700, ann), "shut")
	note(b.file(shut, "s", 0o644, ann, "secret"), "s")
	near := note(b.apart(d, "near", nearSlice, tree.TypeDir|0o755, ann), "near")
	note(b.file(near, "n", 0o644, ann, "near by"), "n")
	note(b.apart(d, "nearfile", nearSlice, tree.TypeRegular|0o644, ann), "nearfile")
	note(b.apart(d, "away", otherSlice, tree.TypeDir|0o755, ann), "away")
	return names
}

func TestResolve_WalksAsFarAsItCan(t *testing.T) {
	b := newBench(t)
	names := b.plant()
	for _, c := range []struct {
		path, want string
		who        Asker
	}{
		{"d/f", "d, f", node()},
		{"d/nothing", "d, not found", node()},
		{"d/nothing/more", "d, not found", node()},
		{"d/f/more", "d, f, not a directory", node()},
		{"d/link", "d, link", node()},
		{"d/link/more", "d, link", node()}, // the caller follows it
		{"d/" + strings.Repeat("x", tree.MaxName+1), "d, name too long", node()},
		{"d/near/n", "d, near, n", node()},
		{"d/nearfile", "d, nearfile", node()},
		{"d/away", "d, away elsewhere", node()},
		{"d/away/more", "d, away elsewhere", node()},
		{"d/shut/s", "d, shut, s", node()},
		{"d/shut", "d, shut", asBob()},
		{"d/shut/s", "d, shut, permission denied", asBob()},
	} {
		out, err := b.Resolve(t.Context(), c.who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path(c.path)})
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if got := walked(out, names); got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
		if ids.Object(out.Dir.Object) != ids.RootObject || out.Hlc == 0 {
			t.Errorf("%s: got the directory %v at %d", c.path, out.Dir, out.Hlc)
		}
	}
}

func TestResolve_FailsAtTheFirstDirectory(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, ann, "hello")
	shut := b.mkdir(ids.RootObject, "shut", 0o700, ann)
	none := ids.NewObject(rootSlice, 99)
	for what, c := range map[string]struct {
		dir  ids.Object
		who  Asker
		want fault.Kind
	}{
		"a file":                 {f, node(), fault.NotDirectory},
		"nothing":                {none, node(), fault.Stale},
		"one not to be searched": {shut, asBob(), fault.Permission},
		"one of its owner's":     {shut, asAnn(), fault.None},
	} {
		_, err := b.Resolve(t.Context(), c.who, &pb.ResolveRequest{Dir: uint64(c.dir), Names: path("x")})
		b.fails(what, err, c.want)
	}
}

func TestResolve_BoundsTheNames(t *testing.T) {
	b := newBench(t)
	for n, want := range map[int]fault.Kind{0: fault.None, maxNames: fault.None, maxNames + 1: fault.TooLarge} {
		names := make([][]byte, n)
		for i := range names {
			names[i] = []byte("x")
		}
		_, err := b.Resolve(t.Context(), node(), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: names})
		b.fails(fmt.Sprint(n, " names"), err, want)
	}
}

func TestResolve_BringsContentOfTheLastAlone(t *testing.T) {
	b := newBench(t)
	b.file(b.mkdir(ids.RootObject, "d", 0o755, root), "f", 0o644, root, "hello")
	for _, c := range []struct {
		path    string
		content bool
		want    string
	}{{"d/f", true, "hello"}, {"d/f", false, ""}, {"d/f/more", true, ""}} {
		out, err := b.Resolve(t.Context(), node(), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path(c.path), Content: c.content})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(out.Steps[1].Attr.Content.GetInline()); got != c.want {
			t.Errorf("%s, content asked for: %v: got %q, want %q", c.path, c.content, got, c.want)
		}
	}
}

func TestResolve_LeasesWhatItShows(t *testing.T) {
	b := newBench(t)
	names := b.plant()
	for _, c := range []struct {
		path    string
		content bool
		want    []string
	}{
		{"d", false, []string{"NAMES root", "NAMES d"}},
		{"d/f", false, []string{"NAMES root", "NAMES d"}}, // a child's attributes come with its directory
		{"d/f", true, []string{"NAMES root", "NAMES d", "FILE f"}},
		{"d/nothing", false, []string{"NAMES root", "NAMES d"}},
		{"d/near/n", false, []string{"NAMES root", "NAMES d", "NAMES near"}},
		{"d/nearfile", false, []string{"NAMES root", "NAMES d", "FILE nearfile"}},
		{"d/away", false, []string{"NAMES root", "NAMES d"}},
	} {
		req := &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path(c.path), Content: c.content}
		out, err := b.Resolve(t.Context(), b.within(node()), req)
		if err != nil {
			t.Fatal(err)
		}
		if got := granted(out.Grants, names); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
		if out, err = b.Resolve(t.Context(), node(), req); err != nil || len(out.Grants) > 0 {
			t.Errorf("%s without a session: got %v, %v, want no lease", c.path, out.GetGrants(), err)
		}
	}
}

func TestResolve_GivesAUserTickets(t *testing.T) {
	b := newBench(t)
	b.plant()
	who := asBob()
	opens := func(o uint64, ticket []byte) bool { return b.HasReached(&who, ids.Object(o), ticket) }
	out, err := b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/f")})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range out.Steps {
		if !opens(s.Object, s.Attr.Ticket) {
			t.Errorf("the ticket of %d does not open", s.Object)
		}
	}
	out, err = b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/away")})
	if err != nil || !opens(out.Steps[1].Object, out.Steps[1].Ticket) {
		t.Errorf("an object of another node: got %v, %v, want a ticket that opens", out, err)
	}
	out, err = b.Resolve(t.Context(), node(), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/away")})
	if err != nil || out.Dir.Ticket != nil || out.Steps[0].Attr.Ticket != nil || out.Steps[1].Ticket != nil {
		t.Errorf("a node got tickets: %v, %v", out, err)
	}
}
