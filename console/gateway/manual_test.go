package gateway

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"cartwheel.dev/node/manual"
)

var rewrite = flag.Bool("rewrite", false, "write the man page as the code has it")

const (
	manPage  = "../../docs/man/cartwheel-gateway.1"
	document = "../../docs/console.md"
)

// TestManPage_IsCurrent holds docs/man to the grammar of the command line.
func TestManPage_IsCurrent(t *testing.T) {
	want := manual.Page(grammar(t).Model)
	if *rewrite {
		if err := os.WriteFile(manPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(manPage); err != nil || string(got) != want {
		t.Errorf("%s is not as the code has it (%v): run this test with -rewrite", manPage, err)
	}
}

// TestDocument_NamesEveryOption looks for each command and option in docs/console.md.
func TestDocument_NamesEveryOption(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range grammar(t).Model.Children {
		if !strings.Contains(string(text), "cartwheel-gateway "+c.Name) {
			t.Errorf("%s does not speak of %s", document, c.Name)
		}
		for _, f := range c.Flags {
			if f.Name != "help" && !strings.Contains(string(text), "`--"+f.Name) {
				t.Errorf("%s does not speak of --%s", document, f.Name)
			}
		}
	}
}

func grammar(t *testing.T) *kong.Kong {
	t.Helper()
	k, err := kong.New(&commands{}, kong.Name("cartwheel-gateway"), kong.Description(description))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
