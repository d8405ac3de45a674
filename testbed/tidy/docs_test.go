package tidy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	cited   = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.(?:md|svg)\b`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence   = regexp.MustCompile("(?s)```.*?```")
	// outside cites what no reader of the repository has.
	outside = regexp.MustCompile(`\b(?:DESIGN|FAULTS|PAPERS|HOUSE|STYLE)\b|\bissue [0-9]`)
)

// TestLinks_LeadSomewhere follows every relative link of the
// documentation, to its heading where it names one.
func TestLinks_LeadSomewhere(t *testing.T) {
	files(t, func(rel string) {
		if !strings.HasSuffix(rel, ".md") {
			return
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, rel), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := rel
			if target != "" {
				file = path.Join(path.Dir(rel), target)
			}
			if _, err := os.Stat(filepath.Join(root(t), file)); err != nil {
				t.Errorf("%s: %s leads nowhere", rel, m[1])
			} else if anchor != "" && !anchors(read(t, file))[anchor] {
				t.Errorf("%s: %s has no heading #%s", rel, file, anchor)
			}
		}
	})
}

// TestCitations_NamePages looks at the comments and texts of the code.
func TestCitations_NamePages(t *testing.T) {
	files(t, func(rel string) {
		if !strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, ".proto") || rel == "testbed/tidy/docs_test.go" {
			return
		}
		for i, l := range lines(t, rel) {
			for _, page := range cited.FindAllString(l, -1) {
				if _, err := os.Stat(filepath.Join(root(t), page)); err != nil {
					t.Errorf("%s:%d: there is no %s", rel, i+1, page)
				}
			}
			if m := outside.FindString(l); m != "" {
				t.Errorf("%s:%d: %s is not in the repository", rel, i+1, m)
			}
		}
	})
}

func read(t *testing.T, rel string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// anchors are the names that a page's headings have in links.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		out[name] = true
	}
	return out
}
