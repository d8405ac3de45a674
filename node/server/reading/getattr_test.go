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

func TestGetAttr_BringsWhatIsAskedFor(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	b.setXattr(f, "user.note", "n")
	for _, c := range []struct{ content, xattrs bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		out, err := b.GetAttr(t.Context(), node(), &pb.GetAttrRequest{Object: uint64(f), Content: c.content, Xattrs: c.xattrs})
		if err != nil {
			t.Fatal(err)
		}
		a := out.Attr
		if ids.Object(a.Object) != f || a.Size != 5 || out.Hlc == 0 {
			t.Errorf("got %v at %d", a, out.Hlc)
		}
		if (string(a.Content.GetInline()) == "hello") != c.content || (len(a.Xattrs) == 1) != c.xattrs {
			t.Errorf("%+v: got content %q and attributes %v", c, a.Content.GetInline(), a.Xattrs)
		}
	}
}

func TestGetAttr_TellsObjectsThatAreGone(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	b.unlink(ids.RootObject, "f")
	for _, o := range []ids.Object{f, ids.NewObject(rootSlice, 99)} {
		_, err := b.GetAttr(t.Context(), node(), &pb.GetAttrRequest{Object: uint64(o)})
		b.fails(o.String(), err, fault.Stale)
	}
}

func TestGetAttr_LeasesAFileOrADirectory(t *testing.T) {
	b := newBench(t)
	f, d := b.file(ids.RootObject, "f", 0o644, root, "hello"), b.mkdir(ids.RootObject, "d", 0o755, root)
	numbers := map[uint64]string{uint64(f): "f", uint64(d): "d"}
	for o, want := range map[ids.Object][]string{f: {"FILE f"}, d: {"NAMES d"}} {
		out, err := b.GetAttr(t.Context(), b.within(node()), &pb.GetAttrRequest{Object: uint64(o)})
		if err != nil {
			t.Fatal(err)
		}
		if got := granted(out.Grants, numbers); !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if out, err = b.GetAttr(t.Context(), node(), &pb.GetAttrRequest{Object: uint64(o)}); err != nil || len(out.Grants) > 0 {
			t.Errorf("without a session: got %v, %v, want no lease", out.GetGrants(), err)
		}
	}
}

func TestGetAttr_OpensNothingThatIsAboutToGo(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	who := b.within(node())
	opening := &pb.GetAttrRequest{Object: uint64(f), Opening: true}
	touch := tree.Touch{Object: f, What: pb.Grant_FILE, Unlinked: true}
	mark, ready, _ := b.sessions.Change(rootSlice, 0, []tree.Touch{touch}, func([]tree.Holder) {})
	if !ready {
		t.Fatal("the change waits for a lease")
	}
	_, err := b.GetAttr(gone(t), who, opening)
	b.fails("opening it", err, fault.Again)
	_, err = b.GetAttr(gone(t), who, &pb.GetAttrRequest{Object: uint64(f)})
	b.fails("reading it", err, fault.None)
	b.sessions.Changed(mark) // the operation was given up
	_, err = b.GetAttr(t.Context(), who, opening)
	b.fails("opening it afterwards", err, fault.None)
}

func TestGetAttr_GoesOnFromAVersionThatWasRead(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o700, ann)
	f := b.file(d, "f", 0o600, ann, strings.Repeat("x", 9000)) // large enough for a manifest
	who := asBob()
	attr, err := tree.GetAttr(b.view(rootSlice), f, true, false)
	if err != nil || len(attr.Content.Root) == 0 {
		t.Fatalf("got %v, %v, want content under a root", attr, err)
	}
	version := [32]byte(attr.Content.Root)
	req := &pb.GetAttrRequest{Object: uint64(f), Content: true, Root: version[:], Readable: b.Tickets.Readable(*who.Holder, f, version)}
	out, err := b.GetAttr(t.Context(), who, req)
	if err != nil || out.Attr.Content.Withheld || !b.Tickets.OpenReadable(out.Attr.Content.Ticket, *who.Holder, f, version) {
		t.Errorf("with a ticket of the version: got %v, %v, want its content", out, err)
	}
	for what, change := range map[string]func(*pb.GetAttrRequest){
		"another user's ticket": func(r *pb.GetAttrRequest) { r.Readable = b.Tickets.Readable(*asAnn().Holder, f, version) },
		"another version":       func(r *pb.GetAttrRequest) { r.Root = make([]byte, 32) },
		"half a root":           func(r *pb.GetAttrRequest) { r.Root = version[:16] },
		"no ticket":             func(r *pb.GetAttrRequest) { r.Readable = nil },
	} {
		req := &pb.GetAttrRequest{Object: uint64(f), Root: version[:], Readable: b.Tickets.Readable(*who.Holder, f, version)}
		change(req)
		_, err := b.GetAttr(t.Context(), who, req)
		b.fails(what, err, fault.Permission)
	}
}

