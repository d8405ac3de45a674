package cue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"pgregory.net/rapid"
)

func TestParse_TakesWhatTheGrammarAllows(t *testing.T) {
	tests := []struct {
		in   string
		want Cue
	}{
		{".Site=tokyo", Cue{Name: Site, Text: "tokyo"}},
		{".site=B", Cue{Name: Site, Text: "B"}},
		{".SITE=Random", Cue{Name: Site, Text: "random"}},
		{".KeepTogether", Cue{Name: KeepTogether}},
		{".keeptogether", Cue{Name: KeepTogether}},
		{".RepSites=2", Cue{Name: RepSites, Number: 2}},
		{".RepLevel=16", Cue{Name: RepLevel, Number: 16}},
		{".SyncLevel=0", Cue{Name: SyncLevel}},
		{".SyncLevel=1", Cue{Name: SyncLevel, Number: 1}},
		{".SyncLevel=QUORUM", Cue{Name: SyncLevel, Number: Quorum}},
		{".EventualConsistency", Cue{Name: EventualConsistency}},
		{".MaxTime=1000", Cue{Name: MaxTime, Number: 1000}},
		{".WholeFile", Cue{Name: WholeFile}},
		{".HotSpot", Cue{Name: Hotspot}},
		{".WriteOnce", Cue{Name: WriteOnce}},
		{".Coherence=60", Cue{Name: Coherence, Number: 60}},
		{".Snapshot=before-upgrade", Cue{Name: Snapshot, Text: "before-upgrade"}},
		{".Snapshot=-1h", Cue{Name: Snapshot, Text: "-1h"}},
		{".Snapshot=2026-01-31T12:00", Cue{Name: Snapshot, Text: "2026-01-31T12:00"}},
		{".Snapshot=2026-01-31T12:00:00+02:00", Cue{Name: Snapshot, Text: "2026-01-31T12:00:00+02:00"}},
	}
	seen := map[Name]bool{}
	for _, tt := range tests {
		got, ok, err := Parse(tt.in)
		if got != tt.want || !ok || err != nil {
			t.Errorf("Parse(%q) = %+v, %v, %v, want %+v", tt.in, got, ok, err, tt.want)
		}
		again, ok, err := Parse(got.String())
		if again != got || !ok || err != nil {
			t.Errorf("Parse(%q) = %+v, %v, %v, want %+v back", got.String(), again, ok, err, got)
		}
		seen[got.Name] = true
	}
	for _, n := range Names() {
		if !seen[n] {
			t.Errorf("no example of %s", n)
		}
	}
}

func TestParse_LeavesOrdinaryNamesAlone(t *testing.T) {
	for _, in := range []string{
		"", ".", "..", "...", "Site=tokyo", ".git", ".sites=2", ".Sitee", ".Site tokyo", ".Sit", ".=", ".=Site", ". Site=x",
		".RepLevel2", ".bashrc", "..Site=x", ".ſite=x", ".Site\x00=x", ".snapshots", "a.Site=x", ".HotspotX",
	} {
		if c, ok, err := Parse(in); ok || err != nil {
			t.Errorf("Parse(%q) = %+v, %v, %v, want an ordinary name", in, c, ok, err)
		}
		if _, ok, err := ParseBytes([]byte(in)); ok || err != nil {
			t.Errorf("ParseBytes(%q) is a cue, want an ordinary name", in)
		}
	}
}

