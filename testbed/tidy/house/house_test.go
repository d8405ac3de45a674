package house

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var measured = sync.OnceValues(func() ([]Figure, error) { return Measure("testdata") })

// figure returns one figure of testdata.
func figure(t *testing.T, measure, subject string) Figure {
	t.Helper()
	figures, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.Measure == measure && f.Subject == subject {
			return f
		}
	}
	t.Fatalf("no figure %s of %s", measure, subject)
	return Figure{}
}

func TestMeasure_FindsTheValuesOfTestdata(t *testing.T) {
	for _, c := range []struct {
		measure, subject string
		want             float64
	}{
		{"methods", "wide.Wide", 2},
		{"facade", "wide.Front", 1},
		{"fields", "wide.Wide", 5},
		{"function", "wide.Wide.Long", 4},
		{"file", "knot/leaf.go", 3},
		{"short", "knot/leaf.go", 3},
		{"knot", "knot", 2},
		{"name", "same", 2},
		{"name", "knot", 1},
		{"op", "ops", 1},
		{"vocabulary", "ops", 2},
		{"vocabulary", "all", 2},
		{"test-long", "wide", 1},
		{"test-form", "wide", 1},
		{"doc-long", "README.md", 1},
		{"doc-mean", "README.md", 6.9},
	} {
		if got := figure(t, c.measure, c.subject); got.Value != c.want {
			t.Errorf("%s of %s: got %v, want %v (%v)", c.measure, c.subject, got.Value, c.want, got.Places)
		}
	}
}

func TestKnot_HasOnlyOwnFilesThatLinuxBuilds(t *testing.T) {
	got := figure(t, "knot", "knot")
	if !slices.Equal(got.Places, []string{"client.go", "resolve.go"}) || got.Detail != "4 files" {
		t.Errorf("got %v of %s, want client.go and resolve.go of 4 files", got.Places, got.Detail)
	}
}

func TestWalk_CountsReturns(t *testing.T) {
	tr, err := read("testdata")
	if err == nil {
		err = tr.resolve()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tr.rooms {
		if r.dir != "knot" {
			continue
		}
		w, _ := tr.walkFrom(r, "Client", "Lookup")
		if want := []string{"client.go", "resolve.go", "client.go", "table.go"}; !slices.Equal(w.files, want) || w.returns != 1 || w.functions != 4 {
			t.Errorf("got %+v, want the files %v and one return", w, want)
		}
	}
}

// drawn makes a graph of arrows such as "ab", from a to b.
func drawn(files string, arrows ...string) *graph {
	g := newGraph(strings.Split(files, ""))
	for _, a := range arrows {
		g.refs[strings.IndexByte(files, a[0])][strings.IndexByte(files, a[1])]++
	}
	return g
}

func TestGraph_FindsTheLargestKnot(t *testing.T) {
	g := drawn("abcdefg", "ab", "ba", "bc", "cd", "de", "ec", "ef", "fg")
	if got := g.knot(); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("got %v, want c, d and e", got)
	}
	if got := drawn("abc", "ab", "bc", "ac").knot(); got != nil {
		t.Errorf("layers have the knot %v", got)
	}
}

func TestGraph_OrdersSoThatFewArrowsRunBack(t *testing.T) {
	for _, c := range []struct {
		what   string
		graph  *graph
		want   int
		arrows int
	}{
		{"layers", drawn("dcba", "ab", "bc", "cd", "ac", "bd", "ad"), 0, 6},
		{"a ring", drawn("abcd", "ab", "bc", "cd", "da"), 1, 4},
		{"layers with one climb", drawn("cadb", "ab", "bc", "cd", "ac", "bd", "ad", "da"), 1, 7},
		{"a file to move", drawn("abcd", "ac", "ba", "bc", "cd", "da", "db"), 1, 6},
		{"two pairs", drawn("abcd", "ab", "ba", "bc", "cd", "dc"), 2, 5},
	} {
		order := c.graph.order(one)
		if got := c.graph.against(order); len(got) != c.want || c.graph.arrows() != c.arrows {
			t.Errorf("%s: got %v against the order %v, want %d of %d", c.what, got, order, c.want, c.arrows)
		}
	}
}

