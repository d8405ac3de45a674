//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// side is an eventual with another client at its side of a cut.
type side struct {
	*eventual
	other *eventual
}

// newSide cuts two clients off from the active of a directory, and the nodes beside
// them from bringing it anything, until heal is called. The maker stays with it.
func newSide(t *testing.T, configure ...func(int, *server.Config)) (s *side, heal func()) {
	t.Helper()
	e := newEventual(t, "c", ".EventualConsistency", configure...)
	other := &eventual{T: t, c: e.c, cl: opened(t, e.c, cartwheel.Options{Site: "b", OpTimeout: never})}
	t.Cleanup(func() {
		if err := other.cl.Close(); err != nil {
			t.Error(err)
		}
	})
	other.dir = other.look(other.look(mount.Root, "dir"), ".EventualConsistency")
	s = &side{eventual: e, other: other}
	for _, n := range e.c.Nodes {
		s.cutNode(n)
	}
	e.cl.CutOff(e.active.ID())
	other.cl.CutOff(e.active.ID())
	return s, func() {
		for _, n := range e.c.Nodes {
			if running := n.Server(); running != nil {
				running.Host().SetFilter(nil)
			}
		}
		e.cl.Lose()
		other.cl.Lose()
	}
}

// cutNode loses every merge that a node sends the active, and so every operation.
func (s *side) cutNode(n *servertest.Node) {
	active := string(s.active.ID())
	n.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: m == method.Operate && peer == active}
	})
}

// back lets the client reach the active, and waits until it asks that again.
func (s *side) back() {
	s.Helper()
	s.cl.Lose()
	servertest.Await(s.Context(), s, "the client to ask the active again", func() error {
		if s.cl.ActiveIsAway(s.slice) {
			return fault.E(fault.Again, "", "", "it leaves the active alone")
		}
		return nil
	})
}

// head is the node that keeps the side log.
func (s *side) head() *servertest.Node {
	s.Helper()
	row, err := s.c.Row(s.Context(), s.slice)
	if err != nil {
		s.Fatal(err)
	}
	for _, id := range row.Normals() {
		if id != s.active.ID() {
			return s.c.Nodes[slices.IndexFunc(s.c.Nodes, func(n *servertest.Node) bool { return n.ID() == id })]
		}
	}
	s.Fatal("the slice has no other member")
	return nil
}

// merged waits until the maker, which reads the active, finds what is wanted.
func (s *side) merged(want map[string]string) {
	s.Helper()
	servertest.Await(s.Context(), s, "the side is merged", func() error {
		s.maker.DropCaches(s.Context())
		got := map[string]string{}
		if err := treeOf(s.maker, s.made, "", got); err != nil {
			return err
		}
		return differ(marked(got), want)
	})
}

