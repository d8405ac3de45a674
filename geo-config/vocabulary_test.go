package geoconfig_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	geoconfig "cartwheel.dev/geo-config"
)

func TestTheVocabularyImportsTheStandardLibraryOnly(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, i := range file.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s, which is not of the standard library", e.Name(), path)
			}
			if path == "os" || path == "net" || path == "io" {
				t.Errorf("%s imports %s: the vocabulary does no I/O", e.Name(), path)
			}
		}
	}
	if checked < 2 {
		t.Fatalf("only %d files were looked at", checked)
	}
}

func TestTheContractStaysSmall(t *testing.T) {
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

func TestObjectIDsJoinAndPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := geoconfig.SliceID(rapid.Uint32Range(0, uint32(geoconfig.MaxSlice)).Draw(t, "slice"))
		n := rapid.Uint64Range(0, 1<<geoconfig.NumberBits-1).Draw(t, "number")
		o := geoconfig.NewObjectID(s, n)
		if o.Slice() != s || o.Number() != n {
			t.Fatalf("%d and %d came back as %d and %d", s, n, o.Slice(), o.Number())
		}
	})
	if geoconfig.RootObject.Slice() != geoconfig.RootSlice || geoconfig.RootObject.Number() != 1 {
		t.Errorf("the root is %v", geoconfig.RootObject)
	}
}

// The stored and sent forms of rows: this text never changes for old fields.
func TestRowsKeepTheirForm(t *testing.T) {
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

func TestShortIDsShowWhatDiffers(t *testing.T) {
	for id, want := range map[geoconfig.NodeID]string{"": "", "n1": "n1", "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp": "vnc6iDEp"} {
		if got := id.Short(); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestRowKeysAreNamed(t *testing.T) {
	for _, c := range []struct {
		key  geoconfig.RowKey
		want string
	}{
		{geoconfig.ClusterKey(), "cluster/cluster"},
		{geoconfig.Site{Name: "paris"}.Key(), "sites/paris"},
		{geoconfig.Node{ID: "n1"}.Key(), "nodes/n1"},
		{geoconfig.SliceID(7).Key(), "slices/7"},
		{geoconfig.User{Name: "ann"}.RowKey(), "users/ann"},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
