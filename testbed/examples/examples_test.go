package examples

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/not-run.txt as the documents now say")

func pages(t *testing.T) (string, []Page) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	return root, all
}

// TestExamples_AreShell lets bash read every block without running it. Each
// step stands on its line of the page, so bash names the right place.
func TestExamples_AreShell(t *testing.T) {
	_, all := pages(t)
	n := 0
	for _, p := range all {
		var script strings.Builder
		at := 1
		for _, s := range p.Steps() {
			n++
			script.WriteString(strings.Repeat("\n", s.Line-at) + s.Command)
			at = s.Line + strings.Count(s.Command, "\n")
		}
		cmd := exec.Command("bash", "-n", "/dev/stdin")
		cmd.Stdin = strings.NewReader(script.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", p.Name, err, bytes.ReplaceAll(out, []byte("/dev/stdin"), []byte(p.Name)))
		}
	}
	if n < 30 {
		t.Errorf("only %d examples were found", n)
	}
}

// TestExamples_MatchTheGrammars checks the commands of every block, also of
// those that no test runs.
func TestExamples_MatchTheGrammars(t *testing.T) {
	root, all := pages(t)
	for _, p := range all {
		for _, s := range p.Steps() {
			for _, words := range s.Lines() {
				if err := Check(root, words); err != nil {
					t.Errorf("%s:%d: %s: %v", p.Name, s.Line, strings.Join(words, " "), err)
				}
			}
		}
	}
}

// TestSpans_MatchTheGrammars checks commands in the middle of a sentence, such
// as `cartwheel status --json`. A word "..." stands for others, and SLICE for a
// number. Planned commands do not exist, and formats begin with words of a
// program's name.
func TestSpans_MatchTheGrammars(t *testing.T) {
	root, all := pages(t)
	span := regexp.MustCompile("`((?:cartwheel|cartwheeld|cartwheel-testbed) [^`]+)`")
	n := 0
	for _, p := range all {
		if strings.HasPrefix(p.Name, "docs/formats/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, p.Name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "**Planned**") {
				continue
			}
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				n++
				for _, words := range (Step{Command: strings.ReplaceAll(m[1], "SLICE", "1")}).Lines() {
					words = slices.DeleteFunc(words, func(w string) bool { return w == "..." })
					if err := Check(root, words); err != nil {
						t.Errorf("%s:%d: %s: %v", p.Name, i+1, m[1], err)
					}
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d commands were found", n)
	}
}

// TestManPages_MatchTheGrammars checks the example of each command's help, as the
// man pages have it.
func TestManPages_MatchTheGrammars(t *testing.T) {
	root, _ := pages(t)
	names, err := filepath.Glob(filepath.Join(root, "docs", "man", "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^Example: (.*)$`).FindAllStringSubmatch(string(text), -1) {
			n++
			for _, words := range (Step{Command: strings.ReplaceAll(m[1], `\-`, "-")}).Lines() {
				if err := Check(root, words); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(name), m[1], err)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d examples were found", n)
	}
}

// TestNotRun_IsListed compares the blocks that no test runs with a list, so that
// the list grows only where a reviewer sees it.
func TestNotRun_IsListed(t *testing.T) {
	_, all := pages(t)
	var list strings.Builder
	list.WriteString("# The shell blocks of the documents that no test runs, and why. A test compares\n# this list with the pages; go test ./examples -run TestNotRun -rewrite writes it.\n")
	run, not := 0, 0
	for _, p := range all {
		for _, b := range p.Blocks {
			why, marked := b.Marks[NotRun]
			switch {
			case !b.Shell():
			case !marked:
				run++
			case why == "":
				t.Errorf("%s:%d: the mark gives no reason", p.Name, b.Line)
			default:
				not++
				first, _, _ := strings.Cut(b.Lines[0], " #")
				fmt.Fprintf(&list, "%s: %s: %s\n", p.Name, why, strings.TrimSpace(first))
			}
		}
	}
	t.Logf("of %d blocks, a test runs %d; the others:\n%s", run+not, run, list.String())
	const name = "testdata/not-run.txt"
	if *rewrite {
		if err := os.WriteFile(name, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || string(want) != list.String() {
		t.Errorf("%s is stale (%v): the documents now have\n%s", name, err, list.String())
	}
}

// TestMarks_AreKnown finds a mark that is written wrongly: it would do nothing.
func TestMarks_AreKnown(t *testing.T) {
	_, all := pages(t)
	for _, p := range all {
		for _, b := range p.Blocks {
			for mark := range b.Marks {
				if !slices.Contains([]string{NotRun, Stays, File}, mark) {
					t.Errorf("%s:%d: there is no mark %q", p.Name, b.Line, mark)
				}
			}
		}
	}
}

// TestCitedTests_Exist looks for the tests that the documents name in a
// sentence or in a command.
func TestCitedTests_Exist(t *testing.T) {
	root, all := pages(t)
	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range all {
		text, err := os.ReadFile(filepath.Join(root, p.Name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(string(text), -1) {
			n++
			if !tests[m[1]] {
				t.Errorf("%s: there is no %s", p.Name, m[1])
			}
		}
	}
	if n == 0 {
		t.Error("no page names a test")
	}
}

func TestLines_AreSimpleCommands(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"cartwheel status --json  # how it is", "cartwheel status --json"},
		{"A=1 cartwheel status | grep well && echo 'all well'", "cartwheel status; grep well; echo all well"},
		{"(cd clients && go run ./register) < plan.json", "cd clients; go run ./register"},
		{`cp -r "$(go env GOROOT)/src/net" to/ 2>/dev/null`, "cp -r $(go env GOROOT)/src/net to/ 2"},
		{"cartwheel mount FILE \\\n  /mnt", "cartwheel mount FILE /mnt"},
	} {
		var got []string
		for _, words := range (Step{Command: c.line}).Lines() {
			got = append(got, strings.Join(words, " "))
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%q: got %q, want %q", c.line, s, c.want)
		}
	}
}

func TestCheck_RefusesWhatIsNot(t *testing.T) {
	root, _ := pages(t)
	for _, line := range []string{
		"cartwheel stats", "bin/cartwheel status --jsn", "cartwheel net probe tokyo --count many", "cartwheeld node --site",
		"cartwheeld nodes", "cartwheel-testbed fault cut a b --both", "scripts/tests", "npm run tests", "npm run bench -- --rouns 3 DIR", "npm run bench:console -- x",
		"npm start -- --sits a", "bin/bench-store --inn x", "go test ./replicas -run TestScenarios", "go test ./replica/replicatest -run TestNothing -rewrite",
	} {
		for _, words := range (Step{Command: line}).Lines() {
			if Check(root, words) == nil {
				t.Errorf("%s: not refused", line)
			}
		}
	}
}

func TestSteps_FollowPrompts(t *testing.T) {
	p := Page{Blocks: blocks("x.md", "text\n<!-- stays: ready -->\n```sh\nnpm start\n```\n\n  ```console\n  tokyo# cartwheel status\n  All well\n  $ echo \\\n  two\n  ```\n\n```console\ntwo\n```\n")}
	var got []string
	for _, s := range p.Steps() {
		got = append(got, fmt.Sprintf("%d %s %q %q %v", s.Line, s.Host, s.Command, s.Output, s.Block.Marks))
	}
	want := []string{`4  "npm start\n" [] map[stays:ready]`, `8 tokyo "cartwheel status\n" ["All well"] map[]`, `10  "echo \\\ntwo\n" ["two"] map[]`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
