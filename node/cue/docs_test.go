package cue

import (
	"os"
	"strings"
	"testing"
)

// TestNames_AreInTheDocuments looks for every cue in the tutorial, and in the
// table of docs/design.md, which has them in the order of Names.
func TestNames_AreInTheDocuments(t *testing.T) {
	tutorial, table := document(t, "cues.md"), document(t, "design.md")
	for _, n := range Names() {
		if !strings.Contains(tutorial, n.String()) {
			t.Errorf("docs/cues.md does not name %s", n)
		}
		_, rest, found := strings.Cut(table, "\n| `"+n.String())
		if !found {
			t.Errorf("docs/design.md has no row of %s, or not in its place", n)
			continue
		}
		table = rest
	}
}

func document(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
