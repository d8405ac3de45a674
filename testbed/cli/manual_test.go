package cli

import (
	"flag"
	"os"
	"strings"
	"testing"

	"cartwheel.dev/node/manual"
)

var rewrite = flag.Bool("rewrite", false, "write the man page as the grammar has it")

// TestManPage_IsCurrent holds docs/man to the grammar of the command line.
func TestManPage_IsCurrent(t *testing.T) {
	const file = "../../docs/man/cartwheel-testbed.1"
	p, _ := program(Stdio{Out: &strings.Builder{}, Err: &strings.Builder{}})
	parser, err := p.Parser()
	if err != nil {
		t.Fatal(err)
	}
	want := manual.Page(parser.Model)
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not as the grammar has it: run this test with -rewrite", file)
	}
}
