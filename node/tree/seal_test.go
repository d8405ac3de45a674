package tree

import (
	"bytes"
	"maps"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

func sealOp(o ids.Object) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(o), Seal: true}}}
}

// once makes a file in a write-once directory.
func (d *desk) once(path string) ids.Object {
	d.t.Helper()
	dir, name := split(path)
	op := createOp(d.id(dir), name, TypeRegular|0o644)
	op.GetCreate().Cues = &pb.Cues{WriteOnce: true}
	return ids.Object(d.do(alice, fault.None, op).Attr.Object)
}

// write commits bytes at an offset.
func (d *desk) write(o ids.Object, offset uint64, text string, want fault.Kind) {
	d.t.Helper()
	r, _ := d.run(rootID, alice, 0, commitOp(uint64(o), offset, len(text)), []byte(text))
	if fault.Kind(r.Kind) != want {
		d.t.Errorf("writing %q at %d: got %v, want %v", text, offset, fault.Kind(r.Kind), want)
	}
}

// TestSeal_EndsTheWriting changes a write-once file until it is sealed, and then in
// every way that its content could change.
func TestSeal_EndsTheWriting(t *testing.T) {
	d := newDesk(t)
	f := d.once("/f")
	if r := d.do(alice, fault.None, sealOp(f)); r.Attr.Sealed {
		t.Error("an empty file is sealed")
	}
	d.write(f, 0, "one", fault.None)
	d.write(f, 3, " two", fault.None)
	before := d.attr("/f")
	for range 2 {
		r := d.do(alice, fault.None, sealOp(f))
		if !r.Attr.Sealed || r.Attr.Version != before.Version || r.Attr.MtimeNs != before.MtimeNs || r.Attr.CtimeNs != before.CtimeNs {
			t.Errorf("sealed, it is %v; before: %v", r.Attr, before)
		}
	}
	size, bigger := uint64(2), uint64(1000)
	d.write(f, 0, "x", fault.NotOwner)
	for what, op := range map[string]*pb.Operation{
		"truncate":      {Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(f), Size: &size}}},
		"extend":        {Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(f), Extend: &bigger}}},
		"seal and cut":  {Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(f), Size: &size, Seal: true}}},
		"open to write": {Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("f"), Mode: TypeRegular | 0o644, Truncate: true}}},
		"replace": {Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("f"), Mode: TypeRegular | 0o644,
			Truncate: true, Commit: &pb.Commit{Extend: &size}}}},
	} {
		for _, who := range []Principal{alice, super} {
			if r, _ := d.run(rootID, who, 0, op, nil); fault.Kind(r.Kind) != fault.NotOwner {
				t.Errorf("%s by %d: got %v, want NotOwner", what, who.UID, fault.Kind(r.Kind))
			}
		}
	}
	d.do(alice, fault.None, setMode(uint64(f), 0o600))
	d.do(alice, fault.None, d.rename("/f", "/g"))
	a := d.attr("/g")
	if !a.Sealed || !bytes.Equal(a.Content.Inline, []byte("one two")) {
		t.Errorf("it has become %v", a)
	}
	d.do(alice, fault.None, d.unlink("/g", false))
}

// TestSeal_OnlyWhatIsWrittenOnce seals with the first content, and refuses to seal
// what is no write-once file.
func TestSeal_OnlyWhatIsWrittenOnce(t *testing.T) {
	d := newDesk(t)
	made := func(name string, cues *pb.Cues) *pb.Result {
		op := createOp(rootID, name, TypeRegular|0o644)
		op.GetCreate().Cues = cues
		op.GetCreate().Commit = &pb.Commit{Seal: true, Extents: []*pb.Extent{{Length: 3, Source: &pb.Extent_BodyOffset{}}}}
		r, _ := d.run(rootID, alice, 0, op, []byte("abc"))
		return r
	}
	if r := made("once", &pb.Cues{WriteOnce: true}); !r.GetAttr().GetSealed() {
		t.Errorf("a create that seals: %v", r)
	}
	if r := made("ordinary", nil); fault.Kind(r.Kind) != fault.Invalid {
		t.Errorf("an ordinary file is sealed by its create: %v", r)
	}
	d.make(alice, "/plain", TypeRegular|0o644)
	d.write(d.id("/plain"), 0, "x", fault.None)
	d.do(alice, fault.Invalid, sealOp(d.id("/plain")))
	d.do(bob, fault.Permission, sealOp(d.id("/once")))
}

// TestMerge_KeepsWriteOnceFiles has the active seal a file that a side writes, and a
// side seal what it wrote and what it made.
func TestMerge_KeepsWriteOnceFiles(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"/both", "/side"} {
		d.write(d.once(name), 0, "base", fault.None)
	}
	p := partedFrom(d)
	active, side := p.actors()
	seal := func(a actor, name string) {
		t.Helper()
		if _, o, _ := a.find(name); fault.Kind(a.do(sealOp(o), nil).Kind) != fault.None {
			t.Errorf("%s cannot be sealed", name)
		}
	}
	active.write("both", "active")
	seal(active, "both")
	side.write("both", "later, at the side")
	side.write("side", "side")
	seal(side, "side")
	op := createOp(rootID, "made", TypeRegular|0o644)
	op.GetCreate().Cues = &pb.Cues{WriteOnce: true}
	op.GetCreate().Commit = &pb.Commit{Seal: true, Extents: []*pb.Extent{{Length: 4, Source: &pb.Extent_BodyOffset{}}}}
	side.do(op, []byte("made"))
	p.merge()
	want := map[string]string{"both": "active", "both!": "later, at the side", "side": "side", "made": "made"}
	if got := conflict(p.here()); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, name := range []string{"/both", "/side", "/made"} {
		if !d.attr(name).Sealed {
			t.Errorf("%s is not sealed", name)
		}
	}
}