func TestParse_NamesTheBadValueAndWhatIsAllowed(t *testing.T) {
	const copies = "a whole number from 1 to 16"
	const ages = "a time such as 2026-01-31T12:00 (local, or with a zone), an age such as -1h (s, m, h, d, w), or a name that a snapshot has"
	const sites = "a site's name (letters, digits, '-', '_' and '.'), or random"
	tests := []struct{ in, want string }{
		{".Site", ".Site: its value is missing; allowed: " + sites},
		{".Site=", ".Site: its value is missing; allowed: " + sites},
		{".site=x'; DROP TABLE", `.Site: "x'; DROP TABLE" is no site's name; allowed: ` + sites},
		{".Site=../../etc", `.Site: "../../etc" is no site's name; allowed: ` + sites},
		{".Site=..", `.Site: ".." is no site's name; allowed: ` + sites},
		{".Site=a\x00b", `.Site: "a\x00b" is no site's name; allowed: ` + sites},
		{".KeepTogether=yes", `.KeepTogether: it takes no value, got "yes"; allowed: no value`},
		{".KeepTogether=", `.KeepTogether: it takes no value, got ""; allowed: no value`},
		{".RepSites=0", `.RepSites: "0" is out of range; allowed: ` + copies},
		{".RepLevel=1000000", `.RepLevel: "1000000" is out of range; allowed: ` + copies},
		{".RepLevel=-1", `.RepLevel: "-1" is not a whole number; allowed: ` + copies},
		{".RepLevel=+1", `.RepLevel: "+1" is not a whole number; allowed: ` + copies},
		{".RepLevel=01", `.RepLevel: "01" is not a whole number; allowed: ` + copies},
		{".RepLevel=2=3", `.RepLevel: "2=3" is not a whole number; allowed: ` + copies},
		{".RepLevel=quorum", `.RepLevel: "quorum" is not a whole number; allowed: ` + copies},
		{".SyncLevel=all", `.SyncLevel: "all" is not a whole number; allowed: a whole number from 0 to 16, or quorum`},
		{".SyncLevel=17", `.SyncLevel: "17" is out of range; allowed: a whole number from 0 to 16, or quorum`},
		{".MaxTime=-1", `.MaxTime: "-1" is not a whole number; allowed: whole milliseconds from 1 to 86400000`},
		{".MaxTime=1e309", `.MaxTime: "1e309" is not a whole number; allowed: whole milliseconds from 1 to 86400000`},
		{".MaxTime=99999999999999999999", `.MaxTime: "99999999999999999999" is out of range; allowed: whole milliseconds from 1 to 86400000`},
		{".EventualConsistency=1", `.EventualConsistency: it takes no value, got "1"; allowed: no value`},
		{".WholeFile=x", `.WholeFile: it takes no value, got "x"; allowed: no value`},
		{".Hotspot=x", `.Hotspot: it takes no value, got "x"; allowed: no value`},
		{".WriteOnce=x", `.WriteOnce: it takes no value, got "x"; allowed: no value`},
		{".Coherence=0", `.Coherence: "0" is out of range; allowed: whole seconds from 1 to 86400`},
		{".Snapshot=-1", `.Snapshot: "-1" is no age; allowed: ` + ages},
		{".Snapshot=-0h", `.Snapshot: "-0h" is no age; allowed: ` + ages},
		{".Snapshot=-99999w", `.Snapshot: "-99999w" is no age; allowed: ` + ages},
		{".Snapshot=a:b", `.Snapshot: "a:b" is no time; allowed: ` + ages},
		{".Site=" + strings.Repeat("x", 129), ".Site: its value has 129 bytes, more than 128; allowed: " + sites},
	}
	for _, tt := range tests {
		_, ok, err := Parse(tt.in)
		if !ok || !fault.Is(err, fault.Invalid) {
			t.Errorf("Parse(%q) = %v, %v, want an Invalid fault", tt.in, ok, err)
			continue
		}
		if got := strings.TrimPrefix(err.Error(), "cue.Parse: "); got != tt.want {
			t.Errorf("Parse(%q) says\n  %s, want\n  %s", tt.in, got, tt.want)
		}
	}
}

func TestMoment_TellsNamesTimesAndAgesApart(t *testing.T) {
	tests := []struct{ in, at, age string }{
		{".Snapshot=nightly", "0001-01-01T00:00:00Z", "0s"},
		{".Snapshot=2026-13-45", "0001-01-01T00:00:00Z", "0s"}, // no date, so a name
		{".Snapshot=2026-01-31", "2026-01-30T22:00:00Z", "0s"},
		{".Snapshot=2026-01-31T12:30", "2026-01-31T10:30:00Z", "0s"},
		{".Snapshot=2026-01-31T12:30:07", "2026-01-31T10:30:07Z", "0s"},
		{".Snapshot=2026-01-31T12.30", "2026-01-31T10:30:00Z", "0s"},
		{".Snapshot=2026-01-31T12.30.07", "2026-01-31T10:30:07Z", "0s"},
		{".Snapshot=2026-01-31T12:30Z", "2026-01-31T12:30:00Z", "0s"},
		{".Snapshot=2026-01-31T12:30:07-05:00", "2026-01-31T17:30:07Z", "0s"},
		{".Snapshot=-90m", "0001-01-01T00:00:00Z", "1h30m0s"},
		{".Snapshot=-2d", "0001-01-01T00:00:00Z", "48h0m0s"},
	}
	for _, tt := range tests {
		c, _, err := Parse(tt.in)
		at, age := c.Moment(time.FixedZone("two hours east", 7200))
		if got := at.UTC().Format("2006-01-02T15:04:05Z"); err != nil || got != tt.at || age.String() != tt.age {
			t.Errorf("%s is %s and %s (%v), want %s and %s", tt.in, got, age, err, tt.at, tt.age)
		}
	}
}

