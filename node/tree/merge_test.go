package tree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// parted is a slice whose active is here, and a side that began from what it had.
type parted struct {
	*desk
	side   *Side
	serial ids.Serial // of the side
}

// partedFrom parts a side from the slice, once the slice is as it shall begin.
func partedFrom(d *desk) *parted {
	p := d.places[1]
	d.flush(p)
	return &parted{desk: d, side: NewSide(1, p.state.clone(), nil, nil), serial: 1 << 62}
}

// atSide does an operation at the side. Kept changes are read back, as after a start.
func (p *parted) atSide(op *pb.Operation, body []byte) *pb.Result {
	p.t.Helper()
	p.clock++
	p.serial++
	c := Context{Slice: 1, Serial: p.serial, Time: hlc.Time(p.clock), Node: "side"}
	if op.TimeNs == 0 {
		op.TimeNs = int64(p.clock)
	}
	out, changes := p.side.Evaluate(p.world, c, op, body, p.rng.Uint64)
	if out.Err != nil {
		if !fault.Is(out.Err, fault.NotActive) && !fault.Is(out.Err, fault.Again) {
			p.t.Fatalf("%v: %v", op, out.Err)
		}
		return &pb.Result{Kind: uint32(fault.KindOf(out.Err))}
	}
	for _, x := range out.Inline {
		p.chunks[x.Address] = slices.Clone(x.Data)
	}
	for i := range changes {
		var err error
		if changes[i], err = DecodeSideChange(changes[i].Key, AppendSideChange(nil, &changes[i])); err != nil {
			p.t.Fatal(err)
		}
	}
	p.side.Apply(changes)
	return out.Result
}

// atActive does an operation at the active.
func (p *parted) atActive(op *pb.Operation, body []byte) *pb.Result {
	p.t.Helper()
	r, _ := p.run(rootID, super, 0, op, body)
	return r
}

// merge merges everything. Each object is sent twice: what comes again changes no
// names.
func (p *parted) merge() {
	p.t.Helper()
	for round := 0; ; round++ {
		list, err := p.side.Merges()
		if err != nil {
			p.t.Fatal(err)
		}
		if len(list) == 0 {
			return
		}
		if round == 3 {
			p.t.Fatalf("the merge does not end: %v is left", list)
		}
		for _, wave := range list {
			p.rng.Shuffle(len(wave), func(i, j int) { wave[i], wave[j] = wave[j], wave[i] }) // a wave's go all at once
			for _, o := range wave {
				p.mergeOne(o)
			}
		}
	}
}

func (p *parted) mergeOne(o ids.Object) { p.t.Helper(); p.mergeAs(o, 0) }

// mergeAs merges an object by a serial of the active's.
func (p *parted) mergeAs(o ids.Object, serial ids.Serial) {
	p.t.Helper()
	m, r := p.send(o, false)
	if m == nil {
		return
	}
	if fault.Kind(r.Kind) == fault.Stale {
		m, r = p.send(o, true)
	}
	if r.Kind != 0 {
		p.t.Fatalf("merging %v: %v", m, fault.Kind(r.Kind))
	}
	before := p.names(p.places[1].over, rootID, "")
	if _, again := p.send(o, true); again.Kind != 0 {
		p.t.Fatalf("merging %v again: %v", m, fault.Kind(again.Kind))
	}
	if after := p.names(p.places[1].over, rootID, ""); !maps.Equal(before, after) {
		p.t.Fatalf("merging %v again changed %v into %v", m, before, after)
	}
	changes, err := p.side.Merged(m, r, serial)
	if err != nil {
		p.t.Fatal(err)
	}
	p.side.Apply(changes)
}

func (p *parted) send(o ids.Object, above bool) (*pb.Merge, *pb.Result) {
	p.t.Helper()
	m, body, err := p.side.Merge(o, p.world, "side", int64(p.clock), above)
	if err != nil {
		p.t.Fatal(err)
	}
	if m == nil {
		return nil, nil
	}
	return m, p.atActive(&pb.Operation{Op: &pb.Operation_Merge{Merge: m}}, body)
}

