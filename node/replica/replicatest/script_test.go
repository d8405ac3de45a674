package replicatest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios now say into their files")

// TestScenarios_AnswerAsWritten plays the files of testdata. Each opens with the
// claim that it shows, and a command's output follows it, indented.
func TestScenarios_AnswerAsWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			var s Script
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "\t") {
					continue // what it said last time
				}
				b.WriteString(line)
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				said, err := s.Do(line)
				if err != nil {
					t.Fatal(err)
				}
				if said != "" {
					b.WriteString("\t" + said + "\n")
				}
			}
			for _, e := range s.w.check.errors {
				t.Error(e)
			}
			if *rewrite {
				if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if b.String() != string(text) {
				t.Errorf("got\n%s\nwant\n%s", b.String(), text)
			}
		})
	}
}
