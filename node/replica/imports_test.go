package replica

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestCore_IsPure reads the sources: the core takes time as a number and does
// nothing by itself.
func TestCore_IsPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	banned := map[string]bool{"os": true, "net": true, "sync": true, "sync/atomic": true, "math/rand": true,
		"math/rand/v2": true, "crypto/rand": true, "context": true, "io": true, "log": true, "log/slog": true}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if banned[path] {
				t.Errorf("%s imports %s", name, path)
			}
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"time.Now", "time.Since", "time.Sleep", "time.After", "time.NewTimer", "\tgo func", "make(chan"} {
			if strings.Contains(string(source), word) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
}
