package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cartwheel": func() {
		ctx, again, stop := Signals(context.Background())
		code := Run(ctx, append([]string{"cartwheel"}, os.Args[1:]...), Stdio{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Version: "tested", Again: again})
		stop()
		os.Exit(code)
	}})
}

// TestScripts_AnswerAsWritten runs the transcripts in testdata/script, none of
// which needs a cluster. The own word `exits CODE PROGRAM...` runs a program and
// wants that exit code.
func TestScripts_AnswerAsWritten(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("CARTWHEEL_RUN_DIR", filepath.Join(e.WorkDir, "run"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// commands calls fn for every command that can be run.
func commands(t *testing.T, fn func(path string, node *kong.Node)) {
	t.Helper()
	p, _ := program(Stdio{Out: os.Stdout, Err: os.Stderr})
	parser, err := p.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(false) {
		fn("cartwheel "+strings.TrimSuffix(leaf.Path(), " run"), leaf)
	}
}

func TestHelp_HasAnExampleAndTheExitStatuses(t *testing.T) {
	n := 0
	commands(t, func(path string, node *kong.Node) {
		n++
		if node.Help == "" || !strings.Contains(node.Detail, "Example: cartwheel ") || !strings.Contains(node.Detail, "Exit status: ") {
			t.Errorf("%s: help is %q, detail %q", path, node.Help, node.Detail)
		}
		for _, f := range node.Flags {
			if f.Help == "" && !f.Hidden {
				t.Errorf("%s: --%s has no help", path, f.Name)
			}
		}
	})
	if n < 11 {
		t.Errorf("only %d commands were looked at", n)
	}
}

func TestScripts_RunEveryCommand(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	commands(t, func(path string, _ *kong.Node) {
		if !strings.Contains(all.String(), path+" ") && !strings.Contains(all.String(), path+"\n") {
			t.Errorf("no transcript runs %q", path)
		}
	})
}

func TestDocuments_NameEveryCommandAndFlag(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(data), "\n### ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		sections[strings.Trim(title, "`")] = body
	}
	commands(t, func(path string, node *kong.Node) {
		body, ok := sections[path]
		if !ok {
			t.Errorf("docs/commands.md has no section `%s`", path)
			return
		}
		delete(sections, path)
		for _, f := range node.Flags {
			if !f.Hidden && f.Name != "help" && !strings.Contains(body, "`--"+f.Name) && !strings.Contains(body, "--[no-]"+f.Name) {
				t.Errorf("section %s does not name --%s", path, f.Name)
			}
		}
	})
	for title := range sections {
		if strings.HasPrefix(title, "cartwheel ") {
			t.Errorf("docs/commands.md describes %q, which is no command", title)
		}
	}
	for _, k := range fault.Kinds() {
		if code := fmt.Sprintf("| %d |", k.ExitCode()); !strings.Contains(string(data), code) {
			t.Errorf("docs/commands.md does not list exit code %d", k.ExitCode())
		}
	}
}
