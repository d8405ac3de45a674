package reading

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// listed tells a page's names, with their attributes' sizes.
func listed(out *pb.ListResponse) string {
	var names []string
	for _, e := range out.Entries {
		text := string(e.Name)
		switch {
		case e.Attr == nil:
			text += " elsewhere"
		case e.Attr.Object != e.Object:
			text += " with another's attributes"
		}
		names = append(names, text)
	}
	if out.More {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

func TestList_ReadsPageByPage(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o755, root)
	for _, name := range []string{"c", "a", "b"} {
		b.file(d, name, 0o644, root, "")
	}
	b.apart(d, "far", nearSlice, tree.TypeRegular|0o644, root)
	for _, c := range []struct {
		after string
		limit uint32
		want  string
	}{
		{"", 0, "a, b, c, far elsewhere"},
		{"", 4, "a, b, c, far elsewhere"},
		{"", 3, "a, b, c, ..."},
		{"a", 1, "b, ..."},
		{"aa", 0, "b, c, far elsewhere"},
		{"c", 0, "far elsewhere"},
		{"far", 0, ""},
	} {
		out, err := b.List(t.Context(), node(), &pb.ListRequest{Dir: uint64(d), After: []byte(c.after), Limit: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		if got := listed(out); got != c.want || out.Hlc == 0 {
			t.Errorf("%d after %q: got %q, want %q", c.limit, c.after, got, c.want)
		}
	}
}

func TestList_BoundsAPage(t *testing.T) {
	b := newBench(t)
	for i := range maxPage {
		b.create(ids.RootObject, fmt.Sprintf("f%04d", i), tree.TypeRegular|0o644, root)
	}
	for _, limit := range []uint32{0, maxPage, maxPage + 1, 1 << 31} {
		out, err := b.List(t.Context(), node(), &pb.ListRequest{Dir: uint64(ids.RootObject), Limit: limit})
		if err != nil || len(out.Entries) != maxPage || out.More {
			t.Errorf("limit %d: got %d entries, more %v, %v, want all %d", limit, len(out.GetEntries()), out.GetMore(), err, maxPage)
		}
	}
	b.create(ids.RootObject, "one", tree.TypeRegular|0o644, root)
	out, err := b.List(t.Context(), node(), &pb.ListRequest{Dir: uint64(ids.RootObject), Limit: maxPage + 1})
	if err != nil || len(out.Entries) != maxPage || !out.More {
		t.Errorf("got %d entries, more %v, %v, want %d and more", len(out.GetEntries()), out.GetMore(), err, maxPage)
	}
}

func TestList_RefusesWhatMayNotBeListed(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "")
	pass := b.mkdir(ids.RootObject, "pass", 0o711, ann) // bob may search it, and not read it
	for what, c := range map[string]struct {
		dir  ids.Object
		who  Asker
		want fault.Kind
	}{
		"a file":               {f, node(), fault.NotDirectory},
		"nothing":              {ids.NewObject(rootSlice, 99), node(), fault.Stale},
		"names not to be read": {pass, asBob(), fault.Permission},
		"the owner's":          {pass, asAnn(), fault.None},
	} {
		_, err := b.List(t.Context(), c.who, &pb.ListRequest{Dir: uint64(c.dir)})
		b.fails(what, err, c.want)
	}
}

func TestList_LeasesTheDirectoriesThatItShows(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o755, root)
	numbers := map[uint64]string{uint64(d): "d", uint64(b.mkdir(d, "a", 0o755, root)): "a", uint64(b.mkdir(d, "c", 0o755, root)): "c"}
	b.file(d, "b", 0o644, root, "")
	b.apart(d, "far", nearSlice, tree.TypeDir|0o755, root)
	out, err := b.List(t.Context(), b.within(node()), &pb.ListRequest{Dir: uint64(d)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := granted(out.Grants, numbers), []string{"NAMES d", "NAMES a", "NAMES c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if out, err = b.List(t.Context(), node(), &pb.ListRequest{Dir: uint64(d)}); err != nil || len(out.Grants) > 0 {
		t.Errorf("without a session: got %v, %v, want no lease", out.GetGrants(), err)
	}
}

func TestList_GivesAUserTickets(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o755, ann)
	b.file(d, "f", 0o600, ann, "secret")
	b.apart(d, "far", otherSlice, tree.TypeRegular|0o644, ann)
	who := asBob()
	out, err := b.List(t.Context(), who, &pb.ListRequest{Dir: uint64(d)})
	if err != nil || len(out.Entries) != 2 {
		t.Fatalf("got %v, %v", out, err)
	}
	far, f := out.Entries[1], out.Entries[0]
	if !b.HasReached(&who, ids.Object(f.Object), f.Attr.Ticket) || !b.HasReached(&who, ids.Object(far.Object), far.Ticket) {
		t.Errorf("the tickets of %v do not open", out.Entries)
	}
	if out, err = b.List(t.Context(), node(), &pb.ListRequest{Dir: uint64(d)}); err != nil || out.Entries[0].Attr.Ticket != nil || out.Entries[1].Ticket != nil {
		t.Errorf("a node got tickets: %v, %v", out, err)
	}
}

func TestList_ReadsAnewWhatChangesMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench, scan int)
		want   string
		scans  int
	}{
		"a name that goes": {func(b *bench, scan int) {
			if scan == 1 {
				b.unlink(ids.RootObject, "b")
			}
		}, "a, c", 2},
		"a name that changes all the time": {func(b *bench, _ int) {
			b.unlink(ids.RootObject, "b")
			b.file(ids.RootObject, "b", 0o644, root, "new")
		}, "a, b, c", pageTries},
		"a name that goes at last": {func(b *bench, scan int) {
			b.unlink(ids.RootObject, "b")
			if scan < pageTries {
				b.file(ids.RootObject, "b", 0o644, root, "new")
			}
		}, "a, c", pageTries},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for _, name := range []string{"a", "b", "c"} {
				b.file(ids.RootObject, name, 0o644, root, "old")
			}
			scans := 0
			b.hook(hooked{scanned: func() { scans++; c.change(b, scans) }})
			out, err := b.List(t.Context(), node(), &pb.ListRequest{Dir: uint64(ids.RootObject)})
			if err != nil {
				t.Fatal(err)
			}
			if got := listed(out); got != c.want || scans != c.scans {
				t.Errorf("got %q after %d scans, want %q after %d", got, scans, c.want, c.scans)
			}
		})
	}
}

func TestServer_ReadsWhileOthersWrite(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o755, root)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		who := b.within(node())
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				out, err := b.List(t.Context(), who, &pb.ListRequest{Dir: uint64(d)})
				if err != nil {
					t.Errorf("listing: %v", err)
					return
				}
				last := ""
				for _, e := range out.Entries {
					if string(e.Name) <= last || e.Attr.GetObject() != e.Object {
						t.Errorf("got %q after %q with %v", e.Name, last, e.Attr)
					}
					last = string(e.Name)
				}
				if _, err = b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/b"), Content: true}); err != nil && !fault.Is(err, fault.Stale) {
					t.Errorf("resolving: %v", err)
				}
			}
		})
	}
	for range 100 {
		for _, name := range []string{"a", "b", "c"} {
			b.file(d, name, 0o644, root, "content")
		}
		for _, name := range []string{"b", "c", "a"} {
			b.unlink(d, name)
		}
	}
	close(stop)
	wg.Wait()
}
