package rebuild_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
)

// roster has the nodes a, b and c.
func roster() []geoconfig.Node {
	return []geoconfig.Node{{ID: "a", Site: "x", Revision: 1}, {ID: "b", Site: "x", Revision: 1}, {ID: "c", Site: "x", Revision: 1}}
}

// row is one of level 3 with the members a, b and c; states has a letter for each.
func row(epoch ids.Epoch, active ids.Node, states string) geoconfig.SliceRow {
	r := geoconfig.SliceRow{ID: 7, Epoch: epoch, Active: active, Generation: 1, Policy: geoconfig.Policy{Home: "x", Level: 3, Kind: geoconfig.Ordinary}}
	for i, s := range states {
		m := geoconfig.Member{Node: ids.Node(rune('a' + i)), State: geoconfig.Normal}
		if s == 'F' {
			m.State = geoconfig.Failed
		}
		r.Members = append(r.Members, m)
	}
	return r
}

// remembers is a copy of a node at a revision.
func remembers(id ids.Node, rev ids.Revision, rows ...geoconfig.SliceRow) rebuild.Copy {
	return rebuild.Copy{Node: id, Floor: 2, Rows: geoconfig.Rows{
		Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1}, Sites: []geoconfig.Site{{Name: "x"}}, Nodes: roster(), Slices: rows, Revision: rev}}
}

func options() rebuild.Options {
	return rebuild.Options{Generation: 2, Who: "admin", At: time.Unix(5, 0)}
}

