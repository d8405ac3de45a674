// Package tidy holds the tests of the repository's own shape: where things
// live, how long files and functions are, that packages say what they are, and
// that nothing speaks of the machine that it was made on. It has no code of its
// own; it reads the tree.
package tidy

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Limits in lines. The aim is half of each.
const (
	maxFile     = 800
	maxTestFile = 1200
	maxFunction = 110
	maxMain     = 60
	maxDepth    = 4 // directories below a module
)

var topLevel = map[string]bool{
	"geo-config": true, "node": true, "clients": true, "testbed": true, "console": true, "e2e": true, "docs": true,
	"scripts": true, ".ci": true, ".git": true, "bin": true, ".cache": true, "node_modules": true, "test-results": true,
	"cartwheel-demo": true, "cartwheel-testbed": true, "go.work": true, "go.work.sum": true, "package.json": true, "package-lock.json": true,
	"README.md": true, "CONTRIBUTING.md": true, "CHANGELOG.md": true, "LICENSE": true, ".gitignore": true, ".npmrc": true, ".golangci.yml": true,
}

var badNames = map[string]bool{
	"util": true, "utils": true, "common": true, "misc": true, "helpers": true, "types": true, "pkg": true,
	"errors": true, "log": true, "http": true, "path": true,
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// files calls fn for every file of the project, with its path from the root.
func files(t *testing.T, fn func(rel string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch rel {
			case ".git", "bin", ".cache", "test-results", "cartwheel-demo", "cartwheel-testbed":
				return filepath.SkipDir
			}
			if d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		fn(filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func lines(t *testing.T, rel string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), rel))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	s := bufio.NewScanner(strings.NewReader(string(data)))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out
}

func goFile(rel string) bool {
	return strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, ".pb.go")
}

func TestTopLevel_HoldsOnlyWhatTheDesignNames(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !topLevel[e.Name()] {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}

func TestPackages_AreDomainNouns(t *testing.T) {
	files(t, func(rel string) {
		if !goFile(rel) {
			return
		}
		dirs := strings.Split(filepath.ToSlash(filepath.Dir(rel)), "/")
		if len(dirs)-1 > maxDepth {
			t.Errorf("%s lies deeper than %d folders in its module", rel, maxDepth)
		}
		for _, d := range dirs {
			if badNames[d] {
				t.Errorf("%s: %q names nothing of this domain", rel, d)
			}
		}
	})
}

func TestFiles_AndFunctionsAreShort(t *testing.T) {
	files(t, func(rel string) {
		if !goFile(rel) {
			return
		}
		limit := maxFile
		if strings.HasSuffix(rel, "_test.go") {
			limit = maxTestFile
		}
		if strings.HasSuffix(rel, "/main.go") && strings.Contains(rel, "/cmd/") {
			limit = maxMain
		}
		if n := len(lines(t, rel)); n > limit {
			t.Errorf("%s has %d lines, the limit is %d", rel, n, limit)
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root(t), rel), nil, 0)
		if err != nil {
			t.Errorf("%s: %v", rel, err)
			return
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || strings.HasSuffix(rel, "_test.go") {
				continue
			}
			if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line; n > maxFunction {
				t.Errorf("%s: %s has %d lines, the limit is %d", rel, fn.Name.Name, n, maxFunction)
			}
		}
	})
}

func TestPackages_SayWhatTheyAre(t *testing.T) {
	docs := map[string]string{}
	files(t, func(rel string) {
		if !goFile(rel) || strings.Contains(rel, "/testdata/") {
			return
		}
		dir := filepath.Dir(rel)
		if _, ok := docs[dir]; !ok {
			docs[dir] = ""
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), rel), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err == nil && f.Doc != nil {
			docs[dir] += f.Doc.Text()
		}
	})
	sentence := regexp.MustCompile(`[.:;]\s`)
	for dir, doc := range docs {
		if len(sentence.FindAllString(doc+" ", -1)) < 2 && !strings.HasSuffix(dir, "/pb") {
			t.Errorf("%s: the package's comment should say in two sentences what it is and how it is shared", dir)
		}
	}
}

func TestModules_ReplaceOnlyOurOwn(t *testing.T) {
	for _, m := range []string{"geo-config", "node", "clients", "testbed", "console/gateway"} {
		for _, l := range lines(t, m+"/go.mod") {
			if strings.Contains(l, "=>") && !strings.Contains(l, "cartwheel.dev/") {
				t.Errorf("%s/go.mod replaces a module of others: %s", m, l)
			}
		}
	}
}

func TestText_DoesNotSpeakOfTheMachineItWasMadeOn(t *testing.T) {
	bad := regexp.MustCompile(`/wor` + `k/[a-z.]|/roo` + `t/|bash_jo` + `bs|"resolved": *"http|proxy\.gol` + `ang|registry\.np` + `mjs`)
	files(t, func(rel string) {
		if strings.HasSuffix(rel, ".sum") || strings.HasSuffix(rel, ".pb.go") {
			return
		}
		for i, l := range lines(t, rel) {
			if bad.MatchString(l) {
				t.Errorf("%s:%d: %s", rel, i+1, l)
			}
		}
	})
}

func TestTodos_CarryAnIssue(t *testing.T) {
	todo := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	files(t, func(rel string) {
		if !goFile(rel) {
			return
		}
		for i, l := range lines(t, rel) {
			if todo.MatchString(l) && !strings.Contains(l, "issue") {
				t.Errorf("%s:%d: %s", rel, i+1, strings.TrimSpace(l))
			}
		}
	})
}