// reported checks of which files the slice's active reports conflicts.
func (s *side) reported(want ...string) {
	s.Helper()
	var answer pb.ConflictsResponse
	_, err := s.c.Connect("root").Call(s.Context(), s.active.ID(), wire.Operation, method.Conflicts, &pb.ConflictsRequest{}, nil, &answer)
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, c := range answer.Conflicts {
		got = append(got, path.Join(c.Path, string(c.Name)))
		if c.Kept == 0 || !strings.Contains(string(c.KeptName), "(conflict of ") || c.Reason == "" || c.Slice != uint32(s.slice) {
			s.Errorf("a conflict is reported as %v", c)
		}
	}
	slices.Sort(got)
	if s.slice != ids.RootSlice {
		for i := range want {
			want[i] = "…/" + path.Base(want[i])
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("conflicts are reported of %v, want %v", got, want)
	}
}

// treeOf is what a client finds below a directory: names, and what files hold. A merge
// may move a name between its listing and its reading; that is an error.
func treeOf(cl *cartwheel.Client, dir mount.Inode, at string, out map[string]string) error {
	names, err := list(cl, dir)
	if err != nil {
		return err
	}
	for _, name := range splitNames(names) {
		e, err := cl.Lookup(context.Background(), nobody, dir, name)
		if err != nil || e.Node == 0 {
			return fault.Errorf(fault.Again, "", name, "is listed, and not found: %v", err)
		}
		switch e.Attr.Mode & mount.TypeMask {
		case mount.TypeDir:
			out[at+name] = "/"
			if err := treeOf(cl, e.Node, at+name+"/", out); err != nil {
				return err
			}
		case mount.TypeRegular:
			if out[at+name], err = textOf(cl, dir, name); err != nil {
				return err
			}
		default:
			out[at+name] = "->"
		}
	}
	return nil
}

// splitNames takes a listing apart, in which names have no blanks but in the mark of a
// conflict.
func splitNames(list string) (out []string) {
	for _, part := range strings.Split(list, " ") {
		if n := len(out); n > 0 && strings.Count(out[n-1], "(") > strings.Count(out[n-1], ")") {
			out[n-1] += " " + part
			continue
		} else if n > 0 && strings.HasPrefix(part, "(") {
			out[n-1] += " " + part
			continue
		}
		if part != "." && part != ".." {
			out = append(out, part)
		}
	}
	return out
}

// TestEventual_WritesOnBothSides has clients at both sides of a cut write into one
// directory and one file. The others at a side see that side's. Afterwards everything
// that was written is there, and what was removed is not.
func TestEventual_WritesOnBothSides(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	ctx, cl := t.Context(), s.cl
	put(t, cl, s.dir, "new", "the side's", 0)
	put(t, cl, s.dir, "small", "the side's second", mount.OpenTruncate)
	big := string(noise(700 << 10))
	put(t, cl, s.dir, "big", big, 0)
	sub, err := cl.Mkdir(ctx, nobody, s.dir, "sub", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	put(t, cl, sub.Node, "f", "below", 0)
	if err := cl.Unlink(ctx, nobody, s.dir, "link"); err != nil {
		t.Errorf("removing a name: %v", err)
	}
	if err := cl.Rename(ctx, nobody, s.dir, "large", s.dir, "moved", 0); err != nil {
		t.Errorf("moving a name: %v", err)
	}
	want := map[string]string{"new": "the side's", "small": "the side's second", "big": big, "sub": "/", "sub/f": "below", "moved": s.large}
	for i, at := range []*eventual{s.eventual, s.other} {
		got := map[string]string{}
		if err := treeOf(at.cl, at.dir, "", got); err != nil {
			t.Errorf("reading at the side: %v", err)
		}
		compare(t, []string{"at the side", "at the side, by the other client"}[i], got, want)
	}
	if r := s.other.copied("small"); r == nil || !r.Unmerged {
		t.Errorf("the receipt says %+v, want that the active has not heard of what was read", r)
	}
	put(t, s.maker, s.made, "new", "the active's", 0)
	put(t, s.maker, s.made, "small", "the active's second", mount.OpenTruncate)
	put(t, s.maker, s.made, "other", "the active's alone", 0)
	heal()
	delete(want, "new")
	delete(want, "small")
	want["other"] = "the active's alone"
	want["new"], want["new!"] = "the active's", "the side's"
	want["small"], want["small!"] = "the active's second", "the side's second"
	s.merged(want)
	s.reported("/dir/new", "/dir/small")
	servertest.Await(ctx, t, "the side reads the truth", func() error {
		got := map[string]string{}
		if err := treeOf(cl, s.dir, "", got); err != nil {
			return err
		}
		return differ(marked(got), want)
	})
}

// TestEventual_SideSurvivesItsNodes has all nodes of a side end as in a loss of power.
// What was acknowledged there is there when they are back, and is merged.
func TestEventual_SideSurvivesItsNodes(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	put(t, s.cl, s.dir, "new", "the side's", 0)
	put(t, s.cl, s.dir, "small", "the side's second", mount.OpenTruncate)
	for _, n := range s.c.Nodes {
		if n != s.active {
			n.Kill()
			n.Start()
			s.cutNode(n)
		}
	}
	want := map[string]string{"new": "the side's", "small": "the side's second", "large": s.large, "link": "->"}
	servertest.Await(t.Context(), t, "the side has what was written", func() error {
		got := map[string]string{}
		if err := treeOf(s.other.cl, s.other.dir, "", got); err != nil {
			return err
		}
		return differ(got, want)
	})
	heal()
	s.merged(want)
}

// TestEventual_OtherMembersHaveTheSide has the node that keeps the side log end. The
// other member at the side shows what was written, and takes more.
func TestEventual_OtherMembersHaveTheSide(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	put(t, s.cl, s.dir, "new", "the side's", 0)
	head := s.head()
	head.Kill()
	want := map[string]string{"new": "the side's", "second": "also", "small": "small", "large": s.large, "link": "->"}
	servertest.Await(t.Context(), t, "the other member to take writes", func() error {
		e, h, err := s.cl.Create(t.Context(), nobody, s.dir, "second", 0o644, mount.OpenWrite|mount.OpenTruncate)
		if err != nil {
			return err
		}
		defer s.cl.Release(e.Node, h.Handle, 0, false)
		if _, err = s.cl.Write(t.Context(), nobody, e.Node, h.Handle, 0, []byte("also"), 0); err == nil {
			err = s.cl.Flush(t.Context(), nobody, e.Node, h.Handle, 1)
		}
		return err
	})
	got := map[string]string{}
	if err := treeOf(s.other.cl, s.other.dir, "", got); err != nil {
		t.Error(err)
	}
	compare(t, "without the node that kept the side log", got, want)
	head.Start()
	s.cutNode(head)
	heal()
	s.merged(want)
}

// TestEventual_MembersTakeTurns has a member at the side begin a file, and another one,
// which does not hear of that one for a while, go on with it. Where the name shows the
// whole file does, and what is merged afterwards is one file.
func TestEventual_MembersTakeTurns(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	ctx := t.Context()
	head := s.head()
	second := s.c.Nodes[slices.IndexFunc(s.c.Nodes, func(n *servertest.Node) bool { return n != head && n != s.active })]
	write := func(o mount.Inode, h mount.Handle, at int64, text string) {
		t.Helper()
		if _, err := s.cl.Write(ctx, nobody, o, h, at, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if err := s.cl.Flush(ctx, nobody, o, h, 1); err != nil {
			t.Fatalf("writing %q: %v", text, err)
		}
	}
	s.cl.Only(head.ID())
	e, h, err := s.cl.Create(ctx, nobody, s.dir, "begun", 0o644, mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	write(e.Node, h.Handle, 0, "one ")
	lose := func(methods ...wire.Method) { // of what nodes send each other; none relays
		for _, n := range []*servertest.Node{head, second} {
			n.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
				isNode := slices.ContainsFunc(s.c.Nodes, func(n *servertest.Node) bool { return string(n.ID()) == peer })
				return wire.Verdict{Drop: m == wire.MethodRelay || isNode && slices.Contains(methods, m)}
			})
		}
	}
	lose(method.Operate, method.Side, method.SideCopy)
	s.cl.Only(second.ID())
	write(e.Node, h.Handle, 4, "two")
	s.cl.Release(e.Node, h.Handle, 1, false)
	if err := s.cl.Rename(ctx, nobody, s.dir, "begun", s.dir, "done", 0); err != nil {
		t.Fatal(err)
	}
	lose(method.Operate)
	s.other.cl.Only(head.ID())
	servertest.Await(ctx, t, "the file to show at the other member", func() error {
		s.other.cl.DropCaches(ctx)
		got, err := textOf(s.other.cl, s.other.dir, "done")
		if err != nil {
			return fault.Wrap(fault.Again, "", "done", err)
		}
		if got != "one two" {
			t.Errorf("the file shows %q by its new name", got)
		}
		return nil
	})
	heal()
	s.merged(map[string]string{"done": "one two", "small": "small", "large": s.large, "link": "->"})
	s.reported()
}

// TestEventual_AnotherMemberMergesTheSide has the node that keeps the side log end for
// good. The member that has it too merges it.
func TestEventual_AnotherMemberMergesTheSide(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t, func(_ int, c *server.Config) { c.FailedAfter = 2 * time.Second })
	put(t, s.cl, s.dir, "new", "the side's", 0)
	s.head().Kill()
	heal()
	s.merged(map[string]string{"new": "the side's", "small": "small", "large": s.large, "link": "->"})
}

// TestEventual_ASiteAloneWrites cuts a site with one member and one client off from all
// others. Its writes go on, and are merged afterwards.
func TestEventual_ASiteAloneWrites(t *testing.T) {
	t.Parallel()
	e := newEventual(t, "c", ".EventualConsistency")
	alone := string(e.c.Nodes[2].ID()) // of site c
	if alone == string(e.active.ID()) {
		t.Fatal("the active stands at the site that is to be cut off")
	}
	put(t, e.maker, e.made, "last", "x", 0) // the copies may lack the last operation
	for _, n := range e.c.Nodes {
		here := string(n.ID()) == alone
		n.Server().Host().SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
			isNode := slices.ContainsFunc(e.c.Nodes, func(n *servertest.Node) bool { return string(n.ID()) == peer })
			return wire.Verdict{Drop: isNode && (here || peer == alone)}
		})
	}
	e.cl.Only(ids.Node(alone))
	want := map[string]string{"small": e.small, "large": e.large, "link": "->"}
	for i := range 12 {
		name := fmt.Sprint("f", i)
		o, h, err := e.cl.Create(t.Context(), nobody, e.dir, name, 0o644, mount.OpenWrite)
		if err == nil {
			if _, err = e.cl.Write(t.Context(), nobody, o.Node, h.Handle, 0, []byte(name), 0); err == nil {
				err = e.cl.Flush(t.Context(), nobody, o.Node, h.Handle, 1)
			}
			e.cl.Release(o.Node, h.Handle, 1, false)
		}
		if err != nil {
			t.Errorf("writing %s: %v", name, err)
		}
		want[name] = name
	}
	got := map[string]string{}
	if err := treeOf(e.cl, e.dir, "", got); err != nil {
		t.Errorf("reading at the side: %v", err)
	}
	delete(got, "last")
	compare(t, "at the site alone", got, want)
	want["last"] = "x"
	for _, n := range e.c.Nodes {
		n.Server().Host().SetFilter(nil)
	}
	e.cl.Lose()
	(&side{eventual: e}).merged(want)
}

