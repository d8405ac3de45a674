package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cartwheel.dev/testbed/rehearse"
	"cartwheel.dev/testbed/topology"
)

// TestDocuments_FilesAreRead reads every YAML block of testbed.md as what it is
// an example of.
func TestDocuments_FilesAreRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/testbed.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 16 {
		rows.WriteString(strings.TrimSuffix(strings.Repeat("10\t", i)+"0\t"+strings.Repeat("10\t", 15-i), "\t") + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "rtts.csv"), []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 4 {
		t.Fatalf("got %d blocks of YAML, want 4", len(blocks))
	}
	for _, b := range blocks {
		file := filepath.Join(dir, "docs.yaml")
		if strings.Contains(string(b[1]), "\nwork:") {
			_, err = rehearse.Parse(file, b[1], 1)
		} else {
			_, err = topology.Parse(file, b[1])
		}
		if err != nil {
			t.Errorf("%v in:\n%s", err, b[1])
		}
	}
}

// TestDocuments_NameEveryCommand looks for the words of --help.
func TestDocuments_NameEveryCommand(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, ours, _ := strings.Cut(string(text), "\n## cartwheel-testbed\n")
	p, _ := program(Stdio{Out: &strings.Builder{}, Err: &strings.Builder{}})
	parser, err := p.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range parser.Model.Children {
		if n.Hidden {
			continue
		}
		leaves := n.Leaves(true)
		if len(leaves) == 0 {
			leaves = append(leaves, n)
		}
		for _, leaf := range leaves {
			words := strings.Fields(leaf.Path())
			if n.Name == "load" { // for experiments
				words = words[:1]
			}
			last := words[len(words)-1]
			if !strings.Contains(ours, "`"+strings.Join(words, " ")) && !strings.Contains(ours, "`, `"+last+" ") && !strings.Contains(ours, ", `"+last+" ") {
				t.Errorf("docs/commands.md does not say what %q does", words)
			}
			for _, f := range leaf.Flags {
				if f.Hidden || f.Name == "help" || f.Name == "json" || n.Name == "load" {
					continue
				}
				if !strings.Contains(ours, "--"+f.Name) {
					t.Errorf("docs/commands.md does not speak of --%s of %q", f.Name, words)
				}
			}
		}
	}
}