// TestAffects_EqualsTableTwo writes WheelFS's Table 2 out again, cell by cell.
func TestAffects_EqualsTableTwo(t *testing.T) {
	const head = "open close read write stat mkdir rmdir link unlink readdir chmod"
	table := map[Name]string{
		Site:                "x . . . . x . . . . .",
		KeepTogether:        "x . . . . x . . . . .",
		RepSites:            "x x . x . x x x x . x",
		RepLevel:            "x x . x . x x x x . x",
		SyncLevel:           "x x . x . x x x x . x",
		EventualConsistency: "x x x x x x x x x x x",
		MaxTime:             "x x x x x x x x x x x",
		WholeFile:           ". . x . . . . . . x .",
		Hotspot:             ". . x . . . . . . . .",
		// Not in the paper:
		WriteOnce: "x . . . . x . . . . .",
		Coherence: "x x . x . x x x x . x",
		Snapshot:  "x x x x x x x x x x x",
	}
	columns := strings.Fields(head)
	if got := len(Calls()); got != len(columns) {
		t.Fatalf("there are %d calls, want %d", got, len(columns))
	}
	for _, n := range Names() {
		cells := strings.Fields(table[n])
		if len(cells) != len(columns) {
			t.Errorf("%s has a row of %d cells in this test's table, want %d", n, len(cells), len(columns))
			continue
		}
		for i, call := range Calls() {
			if got, want := n.Affects(call), cells[i] == "x"; got != want {
				t.Errorf("%s affects %s: got %v, want %v", n, columns[i], got, want)
			}
		}
	}
}

func TestName_SaysIfHonouredAndPersistent(t *testing.T) {
	honoured := map[Name]bool{Site: true, KeepTogether: true, RepSites: true, RepLevel: true, SyncLevel: true, MaxTime: true, WholeFile: true, EventualConsistency: true, Hotspot: true, WriteOnce: true, Coherence: true, Snapshot: true}
	persistent := map[Name]bool{Site: true, KeepTogether: true, RepSites: true, RepLevel: true, WriteOnce: true, Coherence: true}
	example := map[Name]int64{RepSites: 1, RepLevel: 1, SyncLevel: 1, MaxTime: 1, Coherence: 1}
	for _, n := range Names() {
		if n.Honoured() != honoured[n] || n.Persistent() != persistent[n] {
			t.Errorf("%s: honoured %v, persistent %v, want %v, %v", n, n.Honoured(), n.Persistent(), honoured[n], persistent[n])
		}
		s, err := Set{}.With(Cue{Name: n, Text: "x", Number: example[n]})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Supported()
		switch {
		case honoured[n] && err != nil:
			t.Errorf("%s is not supported: %v", n, err)
		case !honoured[n] && !fault.Is(err, fault.NotSupported):
			t.Errorf("%s answers %v, want NotSupported", n, err)
		case !honoured[n] && !strings.Contains(err.Error(), n.String()):
			t.Errorf("%q does not name %s", err, n)
		}
	}
}

func TestParsePath_LaterCueOverridesEarlierOne(t *testing.T) {
	s, err := ParsePath("/mail/.Site=a/.RepLevel=3/x/.KeepTogether/.replevel=2/.SyncLevel=quorum/.Site=b/inbox")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.String(), ".Site=b/.KeepTogether/.RepLevel=2/.SyncLevel=quorum"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.Sync(); got != SyncQuorum {
		t.Errorf("sync level %#x, want a quorum", got)
	}
	if got, want := s.Only(Read).String(), ""; got != want {
		t.Errorf("cues for read: got %q, want %q", got, want)
	}
	if got, want := s.Only(Mkdir).String(), s.String(); got != want {
		t.Errorf("cues for mkdir: got %q, want %q", got, want)
	}
	if got, want := s.Only(Write).String(), ".RepLevel=2/.SyncLevel=quorum"; got != want {
		t.Errorf("cues for write: got %q, want %q", got, want)
	}
}

