package health_test

import (
	"testing"

	"cartwheel.dev/node/health"
	"cartwheel.dev/node/protocol/status"
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

func TestScrubbed_NamesWhatIsStillWrong(t *testing.T) {
	if got := health.Scrubbed("n", "oslo", nil); got != nil {
		t.Errorf("of an earlier version: %v", got)
	}
	if got := health.Scrubbed("n", "oslo", &status.Scrub{Total: status.ScrubCounts{Damaged: 3, Repaired: 3}}); got != nil {
		t.Errorf("of what is repaired: %v", got)
	}
	got := health.Scrubbed("n", "oslo", &status.Scrub{LostChunks: 2, Different: []status.DifferentState{{Slice: 7}}})
	if len(got) != 2 || got[0].Severity != health.Critical || got[0].Kind != health.ChunksLost || got[1].Kind != health.StateDiffers || got[1].Text != "the state of slice 7 at oslo differs from that of other members" {
		t.Errorf("got %+v", got)
	}
}