func planned(t *testing.T, o rebuild.Options, copies ...rebuild.Copy) *rebuild.Plan {
	t.Helper()
	p, err := rebuild.New(copies, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNew_TakesTheTablesOfTheNewestCopy(t *testing.T) {
	old, late := remembers("a", 5), remembers("b", 9)
	old.Rows.Users = []geoconfig.User{{Name: "revoked"}, {Name: "ann", UID: 1}}
	late.Rows.Users = []geoconfig.User{{Name: "ann", UID: 2}}
	for _, copies := range [][]rebuild.Copy{{old, late}, {late, old}} {
		p := planned(t, options(), copies...)
		if p.From != "b" || p.Seen != 9 || !reflect.DeepEqual(p.Users, late.Rows.Users) {
			t.Errorf("got users %+v of %s at %d, want those of b at 9", p.Users, p.From, p.Seen)
		}
		if p.Cluster.Generation != 2 || !slices.Equal(p.Silent, []ids.Node{"c"}) {
			t.Errorf("got generation %d and silent %v, want 2 and c", p.Cluster.Generation, p.Silent)
		}
	}
}

func TestNew_JoinsTheSnapshotsOfAllCopies(t *testing.T) {
	one, two := remembers("a", 5), remembers("b", 9)
	one.Rows.Records = []geoconfig.Record{{Kind: "snapshot", Name: "new", Revision: 6}, {Kind: "snapshot", Name: "again", Revision: 6}}
	two.Rows.Records = []geoconfig.Record{{Kind: "snapshot", Name: "again", Revision: 3}, {Kind: "snapshot", Name: "old", Revision: 2}}
	got := planned(t, options(), one, two).Records
	want := []geoconfig.Record{one.Rows.Records[1], one.Rows.Records[0], two.Rows.Records[1]}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNew_RefusesWhatMakesNoStore(t *testing.T) {
	other := remembers("b", 9)
	other.Rows.Cluster = &geoconfig.Cluster{ID: "c2", Generation: 1}
	for name, c := range map[string]struct {
		copies     []rebuild.Copy
		generation ids.Generation
		want       fault.Kind
	}{
		"no copy":           {nil, 2, fault.NotFound},
		"an empty copy":     {[]rebuild.Copy{{Node: "a"}}, 2, fault.NotFound},
		"two clusters":      {[]rebuild.Copy{remembers("a", 5), other}, 2, fault.WrongCluster},
		"an old generation": {[]rebuild.Copy{remembers("a", 5)}, 1, fault.Invalid},
	} {
		o := options()
		o.Generation = c.generation
		if _, err := rebuild.New(c.copies, o); !fault.Is(err, c.want) {
			t.Errorf("%s: got %v, want kind %v", name, err, c.want)
		}
	}
}

func TestGeneration_IsAbovePromisesToo(t *testing.T) {
	one, two := remembers("a", 5), remembers("b", 9)
	two.Floor = 6
	if got := rebuild.Generation([]rebuild.Copy{one, two}); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

// TestNew_DecidesEachSlice names who answers, what they know, and what becomes of it.
func TestNew_DecidesEachSlice(t *testing.T) {
	two := row(4, "a", "NNN")
	two.Policy.Level, two.Members = 2, two.Members[:2]
	hears := row(4, "a", "NNN")
	hears.Hear = 3
	for name, c := range map[string]struct {
		row     geoconfig.SliceRow
		answer  string
		accept  bool
		verdict rebuild.Verdict
		members string // the normal ones, the active first
		count   int
	}{
		"all answer":                       {row(4, "a", "NNN"), "abc", false, rebuild.Kept, "abc", 3},
		"a failed member is silent":        {row(4, "a", "NNF"), "ab", false, rebuild.Kept, "ab", 3},
		"one of three is silent":           {row(4, "a", "NNN"), "ab", false, rebuild.Reduced, "ab", 3},
		"the active of three is silent":    {row(4, "a", "NNN"), "bc", false, rebuild.Reduced, "bc", 3},
		"one of two normal ones is silent": {row(4, "a", "NNF"), "ac", false, rebuild.Waiting, "ab", 3},
		"two of three are silent":          {row(4, "a", "NNN"), "b", false, rebuild.Waiting, "abc", 3},
		"a takeover would hear too few":    {hears, "ab", false, rebuild.Waiting, "abc", 3},
		"one of a pair is silent":          {two, "bc", false, rebuild.Waiting, "ab", 2},
		"that loss is accepted":            {two, "bc", true, rebuild.Lossy, "b", 1},
		"the loss of two is accepted":      {row(4, "a", "NNN"), "b", true, rebuild.Lossy, "b", 1},
		"all normal ones are silent":       {row(4, "a", "NFF"), "bc", true, rebuild.Waiting, "a", 3},
		"an unneeded word":                 {row(4, "a", "NNN"), "abc", true, rebuild.Kept, "abc", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var copies []rebuild.Copy
			for _, id := range c.answer {
				copies = append(copies, remembers(ids.Node(id), 5, c.row))
			}
			o := options()
			o.Accept = func(ids.Slice) bool { return c.accept }
			got := planned(t, o, copies...).Slices[0]
			normal := string(got.Row.Active)
			for _, n := range got.Row.Normals() {
				if n != got.Row.Active {
					normal += string(n)
				}
			}
			if got.Verdict != c.verdict || normal != c.members || len(got.Row.Members) != c.count {
				t.Errorf("got %s with %s of %d, want %s with %s of %d", got.Verdict, normal, len(got.Row.Members), c.verdict, c.members, c.count)
			}
			moved := got.Row.Epoch == c.row.Epoch+rebuild.EpochLeap && got.Row.Generation == 2
			if same := reflect.DeepEqual(got.Row, c.row); moved == (c.verdict == rebuild.Waiting) || same != (c.verdict == rebuild.Waiting) {
				t.Errorf("the row is %+v", got.Row)
			}
			if got.Row.Hear > len(got.Row.Normals()) && c.verdict != rebuild.Waiting {
				t.Errorf("a takeover must hear %d of %s", got.Row.Hear, normal)
			}
		})
	}
}

func TestNew_TakesTheHighestRow(t *testing.T) {
	reborn := row(3, "c", "NNN")
	reborn.Generation = 2
	for name, c := range map[string]struct {
		rows []geoconfig.SliceRow
		want ids.Node
	}{
		"of epochs":                {[]geoconfig.SliceRow{row(4, "a", "NNN"), row(6, "b", "NNN"), row(5, "c", "NNN")}, "b"},
		"of generations, at first": {[]geoconfig.SliceRow{row(4, "a", "NNN"), row(6, "b", "NNN"), reborn}, "c"},
	} {
		var copies []rebuild.Copy
		for i, r := range c.rows {
			copies = append(copies, remembers(ids.Node(rune('a'+i)), 5, r))
		}
		o := options()
		o.Generation = 3
		if got := planned(t, o, copies...).Slices; len(got) != 1 || got[0].Was.Active != c.want {
			t.Errorf("%s: got %+v, want the row of %s", name, got, c.want)
		}
	}
}

// TestNew_LosesNothingUnsaid tries every set of silent nodes against every later row
// that they may know alone: one that a silent normal member could have swapped, and
// by which only silent nodes had to acknowledge. No slice goes on then by itself.
func TestNew_LosesNothingUnsaid(t *testing.T) {
	for level := 1; level <= 3; level++ {
		for states := range 8 {
			was := row(4, "a", "FFF")
			was.Policy.Level = level
			for i := range was.Members {
				if states>>i&1 == 1 {
					was.Members[i].State, was.Active = geoconfig.Normal, was.Members[i].Node
				}
			}
			for answer := 1; answer < 8 && states != 0; answer++ {
				var copies []rebuild.Copy
				for i := range 3 {
					if answer>>i&1 == 1 {
						copies = append(copies, remembers(ids.Node(rune('a'+i)), 5, was))
					}
				}
				silent := 7 &^ answer
				hidden := false // any later row by which silent nodes alone went on
				for later := 1; later < 8; later++ {
					enough := slices.Contains([]int{1, 2, 4}, later) && level < 3 || !slices.Contains([]int{1, 2, 4}, later)
					hidden = hidden || enough && later&^silent == 0 && later&states != 0
				}
				got := planned(t, options(), copies...).Slices[0]
				if hidden && got.Verdict != rebuild.Waiting {
					t.Errorf("level %d, normal %03b, answered %03b: %s, and a later row may be hidden", level, states, answer, got.Verdict)
				}
			}
		}
	}
}

func TestDump_FillsAStoreThatAllFollow(t *testing.T) {
	c := remembers("a", 70, row(4, "a", "NNN"))
	c.Rows.Cluster.Secret = fmt.Sprintf("%064x", 7)
	c.Rows.Users = []geoconfig.User{{Name: "ann", Key: "k1", UID: 1, GIDs: []uint32{1}, Revision: 3}}
	c.Rows.Records = []geoconfig.Record{{Kind: "snapshot", Name: "s", Form: 1, Body: []byte(`{}`)}}
	for i := range 100 {
		c.Rows.Sites = append(c.Rows.Sites, geoconfig.Site{Name: ids.Site(fmt.Sprint("s", i))})
	}
	b := c
	b.Node = "b"
	p := planned(t, options(), c, b)
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "rebuilt.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Export(t.Context(), p, out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := embedded.Open(t.Context(), filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Load(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Follow(t.Context(), 70, 0)
	if err != nil || rows.More || len(rows.Sites) != 101 || len(rows.Nodes) != 3 || len(rows.Slices) != 1 || len(rows.Users) != 1 {
		t.Errorf("a node at revision 70 gets %+v, %v", rows, err)
	}
	if got := rows.Slices[0]; rows.Cluster.Generation != 2 || rows.Cluster.Secret == "" || got.Generation != 2 || got.Epoch != 4+rebuild.EpochLeap || got.Revision <= 70 {
		t.Errorf("got %+v in generation %d", got, rows.Cluster.Generation)
	}
	q := geoconfig.Query{Records: 10, RecordKind: "snapshot", Audit: 10}
	if rows, err = s.Read(t.Context(), q); err != nil || len(rows.Records) != 1 || len(rows.Audit) != 1 || rows.Audit[0].Action != "geo-config.rebuild" {
		t.Errorf("got %+v, %v", rows, err)
	}
	// The store takes changes: of this generation, and of no earlier one.
	next := row(p.Slices[0].Row.Epoch+1, "b", "FNN")
	swap := geoconfig.Batch{Key: "late", Slices: []geoconfig.SliceSwap{{From: next.Epoch - 1, Row: next}}}
	if _, err := s.Apply(t.Context(), swap); !fault.Is(err, fault.WrongCluster) {
		t.Errorf("a swap of the lost generation: %v", err)
	}
	swap.Slices[0].Row.Generation = 2
	if _, err := s.Apply(t.Context(), swap); err != nil {
		t.Errorf("a swap of the new generation: %v", err)
	}
}

func TestSettle_LetsGoOnWhatIsComplete(t *testing.T) {
	stored := row(4, "a", "NNN")
	later := row(6, "c", "FNN")
	settled := row(4, "a", "NNN")
	settled.ID, settled.Generation = 8, 2
	o := options()
	for name, c := range map[string]struct {
		copies  []rebuild.Copy
		verdict rebuild.Verdict
		active  ids.Node
	}{
		"they are still silent":  {[]rebuild.Copy{remembers("a", 5, stored)}, rebuild.Waiting, "a"},
		"all are back":           {[]rebuild.Copy{remembers("a", 5, stored), remembers("b", 5, stored), remembers("c", 5, stored)}, rebuild.Kept, "a"},
		"one knows a later row":  {[]rebuild.Copy{remembers("b", 5, stored), remembers("c", 5, later)}, rebuild.Kept, "c"},
		"that one alone is back": {[]rebuild.Copy{remembers("c", 5, later)}, rebuild.Waiting, "c"},
	} {
		got := rebuild.Settle([]geoconfig.SliceRow{stored, settled}, c.copies, roster(), o)
		if len(got) != 1 || got[0].Was.ID != 7 || got[0].Verdict != c.verdict || got[0].Row.Active != c.active {
			t.Errorf("%s: got %+v, want slice 7 %s with %s", name, got, c.verdict, c.active)
		}
	}
}
