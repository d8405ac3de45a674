package geoconfig_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestVocabulary_ImportsTheStandardLibrary(t *testing.T) {
	checked := 0
	for _, folder := range []string{".", "ids"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
				checked++
				checkImports(t, filepath.Join(folder, e.Name()))
			}
		}
	}
	if checked < 3 {
		t.Fatalf("only %d files were looked at", checked)
	}
}

func checkImports(t *testing.T, name string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && path != "cartwheel.dev/geo-config/ids" {
			t.Errorf("%s imports %s, which is not of the standard library", name, path)
		}
		if path == "os" || path == "net" || path == "io" {
			t.Errorf("%s imports %s: the vocabulary does no I/O", name, path)
		}
	}
}

func TestStore_StaysSmall(t *testing.T) {
	store := reflect.TypeFor[geoconfig.Store]()
	if n := store.NumMethod(); n > 6 {
		t.Errorf("Store has %d methods, more than 6: add an optional interface instead", n)
	}
	for i := range store.NumMethod() {
		m := store.Method(i)
		if m.Name == "Close" {
			continue
		}
		if m.Type.NumIn() == 0 || m.Type.In(0).String() != "context.Context" {
			t.Errorf("%s does not take a context first", m.Name)
		}
	}
}

// TestRows_KeepTheirForm holds the stored and sent form of rows: the text of old
// fields never changes.
func TestRows_KeepTheirForm(t *testing.T) {
	row := geoconfig.SliceRow{
		ID: 7, Epoch: 3, Active: "n1", Hear: 2, Closed: true, Generation: 1, Revision: 9,
		Policy:  geoconfig.Policy{Home: "paris", Level: 3, Sites: 2, Kind: geoconfig.WriteOnce, Coherence: time.Second},
		Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal, Incarnation: 4}},
	}
	const want = `{"id":7,"policy":{"home":"paris","level":3,"sites":2,"kind":2,"coherence_ns":1000000000},"epoch":3,"active":"n1",` +
		`"members":[{"node":"n1","state":1,"incarnation":4}],"hear":2,"closed":true,"generation":1,"revision":9}`
	got, err := json.Marshal(row)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if clone := row.Clone(); &clone.Members[0] == &row.Members[0] || !reflect.DeepEqual(clone, row) {
		t.Errorf("the clone is %+v", clone)
	}
}

func TestRowKey_NamesItsRow(t *testing.T) {
	for _, c := range []struct {
		key  geoconfig.RowKey
		want string
	}{
		{geoconfig.ClusterKey(), "cluster/cluster"},
		{geoconfig.Site{Name: "paris"}.Key(), "sites/paris"},
		{geoconfig.Node{ID: "n1"}.Key(), "nodes/n1"},
		{geoconfig.SliceKey(ids.Slice(7)), "slices/7"},
		{geoconfig.User{Name: "ann"}.RowKey(), "users/ann"},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestPolicies_AreEqualWithTheirDefaults(t *testing.T) {
	spelled := geoconfig.Policy{Level: 3, Sites: 3, Home: "a", Kind: geoconfig.Ordinary}
	short := geoconfig.Policy{Level: 3, Home: "a"}
	if !spelled.Equal(short) || !short.Equal(spelled) {
		t.Error("a policy differs from itself without its defaults")
	}
	for _, other := range []geoconfig.Policy{
		{Level: 2, Home: "a"}, {Level: 3, Sites: 2, Home: "a"}, {Level: 3, Home: "b"},
		{Level: 3, Home: "a", Kind: geoconfig.WriteOnce}, {Level: 3, Home: "a", Coherence: time.Second},
	} {
		if spelled.Equal(other) || other.Equal(spelled) {
			t.Errorf("%+v is taken for %+v", other, spelled)
		}
	}
}
