package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/testbed/examples"
)

// TestDocs_ExamplesRun does what a reader of each page does: it enters the
// page's shell blocks in order, in a directory that looks like a checkout, and
// compares what they print with what the page shows. Package examples says how
// pages are written for it, and lists the blocks that no test runs.
func TestDocs_ExamplesRun(t *testing.T) {
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := examples.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		steps := runnable(p)
		if len(steps) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(p.Name), ".md"), func(t *testing.T) {
			s := newSandbox(t, root, p)
			for _, step := range steps {
				s.enter(step)
			}
			s.leave()
		})
	}
}

// runnable are the steps of a page that no mark exempts.
func runnable(p examples.Page) []examples.Step {
	var out []examples.Step
	for _, s := range p.Steps() {
		if _, not := s.Block.Marks[examples.NotRun]; !not {
			out = append(out, s)
		}
	}
	return out
}