// names are the paths below a directory with what each holds.
func (p *parted) names(v View, dir ids.Object, at string) map[string]string {
	p.t.Helper()
	out := map[string]string{}
	list, _, err := List(v, dir, nil, 10000)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range list {
		name := at + string(e.Name)
		a, err := GetAttr(v, e.Object, true, false)
		if err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
		if e.Type == TypeDir {
			out[name] = "/"
			maps.Copy(out, p.names(v, e.Object, name+"/"))
			continue
		}
		out[name] = string(p.content(a))
	}
	return out
}

func (p *parted) here() map[string]string {
	p.flush(p.places[1])
	return p.names(p.places[1].state, rootID, "")
}

// actor names things at one of the two.
type actor struct {
	p    *parted
	view View
	do   func(*pb.Operation, []byte) *pb.Result
}

func (p *parted) actors() (active, side actor) {
	return actor{p, p.places[1].over, p.atActive}, actor{p, p.side, p.atSide}
}

func (a actor) find(path string) (dir, o ids.Object, name string) {
	dir = rootID
	parts := strings.Split(path, "/")
	for i, part := range parts {
		e, err := Lookup(a.view, dir, []byte(part))
		if err != nil {
			e.Object = 0
		}
		if i == len(parts)-1 {
			return dir, e.Object, part
		}
		dir = e.Object
	}
	return 0, 0, ""
}

// write makes a file, or writes one anew.
func (a actor) write(path, text string) fault.Kind {
	dir, o, name := a.find(path)
	if dir == 0 {
		return fault.NotFound
	}
	size := uint64(len(text))
	c := &pb.Commit{Extend: &size, Extents: []*pb.Extent{{Length: size, Source: &pb.Extent_BodyOffset{}}}}
	if o == 0 {
		op := createOp(dir, name, TypeRegular|0o644)
		op.GetCreate().Commit = c
		return fault.Kind(a.do(op, []byte(text)).Kind)
	}
	c.Object, c.Size = uint64(o), new(uint64)
	return fault.Kind(a.do(&pb.Operation{Op: &pb.Operation_Commit{Commit: c}}, []byte(text)).Kind)
}

func (a actor) mkdir(path string) fault.Kind {
	dir, _, name := a.find(path)
	return fault.Kind(a.do(createOp(dir, name, TypeDir|0o755), nil).Kind)
}

func (a actor) remove(path string) fault.Kind {
	dir, o, name := a.find(path)
	n, err := readInode(a.view, o)
	if err != nil || n == nil || dir == 0 {
		return fault.NotFound
	}
	return fault.Kind(a.do(&pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(dir), Name: []byte(name), Directory: n.IsDir()}}}, nil).Kind)
}

func (a actor) link(from, to string) fault.Kind {
	_, o, _ := a.find(from)
	into, _, as := a.find(to)
	if o == 0 || into == 0 {
		return fault.NotFound
	}
	return fault.Kind(a.do(&pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(o), Dir: uint64(into), Name: []byte(as)}}}, nil).Kind)
}

func (a actor) chmod(path string, mode uint32) fault.Kind {
	_, o, _ := a.find(path)
	if o == 0 {
		return fault.NotFound
	}
	return fault.Kind(a.do(setMode(uint64(o), mode), nil).Kind)
}

func (a actor) rename(from, to string) fault.Kind {
	dir, _, name := a.find(from)
	into, _, as := a.find(to)
	if dir == 0 || into == 0 {
		return fault.NotFound
	}
	return fault.Kind(a.do(&pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(dir), Name: []byte(name), NewDir: uint64(into), NewName: []byte(as)}}}, nil).Kind)
}

// conflict is the name that what lost one gets here, whatever the time.
func conflict(m map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range m {
		if at := strings.Index(name, " (conflict of side 1970"); at >= 0 {
			end := strings.Index(name, ")")
			name = name[:at] + "!" + name[end+1:]
		}
		out[name] = text
	}
	return out
}