func TestFiles_BringsReadableFilesOfTheSlice(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o755, ann)
	f, own := b.file(d, "f", 0o644, ann, "hello"), b.file(d, "own", 0o600, ann, "secret")
	link := b.create(d, "link", tree.TypeLink|0o777, ann)
	far := b.apart(d, "far", nearSlice, tree.TypeRegular|0o644, ann)
	list := []ids.Object{f, own, d, link, far, ids.NewObject(rootSlice, 99)}
	numbers := map[uint64]string{}
	for i, name := range []string{"f", "own", "d", "link", "far", "none"} {
		numbers[uint64(list[i])] = name
	}
	ask := func(who Asker, tickets bool) (files, grants []string) {
		req := &pb.FilesRequest{Header: &pb.ReadHeader{Slice: uint32(rootSlice)}}
		for _, o := range list {
			req.Objects = append(req.Objects, uint64(o))
			if tickets {
				req.Tickets = append(req.Tickets, b.Tickets.Reached(*who.Holder, o, 0, 0))
			}
		}
		out, err := b.Files(t.Context(), who, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range out.Files {
			files = append(files, numbers[x.Attr.Object]+" "+string(x.Attr.Content.Inline))
		}
		return files, granted(out.Grants, numbers)
	}
	both := []string{"f hello", "own secret"}
	for what, c := range map[string]struct {
		who     Asker
		tickets bool
		files   []string
		grants  []string
	}{
		"a node":                   {b.within(node()), false, both, []string{"FILE f", "FILE own"}},
		"a node of no session":     {node(), false, both, nil},
		"their owner":              {b.within(asAnn()), true, both, []string{"FILE f", "FILE own"}},
		"another user":             {b.within(asBob()), true, []string{"f hello"}, []string{"FILE f"}},
		"a user without tickets":   {b.within(asBob()), false, nil, nil},
		"a trusted host for bob":   {Asker{Principal: bob, Trusted: true, Named: true}, false, []string{"f hello"}, nil},
		"a trusted host by itself": {Asker{Principal: root, Trusted: true}, false, both, nil},
	} {
		files, grants := ask(c.who, c.tickets)
		if !reflect.DeepEqual(files, c.files) || !reflect.DeepEqual(grants, c.grants) {
			t.Errorf("%s: got %q under %q, want %q under %q", what, files, grants, c.files, c.grants)
		}
	}
}

func TestFiles_BoundsTheObjects(t *testing.T) {
	b := newBench(t)
	for n, want := range map[int]fault.Kind{0: fault.None, maxNames: fault.None, maxNames + 1: fault.TooLarge} {
		_, err := b.Files(t.Context(), node(), &pb.FilesRequest{Header: &pb.ReadHeader{Slice: uint32(rootSlice)}, Objects: make([]uint64, n)})
		b.fails(fmt.Sprint(n, " files"), err, want)
	}
}

func TestFiles_LeavesOutWhatIsAboutToChange(t *testing.T) {
	b := newBench(t)
	f, g := b.file(ids.RootObject, "f", 0o644, root, "f"), b.file(ids.RootObject, "g", 0o644, root, "g")
	far := b.apart(ids.RootObject, "far", nearSlice, tree.TypeDir|0o755, root)
	i := b.move(ids.RootObject, "f", far)
	files := func() string {
		out, err := b.Files(t.Context(), node(), &pb.FilesRequest{Header: &pb.ReadHeader{Slice: uint32(rootSlice)}, Objects: []uint64{uint64(f), uint64(g)}})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, x := range out.Files {
			text += string(x.Attr.Content.Inline)
		}
		return text
	}
	if got := files(); got != "g" {
		t.Errorf("meanwhile: got %q, want g", got)
	}
	i.finish()
	if got := files(); got != "fg" {
		t.Errorf("afterwards: got %q, want both", got)
	}
}
