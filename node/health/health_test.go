package health_test

import (
	"testing"

	"cartwheel.dev/node/health"
)

func TestSentence_NamesEachCause(t *testing.T) {
	causes := []health.Cause{health.Silent("node", "paris"), health.Lacking(7, false, "has no active that answers")}
	health.Rank(causes)
	const want = "Not all is well: slice 7 has no active that answers; the node at paris does not answer."
	if got := health.Sentence(causes, 3, 3); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := health.Sentence(nil, 3, 2), "All well: 3 nodes at 2 sites, every slice fully protected."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
