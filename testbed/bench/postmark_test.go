package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePostmark puts a program in Postmark's place, which finds its script in $0.in
// and its folder in $0.dir, and says what it is told to.
func fakePostmark(t *testing.T, says string) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "postmark")
	script := "#!/bin/sh\ncat > \"$0.in\"\npwd > \"$0.dir\"\ncat <<'END'\n" + says + "\nEND\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return program
}

const postmarkSaid = `	5 seconds of transactions (60 per second)
	Creation alone: 500 files (100 per second)
	Deletion alone: 500 files (250 per second)`

func TestPostmark_RunsInAFolderWithALongPath(t *testing.T) {
	program := fakePostmark(t, postmarkSaid)
	deep := filepath.Join(t.TempDir(), strings.Repeat("deep/", 20))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	p := place{dir: deep, opt: Defaults(), out: func(work, _ string, v float64) { figures[work] = v }}
	if err := postmark(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	if figures["postmark create alone"] != 100 || figures["postmark delete alone"] != 250 || figures["postmark transactions"] != 60 {
		t.Errorf("got %v", figures)
	}
	in, err := os.ReadFile(program + ".in")
	if err != nil || !strings.Contains(string(in), "set location .\n") || !strings.Contains(string(in), "set number 50000\nset transactions 30000\n") {
		t.Errorf("it was told %q, %v", in, err)
	}
	if at, err := os.ReadFile(program + ".dir"); err != nil || strings.TrimSpace(string(at)) != strings.TrimSuffix(deep, "/") {
		t.Errorf("it ran in %q, %v, want %q", at, err, deep)
	}
}

func TestPostmark_ErrorsAreNoFigures(t *testing.T) {
	fakePostmark(t, "Error: cannot open 'f' for writing\n"+postmarkSaid)
	err := postmark(context.Background(), place{dir: t.TempDir(), opt: Defaults(), out: func(work, _ string, _ float64) {
		t.Errorf("%s was noted", work)
	}})
	if err == nil || !strings.Contains(err.Error(), "cannot open 'f'") {
		t.Errorf("got %v, want what Postmark said", err)
	}
}