// TestEventual_FullSideRefuses fills what a node keeps of side logs.
func TestEventual_FullSideRefuses(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t, func(_ int, c *server.Config) { c.SideLogBytes = 8000 })
	want := map[string]string{"new": "the side's", "small": "small", "large": s.large, "link": "->"}
	put(t, s.cl, s.dir, "new", "the side's", 0)
	for i := 0; ; i++ {
		name := fmt.Sprint("d", i)
		_, err := s.cl.Mkdir(t.Context(), nobody, s.dir, name, 0o755)
		if fault.Is(err, fault.NoSpace) {
			break
		}
		if want[name] = "/"; err != nil || i == 100 {
			t.Fatalf("directory %d: got %v, want NoSpace at last", i, err)
		}
	}
	heal()
	s.merged(want)
}

// TestEventual_WritesThroughTheEndOfACut has a file open that was made at the side while
// the cut ends: what is written then is not lost.
func TestEventual_WritesThroughTheEndOfACut(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	ctx := t.Context()
	e, h, err := s.cl.Create(ctx, nobody, s.dir, "new", 0o644, mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, text := range []string{"first ", "second ", "third"} {
		if _, err := s.cl.Write(ctx, nobody, e.Node, h.Handle, int64(at), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if err := s.cl.Flush(ctx, nobody, e.Node, h.Handle, 1); err != nil {
			t.Errorf("writing %q: %v", text, err)
		}
		if at == 0 { // the client finds its way back before the side is merged
			s.back()
		}
		at += len(text)
	}
	s.cl.Release(e.Node, h.Handle, 1, false)
	heal()
	s.merged(map[string]string{"new": "first second third", "small": "small", "large": s.large, "link": "->"})
}

// TestEventual_NamesComeBehindTheirContent has a file made at the active, written at the
// side, and moved once the client reaches the active again, but the side is not merged.
// Nobody may see the new name without the content.
func TestEventual_NamesComeBehindTheirContent(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	ctx := t.Context()
	put(t, s.maker, s.made, "temporary", "", 0)
	put(t, s.maker, s.made, "last", "x", 0) // the copies may lack the last operation
	servertest.Await(ctx, t, "the copies to have the file", func() error {
		if out, err := s.cl.Lookup(ctx, nobody, s.dir, "temporary"); err != nil || out.Node == 0 {
			return fault.Errorf(fault.Again, "", "", "got %+v, %v", out, err)
		}
		return nil
	})
	put(t, s.cl, s.dir, "temporary", "all of it", 0)
	s.back()
	s.look(s.dir, "temporary") // as a kernel does
	if err := s.cl.Rename(ctx, nobody, s.dir, "temporary", s.dir, "final", 0); err != nil {
		t.Fatal(err)
	}
	if out, err := s.maker.Lookup(ctx, nobody, s.made, "final"); err != nil || out.Node != 0 && out.Attr.Size == 0 {
		t.Errorf("at the active the file has the name, and %d bytes, %v", out.Attr.Size, err)
	}
	heal()
	s.merged(map[string]string{"final": "all of it", "last": "x", "small": "small", "large": s.large, "link": "->"})
}

// TestEventual_MovesWhatOnlyTheSideHas moves a file that was made at the side once the
// client reaches the active again, and removes another one.
func TestEventual_MovesWhatOnlyTheSideHas(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	put(t, s.cl, s.dir, "temporary", "all of it", 0)
	put(t, s.cl, s.dir, "gone", "", 0)
	s.back()
	if err := s.cl.Rename(t.Context(), nobody, s.dir, "temporary", s.dir, "final", 0); err != nil {
		t.Errorf("moving it: %v", err)
	}
	if err := s.cl.Unlink(t.Context(), nobody, s.dir, "gone"); err != nil {
		t.Errorf("removing the other one: %v", err)
	}
	if err := s.cl.Unlink(t.Context(), nobody, s.dir, "never there"); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing what nobody has: got %v, want NotFound", err)
	}
	heal()
	s.merged(map[string]string{"final": "all of it", "small": "small", "large": s.large, "link": "->"})
}

// TestEventual_LeavesToTheActiveWhatOnlyItDoes moves a directory and exchanges names
// while the active is away.
func TestEventual_LeavesToTheActiveWhatOnlyItDoes(t *testing.T) {
	t.Parallel()
	s, heal := newSide(t)
	defer heal()
	if _, err := s.cl.Mkdir(t.Context(), nobody, s.dir, "d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.cl.Rename(t.Context(), nobody, s.dir, "d", s.dir, "e", 0); !fault.Is(err, fault.TimedOut) {
		t.Errorf("moving a directory: got %v, want TimedOut", err)
	}
	if err := s.cl.Rename(t.Context(), nobody, s.dir, "small", s.dir, "large", mount.RenameExchange); !fault.Is(err, fault.TimedOut) {
		t.Errorf("exchanging names: got %v, want TimedOut", err)
	}
	if err := s.cl.Rmdir(t.Context(), nobody, s.dir, "small"); !fault.Is(err, fault.NotDirectory) {
		t.Errorf("removing a file as a directory: got %v, want NotDirectory", err)
	}
}

// marked has a short mark for what lost its name.
func marked(m map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range m {
		if at := strings.Index(name, " (conflict of "); at >= 0 {
			name = name[:at] + "!" + name[strings.Index(name, ")")+1:]
		}
		out[name] = text
	}
	return out
}

func compare(t *testing.T, where string, got, want map[string]string) {
	t.Helper()
	if err := differ(got, want); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

func differ(got, want map[string]string) error {
	for name, text := range want {
		if has, ok := got[name]; !ok || has != text {
			return fault.Errorf(fault.Again, "", name, "has %.40q (%v, %d bytes), want %.40q", has, ok, len(has), text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return fault.Errorf(fault.Again, "", name, "is there, and should not be")
		}
	}
	return nil
}
