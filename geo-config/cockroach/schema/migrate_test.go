package schema

import (
	"reflect"
	"strings"
	"testing"
)

func TestStatements_EndWithASemicolonAtALinesEnd(t *testing.T) {
	got := statementsOf("-- about\nA ';' B\n  (x);\n\n  -- more\nC;\nD")
	if want := []string{"A ';' B\n  (x)", "C", "D"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLocality_NamesEveryRegion(t *testing.T) {
	list, err := migrationsOf(localityKind)
	if err != nil {
		t.Fatal(err)
	}
	got := fill(list[0].statements, `my"base`, "eu", []string{"us", "ap"})
	want := []string{
		`ALTER DATABASE "my""base" SET PRIMARY REGION "eu"`,
		`ALTER DATABASE "my""base" ADD REGION IF NOT EXISTS "us"`,
		`ALTER DATABASE "my""base" ADD REGION IF NOT EXISTS "ap"`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var needs []int
	for _, m := range list {
		needs = append(needs, m.regions)
	}
	if want := []int{1, 3, 1, 0, 1}; !reflect.DeepEqual(needs, want) {
		t.Errorf("the files need %v regions, want %v", needs, want)
	}
}

// What only CockroachDB has stands in files of locality, and each of these says
// what happens elsewhere.
func TestLocality_StandsAlone(t *testing.T) {
	list, err := migrationsOf(schemaKind)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		for _, s := range m.statements {
			for _, word := range []string{"LOCALITY", "REGION", "ZONE", "SURVIVE", "crdb_"} {
				if strings.Contains(s, word) {
					t.Errorf("%s has %s:\n%s", m.name, word, s)
				}
			}
		}
	}
	locality, err := migrationsOf(localityKind)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range locality {
		text, err := files.ReadFile("locality/" + m.name)
		if err != nil || !strings.Contains(string(text), "\n-- Elsewhere: ") || !strings.Contains(string(text), "\n"+regionsMark) {
			t.Errorf("%s does not say what it needs and what happens elsewhere: %v", m.name, err)
		}
	}
}
