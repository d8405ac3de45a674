package manual

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestPage_HoldsCommandsAndOptions(t *testing.T) {
	var grammar struct {
		JSON bool `name:"json" help:"Print JSON."`
		List struct {
			Dir   string `arg:"" help:".hidden files too."`
			Count int    `short:"n" default:"5" env:"COUNT" help:"How many, in C:\\dir-x."`
			Inner bool   `hidden:"" help:"Not shown."`
		} `cmd:"" help:"List it."`
	}
	p, err := kong.New(&grammar, kong.Name("tool"), kong.Description("A tool.\n\nMore of it."))
	if err != nil {
		t.Fatal(err)
	}
	page := Page(p.Model)
	for _, want := range []string{
		".SH NAME\ntool \\- A tool\n", "More of it.", ".SS tool list <dir>\nList it.\n", "\\&.hidden files too.",
		"\\fB\\-n\\fR, \\fB\\-\\-count\\fR=\\fICOUNT\\fR\nHow many, in C:\\edir\\-x. Default: 5. Environment: COUNT.\n", "\\fB\\-\\-json\\fR\nPrint JSON.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("got\n%s\nwant %q in it", page, want)
		}
	}
	if strings.Contains(page, "Not shown") {
		t.Errorf("a hidden option is shown:\n%s", page)
	}
}
