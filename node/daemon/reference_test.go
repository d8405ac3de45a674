package daemon

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"cartwheel.dev/node/manual"
	"cartwheel.dev/node/server"
)

var rewrite = flag.Bool("rewrite", false, "write docs/configuration.md and the man page as the code has them")

const (
	reference = "../../docs/configuration.md"
	manPage   = "../../docs/man/cartwheeld.1"
)

const referenceHead = "<!-- Generated: go test ./node/daemon -run TestReference_IsCurrent -rewrite -->\n" + `
# Configuration of a node

A node reads its configuration from four places; a later one overrides an earlier one:

1. the defaults below
2. the file that ` + "`--config FILE`" + ` names, in YAML
3. environment variables: ` + "`CARTWHEELD_`" + ` and the key in capitals, with commas between the items of a list
4. options of ` + "`cartwheeld node`" + `

A node refuses an unknown key by its name, and reports all wrong values at once.
Durations are written as ` + "`3s`, `10ms` or `24h`" + `, and sizes in bytes.
Every limit is of this one node.
A node reads its configuration once, at its start.

A small file:

` + "```yaml" + `
data: /var/lib/cartwheel
site: tokyo
listen: [/ip4/0.0.0.0/tcp/7400]
advertise: [/ip4/192.0.2.7/tcp/7400]
geo_config: [/ip4/192.0.2.1/tcp/7300/p2p/ID]
expected_nodes: 3
` + "```" + `

[operating.md](operating.md) shows how a node starts, and [commands.md](commands.md#cartwheeld) the other commands of ` + "`cartwheeld`" + `.

## Keys
`

// TestReference_IsCurrent holds docs/configuration.md to the comments of
// server.Config, its defaults and the options of the command line.
func TestReference_IsCurrent(t *testing.T) {
	current(t, reference, renderReference(t))
}

// TestManPage_IsCurrent holds docs/man to the grammar of the command line.
func TestManPage_IsCurrent(t *testing.T) {
	p, err := kong.New(&commands{}, kong.Name("cartwheeld"), kong.Description(description))
	if err != nil {
		t.Fatal(err)
	}
	current(t, manPage, manual.Page(p.Model))
}

func current(t *testing.T, file, want string) {
	t.Helper()
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
		t.Errorf("%s is not as the code has it: run this test with -rewrite", file)
	}
}

// TestReference_ExampleLoads loads the file that the reference shows.
func TestReference_ExampleLoads(t *testing.T) {
	_, text, _ := strings.Cut(referenceHead, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file, nil, nil)
	if err == nil {
		err = c.Validate()
	}
	if err != nil || c.Site != "tokyo" || c.ExpectedNodes != 3 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func renderReference(t *testing.T) string {
	t.Helper()
	texts, keys := fieldComments(t), map[string]string{}
	c := reflect.ValueOf(server.DefaultConfig())
	fields := slices.DeleteFunc(reflect.VisibleFields(c.Type()), func(f reflect.StructField) bool { return f.Anonymous })
	for _, f := range fields {
		keys[f.Name] = f.Tag.Get("yaml")
	}
	options := optionNames(t)
	sentence := regexp.MustCompile(`([.]) ([A-Z"])`)
	word := regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)
	var out strings.Builder
	out.WriteString(referenceHead)
	for _, f := range fields {
		key := keys[f.Name]
		text := strings.Join(strings.Fields(texts[f.Name]), " ")
		if !strings.HasPrefix(text, f.Name+" ") {
			t.Errorf("the comment of Config.%s begins with another word", f.Name)
		}
		text = sentence.ReplaceAllString(text, "$1\n$2")
		text = word.ReplaceAllStringFunc(text, func(w string) string {
			if k := keys[w]; k != "" {
				return "`" + k + "`"
			}
			return w
		})
		fmt.Fprintf(&out, "\n### `%s`\n\n%s\n\n- Type: %s\n", key, text, typeName(f.Type))
		if v := c.FieldByIndex(f.Index); !v.IsZero() {
			fmt.Fprintf(&out, "- Default: `%s`\n", strings.Trim(fmt.Sprint(v.Interface()), "[]"))
		}
		if option := "--" + strings.ReplaceAll(key, "_", "-"); options[option] {
			fmt.Fprintf(&out, "- Option: `%s`\n", option)
		}
	}
	return out.String()
}

// fieldComments returns the comment of each field of server.Config and of its
// groups.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../server/config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	structs := map[string]bool{"Config": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[server.Config]()) {
		structs[f.Name] = structs[f.Name] || f.Anonymous
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !structs[spec.Name.Name] {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				out[name.Name] = f.Doc.Text()
			}
		}
		return false
	})
	return out
}

// optionNames returns the options of cartwheeld node.
func optionNames(t *testing.T) map[string]bool {
	t.Helper()
	var c commands
	p, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, n := range p.Model.Children {
		for _, f := range n.Flags {
			if n.Name == "node" {
				out["--"+f.Name] = true
			}
		}
	}
	return out
}

func typeName(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list of texts"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "whole number"
}