func TestMerge_KeepsWhatBothWrote(t *testing.T) {
	big := strings.Repeat("x", 3*MaxInline)
	for _, x := range []struct {
		name         string
		active, side func(a actor)
		side2        func(a actor) // after the active
		want         map[string]string
		notes        int
	}{
		{"the side makes a file and a directory with one", nil, func(a actor) { a.write("new", "side"); a.mkdir("d2"); a.write("d2/f", "in") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "base", "new": "side", "d2": "/", "d2/f": "in"}, 0},
		{"the side writes", nil, func(a actor) { a.write("d/f", "side"); a.write("d/f", "side2") }, nil,
			map[string]string{"d": "/", "d/f": "side2", "g": "base"}, 0},
		{"the side writes much", nil, func(a actor) { a.write("d/f", big) }, nil,
			map[string]string{"d": "/", "d/f": big, "g": "base"}, 0},
		{"the side removes and renames", nil, func(a actor) { a.remove("d/f"); a.rename("g", "d/h") }, nil,
			map[string]string{"d": "/", "d/h": "base"}, 0},
		{"the side replaces", nil, func(a actor) { a.write("tmp", "side"); a.rename("tmp", "g") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "side"}, 0},
		{"the side makes and removes", nil, func(a actor) { a.write("new", "side"); a.remove("new") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "base"}, 0},
		{"the side removes a directory", nil, func(a actor) { a.remove("d/f"); a.remove("d") }, nil, map[string]string{"g": "base"}, 0},
		{"the active wrote last", func(a actor) { a.write("g", "active") }, func(a actor) { a.write("g", "side") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "active", "g!": "side"}, 1},
		{"the side wrote last", func(a actor) { a.write("g", "active") }, nil, func(a actor) { a.write("g", "side") },
			map[string]string{"d": "/", "d/f": "base", "g": "side", "g!": "active"}, 1},
		{"the side wrote last, much", func(a actor) { a.write("g", big) }, nil, func(a actor) { a.write("g", "side") },
			map[string]string{"d": "/", "d/f": "base", "g": "side", "g!": big}, 1},
		{"both wrote alike", func(a actor) { a.write("g", "alike") }, func(a actor) { a.write("g", "alike") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "alike"}, 0},
		{"both made a file, the active's is newer", func(a actor) { a.write("new.txt", "active") }, func(a actor) { a.write("new.txt", "side") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "base", "new.txt": "active", "new!.txt": "side"}, 1},
		{"both made a file, the side's is newer", func(a actor) { a.write("new.txt", "active") }, nil, func(a actor) { a.write("new.txt", "side") },
			map[string]string{"d": "/", "d/f": "base", "g": "base", "new.txt": "side", "new!.txt": "active"}, 1},
		{"both made one directory", func(a actor) { a.mkdir("n"); a.write("n/a", "active") }, func(a actor) { a.mkdir("n"); a.write("n/s", "side") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "base", "n": "/", "n/a": "active", "n/s": "side"}, 0},
		{"a directory and a file", func(a actor) { a.mkdir("n") }, nil, func(a actor) { a.write("n", "side") },
			map[string]string{"d": "/", "d/f": "base", "g": "base", "n": "/", "n!": "side"}, 1},
		{"a file and a directory", func(a actor) { a.write("n", "active") }, nil, func(a actor) { a.mkdir("n"); a.write("n/s", "side") },
			map[string]string{"d": "/", "d/f": "base", "g": "base", "n": "active", "n!": "/", "n!/s": "side"}, 1},
		{"the side removed what the active wrote", func(a actor) { a.write("g", "active") }, func(a actor) { a.remove("g") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "active"}, 1},
		{"the active removed what the side wrote", func(a actor) { a.remove("g") }, func(a actor) { a.write("g", "side") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g!": "side"}, 1},
		{"both removed", func(a actor) { a.remove("g") }, func(a actor) { a.remove("g") }, nil, map[string]string{"d": "/", "d/f": "base"}, 0},
		{"the active removed, and made another one", func(a actor) { a.remove("g"); a.write("g", "another") }, func(a actor) { a.remove("g") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "another"}, 0},
		{"the active removed the directory", func(a actor) { a.remove("d/f"); a.remove("d") }, func(a actor) { a.write("d/new", "side") }, nil,
			map[string]string{"d": "/", "d/new": "side", "g": "base"}, 1},
		{"the side removed a directory that has a name now", func(a actor) { a.write("d/new", "active") }, func(a actor) { a.remove("d/f"); a.remove("d") }, nil,
			map[string]string{"d": "/", "d/new": "active", "g": "base"}, 1},
		{"both moved", func(a actor) { a.rename("g", "ga") }, func(a actor) { a.rename("g", "gs") }, nil,
			map[string]string{"d": "/", "d/f": "base", "ga": "base", "gs": "base"}, 0},
		{"the side replaced what the active wrote", func(a actor) { a.write("g", "active") }, nil, func(a actor) { a.write("tmp", "side"); a.rename("tmp", "g") },
			map[string]string{"d": "/", "d/f": "base", "g": "side", "g!": "active"}, 1},
		{"the active replaced what the side wrote", nil, func(a actor) { a.write("g", "side") }, nil,
			map[string]string{"d": "/", "d/f": "base", "g": "side"}, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := newDesk(t)
			p := partedFrom(d)
			active, _ := p.actors()
			active.mkdir("d")
			active.write("d/f", "base")
			active.write("g", "base")
			p = partedFrom(d)
			active, side := p.actors()
			for _, step := range []struct {
				fn func(actor)
				a  actor
			}{{x.side, side}, {x.active, active}, {x.side2, side}} {
				if step.fn != nil {
					step.fn(step.a)
				}
			}
			p.merge()
			if got := conflict(p.here()); !maps.Equal(got, x.want) {
				t.Errorf("the slice has %v, want %v", got, x.want)
			}
			notes, err := Conflicts(p.places[1].state)
			if err != nil || len(notes) != x.notes {
				t.Errorf("%d conflicts are reported, %v, want %d: %v", len(notes), err, x.notes, notes)
			}
		})
	}
}

// TestMerge_LosesNothing has both sides do what they like, and checks that what was
// written last on either is there, and what neither touched but to remove it is not.
func TestMerge_LosesNothing(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(600) {
		d := newDesk(t)
		p := partedFrom(d)
		p.rng = rand.New(rand.NewPCG(seed, 7))
		active, _ := p.actors()
		for i := range 3 {
			active.mkdir(fmt.Sprint("d", i))
			for k := range 3 {
				active.write(fmt.Sprint("d", i, "/f", k), fmt.Sprint("base", i, k))
			}
		}
		base := p.here()
		p = &parted{desk: d, side: NewSide(1, p.places[1].state.clone(), nil, nil), serial: 1 << 62}
		active, side := p.actors()
		wrote := 0
		for range 30 {
			a, who := active, "active"
			if p.rng.IntN(2) == 0 {
				a, who = side, "side"
			}
			path := func() string { return fmt.Sprint("d", p.rng.IntN(4), "/f", p.rng.IntN(4)) }
			switch p.rng.IntN(10) {
			case 8:
				a.link(path(), path())
			case 9:
				a.chmod(path(), 0o600+uint32(p.rng.IntN(8)))
			case 0:
				a.mkdir(fmt.Sprint("d", p.rng.IntN(4)))
			case 1, 2:
				a.remove(path())
			case 3:
				a.remove(fmt.Sprint("d", p.rng.IntN(4)))
			case 4:
				a.rename(path(), path())
			default:
				wrote++
				text := fmt.Sprint(who, wrote)
				if p.rng.IntN(6) == 0 {
					text += strings.Repeat("+", MaxInline)
				}
				a.write(path(), text)
			}
		}
		was, atSide := p.here(), p.names(p.side, rootID, "")
		p.merge()
		got := p.here()
		p.checkMerged(seed, base, was, atSide, got, met)
		p.checkLinks(seed)
		if t.Failed() {
			t.Fatalf("seed %d:\nbase   %v\nactive %v\nside   %v\ngot    %.3000v", seed, base, was, atSide, got)
		}
	}
	for _, want := range []string{"written", "removed", "conflict"} {
		if met[want] == 0 {
			t.Errorf("%q was never met: %v", want, met)
		}
	}
}

func (p *parted) checkMerged(seed uint64, base, active, side, got map[string]string, met map[string]int) {
	p.t.Helper()
	texts := map[string]bool{}
	for name, text := range got {
		texts[text] = true
		if strings.Contains(name, "(conflict of") {
			met["conflict"]++
		}
	}
	for _, m := range []map[string]string{active, side} {
		for name, text := range m {
			if text != "/" && !strings.HasPrefix(text, "base") {
				met["written"]++
				if !texts[text] {
					p.t.Errorf("seed %d: %s with %.20q is lost", seed, name, text)
				}
			}
		}
	}
	for name, text := range base {
		_, a := active[name]
		_, s := side[name]
		if now, is := got[name]; text != "/" && !a && !s && is {
			p.t.Errorf("seed %d: %s was removed on both sides and is there, with %.20q", seed, name, now)
		}
		if text != "/" && got[name] == text && (a && active[name] == text && !holds(side, text) || s && side[name] == text && !holds(active, text)) {
			p.t.Errorf("seed %d: %s was removed on one side, and is there", seed, name)
		}
		if text != "/" && holds(active, text) && holds(side, text) && !texts[text] {
			p.t.Errorf("seed %d: %s with %.20q is on both sides, and is lost", seed, name, text)
		}
		if !holds(active, text) && !holds(side, text) {
			met["removed"]++
			if texts[text] {
				p.t.Errorf("seed %d: %.20q came back", seed, text)
			}
		}
	}
}

func holds(m map[string]string, text string) bool {
	return slices.Contains(slices.Collect(maps.Values(m)), text)
}

// checkLinks checks that each object has as many names as it says.
func (p *parted) checkLinks(seed uint64) {
	p.t.Helper()
	v := p.places[1].state
	names, dirs := map[ids.Object]uint32{}, map[ids.Object]uint32{rootID: 2}
	for key, value := range v.values {
		if key[0] == keyEntry {
			e, _, _ := firstEntry(value)
			names[e.Object]++
			if e.Type == TypeDir {
				dirs[objectOf([]byte(key))]++
				dirs[e.Object] += 2
			}
		}
	}
	for key := range v.values {
		if key[0] != keyInode {
			continue
		}
		o := objectOf([]byte(key))
		n, err := readInode(v, o)
		if err != nil {
			p.t.Fatal(err)
		}
		want := names[o]
		if n.IsDir() {
			want = dirs[o]
		}
		if n.Nlink != want {
			p.t.Errorf("seed %d: object %d has %d links, and %d names", seed, o, n.Nlink, want)
		}
	}
}

// TestSide_SplicesOnlyIntoWhatTheWriterKnows commits at a side to a file of which the
// side lacks what the client wrote before.
func TestSide_SplicesOnlyIntoWhatTheWriterKnows(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	f := d.id("/f")
	d.write(f, 0, "base", fault.None)
	p := partedFrom(d)
	old := d.attr("/f").Version
	commit := func(base, side uint64, text string) *pb.Result {
		op := commitOp(uint64(f), 4, len(text))
		op.Base, op.SideBase = base, side
		return p.atSide(op, []byte(text))
	}
	r := p.atActive(commitOp(uint64(f), 4, 6), []byte(" later")) // which the side has not heard of
	if got := fault.Kind(commit(r.Attr.Version, 0, "x").Kind); got != fault.Again {
		t.Errorf("behind a version of the active that is not there: got %v, want Again", got)
	}
	if got := fault.Kind(commit(old, 1<<62+99, "x").Kind); got != fault.Again {
		t.Errorf("behind a version of another side log: got %v, want Again", got)
	}
	for what, op := range map[string]*pb.Operation{"rename": d.rename("/f", "/g"), "link": {Op: &pb.Operation_Link{
		Link: &pb.Link{Object: uint64(f), Dir: uint64(rootID), Name: []byte("h")}}}} {
		op.Base = r.Attr.Version
		if got := fault.Kind(p.atSide(op, nil).Kind); got != fault.Again {
			t.Errorf("%s before its content: got %v, want Again", what, got)
		}
	}
	first := commit(old, 0, "one")
	if first.Kind != 0 || !IsOfSide(first.Attr) {
		t.Fatalf("behind a version that is there: %v", first)
	}
	if got := fault.Kind(commit(old, first.Attr.Version+1, "x").Kind); got != fault.Again {
		t.Errorf("behind a version of this side log that is not there: got %v, want Again", got)
	}
	if got := commit(old, first.Attr.Version, "two"); got.Kind != 0 {
		t.Errorf("behind its own version: %v", got)
	}
	p.merge()
	again := partedFrom(d)
	p.side, p.serial = again.side, again.serial
	if got := commit(old, first.Attr.Version, "end"); got.Kind != 0 {
		t.Errorf("once the side is merged: %v", got)
	}
}
