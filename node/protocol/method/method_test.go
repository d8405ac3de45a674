package method_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/wire"
)

// numbers are the methods as they were sent. A row never changes.
var numbers = map[string]struct {
	method wire.Method
	number int
}{
	"Hello": {method.Hello, 1}, "KeepAlive": {method.KeepAlive, 2}, "Revoke": {method.Revoke, 3}, "Claim": {method.Claim, 4}, "Lock": {method.Lock, 5},
	"Operate": {method.Operate, 16}, "Resolve": {method.Resolve, 17}, "List": {method.List, 18}, "GetAttr": {method.GetAttr, 19},
	"Statfs": {method.Statfs, 20}, "Place": {method.Place, 21}, "Rows": {method.Rows, 22}, "Page": {method.Page, 23}, "Files": {method.Files, 24},
	"Side": {method.Side, 25}, "SideCopy": {method.SideCopy, 26}, "Hold": {method.Hold, 27}, "History": {method.History, 28}, "Conflicts": {method.Conflicts, 54},
	"Have": {method.Have, 32}, "Put": {method.Put, 33}, "Get": {method.Get, 34}, "Range": {method.Range, 35},
	"Status": {method.Status, 48}, "SliceList": {method.SliceList, 49}, "Where": {method.Where, 50},
	"HandOver": {method.HandOver, 51}, "DropCaches": {method.DropCaches, 52}, "Net": {method.Net, 53}, "Space": {method.Space, 55}, "Scrub": {method.Scrub, 56},
	"Snapshots": {method.Snapshots, 57}, "Snapshot": {method.Snapshot, 58}, "Drill": {method.Drill, 59}, "Drills": {method.Drills, 60}, "Recall": {method.Recall, 61},
	"Replica": {method.Replica, 64}, "Beacon": {method.Beacon, 65}, "Intent": {method.Intent, 66}, "Transfer": {method.Transfer, 67}, "Facts": {method.Facts, 68}, "Budget": {method.Budget, 69},
	"GeoRead": {method.GeoRead, 80}, "GeoApply": {method.GeoApply, 81}, "GeoSettle": {method.GeoSettle, 82}, "GeoFollow": {method.GeoFollow, 83}, "GeoProperties": {method.GeoProperties, 84},
}

// declared are the names of the methods in the package's source.
func declared(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "method.go", nil, 0)
	if err != nil {
		t.Fatalf("reading the methods: %v", err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			out = append(out, spec.Names[0].Name)
		}
		return true
	})
	return out
}

func TestMethods_KeepTheirNumbers(t *testing.T) {
	for name, m := range numbers {
		if int(m.method) != m.number {
			t.Errorf("%s is %d, and was sent as %d", name, m.method, m.number)
		}
	}
	names := declared(t)
	for _, name := range names {
		if _, ok := numbers[name]; !ok {
			t.Errorf("%s is new: add its number to the table", name)
		}
	}
	if len(names) != len(numbers) {
		t.Errorf("the package has %d methods, the table %d", len(names), len(numbers))
	}
}

func TestMethods_AreDistinct(t *testing.T) {
	by := map[wire.Method]string{}
	for name, m := range numbers {
		if other, taken := by[m.method]; taken {
			t.Errorf("%s and %s are both %d", name, other, m.method)
		}
		by[m.method] = name
	}
}

func TestName_NamesEachMethodForPeople(t *testing.T) {
	by := map[string]string{}
	for name, m := range numbers {
		got := method.Name(m.method)
		if got != strings.ToLower(got) || got == "" {
			t.Errorf("%s is named %q, want lower case", name, got)
		}
		if got != strings.ToLower(name) && !strings.HasPrefix(got, "method ") {
			t.Errorf("%s is named %q", name, got)
		}
		if other, taken := by[got]; taken {
			t.Errorf("%s and %s are both named %q", name, other, got)
		}
		by[got] = name
	}
}

func TestName_NumbersWhatHasNoName(t *testing.T) {
	for m, want := range map[wire.Method]string{0: "method 0", method.Hello: "hello", method.Where: "where", method.Beacon: "method 65", 99: "method 99"} {
		if got := method.Name(m); got != want {
			t.Errorf("%d: got %q, want %q", m, got, want)
		}
	}
}