func TestParsePath_BoundsTheCues(t *testing.T) {
	path := strings.Repeat(".RepLevel=2/", MaxPerPath)
	if _, err := ParsePath(path); err != nil {
		t.Fatalf("%d cues: %v", MaxPerPath, err)
	}
	if _, err := ParsePath(path + ".RepLevel=2"); !fault.Is(err, fault.Invalid) {
		t.Errorf("%d cues: got %v, want Invalid", MaxPerPath+1, err)
	}
	if _, err := ParsePath(strings.Repeat(".RepLevel=2/", 10000)); !fault.Is(err, fault.Invalid) {
		t.Errorf("10,000 cues: got %v, want Invalid", err)
	}
}

// anyCue draws a valid cue.
func anyCue(t *rapid.T) Cue {
	c := Cue{Name: rapid.SampledFrom(Names()).Draw(t, "name")}
	switch r := c.Name.row(); {
	case c.Name == SyncLevel && rapid.Bool().Draw(t, "quorum"):
		c.Number = Quorum
	case r.shape == numberValue:
		c.Number = rapid.Int64Range(r.least, r.most).Draw(t, "number")
	case r.shape == textValue:
		c.Text = rapid.StringMatching(`[a-z0-9][a-zA-Z0-9_.-]{0,20}`).Draw(t, "text")
	}
	return c
}

func TestSet_KeepsTheLastCueOfEachName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cues := rapid.SliceOfN(rapid.Custom(anyCue), 0, MaxPerPath).Draw(t, "cues")
		var s Set
		twin := map[Name]Cue{}
		for _, c := range cues {
			var err error
			if s, err = s.With(c); err != nil {
				t.Fatal(err)
			}
			twin[c.Name] = c
		}
		for _, n := range Names() {
			want, wantOK := twin[n]
			if got, ok := s.Get(n); ok != wantOK || got != want {
				t.Fatalf("%s: got %+v, %v, want %+v, %v", n, got, ok, want, wantOK)
			}
		}
		again, err := ParsePath(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%s parses to %s, %v", s, again, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		".Site=tokyo", ".MaxTime=5", ".MaxTime=-1", ".MaxTime=1e309", ".Site=x'; DROP TABLE", ".Site=../../etc",
		".Snapshot=-1h", ".Snapshot=2026-01-31", ".%2e%2e", ".Site=\x00", ".RepLevel=1000000", ".=", ".SyncLevel=quorum",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, ok, err := Parse(in)
		if !ok {
			if err != nil || c != (Cue{}) {
				t.Fatalf("an ordinary name answers %+v, %v", c, err)
			}
			return
		}
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("%v is not Invalid", err)
			}
			return
		}
		again, ok, err := Parse(c.String())
		if again != c || !ok || err != nil {
			t.Fatalf("%q renders as %q, which parses to %+v, %v, %v", in, c, again, ok, err)
		}
		if _, err := (Set{}).With(c); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleParse() {
	_, _, err := Parse(".RepLevel=many")
	fmt.Println(err)
	// Output: cue.Parse: .RepLevel: "many" is not a whole number; allowed: a whole number from 1 to 16
}

func TestSync_OfNoneIsOneForThoseWhoMustWait(t *testing.T) {
	for path, want := range map[string]struct {
		level uint32
		lazy  bool
	}{"": {SyncAll, false}, ".SyncLevel=0": {1, true}, ".SyncLevel=1": {1, false}, ".SyncLevel=quorum": {SyncQuorum, false}} {
		s, err := ParsePath("/" + path)
		if err != nil {
			t.Fatal(err)
		}
		if s.Sync() != want.level || s.Lazy() != want.lazy {
			t.Errorf("%s: got level %d and lazy %v", path, s.Sync(), s.Lazy())
		}
	}
}

func TestTerms_FollowThePath(t *testing.T) {
	for path, want := range map[string]Terms{
		"a/b":                                {},
		".MaxTime=200":                       {Limit: 200 * time.Millisecond},
		".EventualConsistency":               {Limit: EventualLimit, Eventual: true},
		".EventualConsistency/.MaxTime=50":   {Limit: 50 * time.Millisecond, Eventual: true},
		".MaxTime=3000/.EventualConsistency": {Limit: 3 * time.Second, Eventual: true},
	} {
		s, err := ParsePath(path)
		if got := s.Terms(); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", path, got, err, want)
		}
	}
}
