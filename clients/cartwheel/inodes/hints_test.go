package inodes

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// under parses cues.
func under(t *testing.T, text string) cue.Set {
	t.Helper()
	all, err := cue.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// known returns a table with files in it.
func known(files ...ids.Object) *Table {
	t := New(0)
	for _, o := range files {
		t.Look(o, cue.Set{}, false)
	}
	return t
}

// TestHints_EachThreadHasItsOwn has threads look one file up by several paths before
// any of them opens it.
func TestHints_EachThreadHasItsOwn(t *testing.T) {
	f, g := ids.NewObject(1, 7), ids.NewObject(1, 8)
	table := known(f, g)
	limited, whole := under(t, ".MaxTime=100"), under(t, ".WholeFile")
	table.NoteCues(f, 1, limited, 0)
	table.NoteCues(f, 2, whole, 0)
	table.NoteCues(f, 3, cue.Set{}, 0)
	table.NoteCues(g, 4, limited, 0)
	for pid, want := range map[uint32]cue.Set{1: limited, 2: whole, 3: {}, 4: {}, 5: {}} {
		if got := table.HintedCues(f, pid, time.Millisecond); got != want {
			t.Errorf("thread %d opens the file under %v, want %v", pid, got, want)
		}
	}
	if got := table.HintedCues(f, 1, hintLife); got != (cue.Set{}) {
		t.Errorf("after %v the thread opens it under %v", hintLife, got)
	}
	table.NoteCues(g, 2, limited, 0)
	if got := table.HintedCues(f, 2, 0); got != whole {
		t.Errorf("a thread that looked up another file since opens it under %v, want %v", got, whole)
	}
	table.NoteCues(f, 2, cue.Set{}, 0)
	if got := table.HintedCues(f, 2, 0); got != (cue.Set{}) {
		t.Errorf("a thread that looked it up without cues opens it under %v", got)
	}
}

// TestHints_LimitsCountForTheKernelsOwn asks for a file in the name of no thread.
func TestHints_LimitsCountForTheKernelsOwn(t *testing.T) {
	f := ids.NewObject(1, 7)
	table := known(f)
	limited, whole := under(t, ".MaxTime=100"), under(t, ".WholeFile")
	table.NoteCues(f, 1, limited, 0)
	table.NoteCues(f, 2, whole, 0)
	if got := table.CuesOf(f, cue.Set{}, 0, limitedLife-1); got != limited {
		t.Errorf("got %v, want the limit", got)
	}
	if got := table.CuesOf(f, whole, 0, 0); got != whole {
		t.Errorf("below a path with cues got %v, want those", got)
	}
	if got := table.CuesOf(f, cue.Set{}, 0, limitedLife); got != (cue.Set{}) {
		t.Errorf("after %v got %v", limitedLife, got)
	}
	table.NoteCues(f, 3, cue.Set{}, 0)
	if got := table.CuesOf(f, cue.Set{}, 0, 0); got != (cue.Set{}) {
		t.Errorf("once it was looked up without a limit got %v", got)
	}
}

// TestHints_AreBounded has more threads look files up than are remembered. Those go
// whose time is over, and the last one is there in any case.
func TestHints_AreBounded(t *testing.T) {
	f := ids.NewObject(1, 7)
	table := known(f)
	cues := under(t, ".WholeFile")
	for pid := range uint32(maxHints) {
		table.NoteCues(f, pid, cues, time.Duration(pid%2)*hintLife)
	}
	table.NoteCues(f, maxHints, cues, hintLife)
	if n := len(table.lookups.hints); n != maxHints/2+1 {
		t.Errorf("%d threads are remembered, want those of the last moment, %d", n, maxHints/2+1)
	}
	for pid := range uint32(2 * maxHints) {
		table.NoteCues(f, pid, cues, hintLife)
		if table.HintedCues(f, pid, hintLife) != cues {
			t.Fatalf("thread %d is forgotten at once", pid)
		}
	}
	if n := len(table.lookups.hints); n > maxHints {
		t.Errorf("%d threads are remembered, more than %d", n, maxHints)
	}
}