func TestGraph_CutsWhereFewReferencesAre(t *testing.T) {
	g := drawn("abc", "ab", "ab", "ab", "bc", "bc", "ca")
	for range 3 { // whichever file comes first
		cut := g.cut(1)
		if len(cut) != 1 || cut[0].refs != 1 {
			t.Errorf("got %v, want the one reference from c to a", cut)
		}
		g.refs = append(g.refs[1:], g.refs[0])
		for i, row := range g.refs {
			g.refs[i] = append(row[1:], row[0])
		}
	}
	pairs := drawn("abc", "ab", "ab", "ab", "bc", "bc", "bc", "ba", "ba", "cb")
	if cut := pairs.cut(2); len(cut) != 1 || cut[0] != (arrow{from: 2, to: 1, refs: 1}) {
		t.Errorf("got %v, want the one reference from c to b: a and b may be a knot", cut)
	}
	if got := g.cut(3); got != nil {
		t.Errorf("three files may be a knot, but %v are cut", got)
	}
}

func TestSentences_EndAndCountAsDefined(t *testing.T) {
	data, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var words, lines []int
	for _, s := range sentences(string(data)) {
		words, lines = append(words, s.words), append(lines, s.line)
	}
	if want := []int{4, 5, 3, 2, 6, 1, 3, 31}; !slices.Equal(words, want) {
		t.Errorf("got %v words, want %v", words, want)
	}
	if want := []int{3, 3, 4, 4, 9, 10, 10, 16}; !slices.Equal(lines, want) {
		t.Errorf("got the lines %v, want %v", lines, want)
	}
}

// limits writes a limits file and reads it.
func limits(t *testing.T, text string) *Limits {
	t.Helper()
	name := filepath.Join(t.TempDir(), "limits.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLimits(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLimits_NameEachFigureThatIsOver(t *testing.T) {
	l := limits(t, "fields * 5 5\nfields p.Known 7 5 a reason\n")
	figures := []Figure{
		{Measure: "fields", Subject: "p.Small", Value: 5}, {Measure: "fields", Subject: "p.Known", Value: 7},
		{Measure: "fields", Subject: "p.New", Value: 6, Where: "p/new.go", Line: 3}, {Measure: "other", Subject: "p", Value: 99},
	}
	var out bytes.Buffer
	if err := judge(figures, l, &out); err == nil || !strings.Contains(out.String(), "p.New (p/new.go:3): 6, the limit is 5") {
		t.Errorf("got %v and\n%s", err, &out)
	}
	if n := len(l.Over(figures)); n != 1 {
		t.Errorf("%d figures are over, want 1", n)
	}
	figures[2].Value = 5
	if err := judge(figures, l, &out); err != nil {
		t.Errorf("all is within its limit: %v", err)
	}
}

func TestLimits_OnlyFall(t *testing.T) {
	l := limits(t, "# why\nknot * 10 10\nknot a 20 10 big\nknot b 20 10\nknot c 20 10\nknot gone 20 10\n")
	figures := []Figure{
		{Measure: "knot", Subject: "a", Value: 15}, {Measure: "knot", Subject: "b", Value: 30}, {Measure: "knot", Subject: "c", Value: 9},
	}
	var got []string
	for line := range strings.Lines(l.Lower(figures)) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if want := []string{"# why", "knot * 10 10", "knot a 15 10 big", "knot b 20 10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLimits_OfAMeasureStayAtNothing(t *testing.T) {
	l := limits(t, "op all 3 0\n")
	if got, want := strings.Join(strings.Fields(l.Lower(nil)), " "), "op all 0 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
