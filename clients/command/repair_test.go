package command

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

func TestCopyViews_EstimateWhatIsLeft(t *testing.T) {
	nodes := []nodeView{{ID: "12D3KooWTMFqeQKx", Site: "oslo", Copies: []status.Copy{
		{Slice: 7, Copies: 1, Level: 3, Running: true, TookNS: 10 * time.Second, Bytes: 1 << 20},
		{Slice: 8, Copies: 2, Level: 3, First: true}, {Slice: 9, Copies: 2, Level: 3}}}}
	views := copyViews(nodes, map[ids.Slice]int64{7: 4 << 20, 8: 1 << 10})
	if len(views) != 3 || views[0].LeftNS != 30*time.Second || views[1].LeftNS != 0 || views[1].OfBytes != 1024 || views[2].OfBytes != 0 {
		t.Errorf("got %+v", views)
	}
	var text strings.Builder
	copyText(&text, views)
	for _, want := range []string{"30s at most", "1 of 3", "is made", "1.0 MiB", "4.0 MiB", "waits, before others"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got %s, want %q in it", &text, want)
		}
	}
	for range copiesShown {
		nodes[0].Copies = append(nodes[0].Copies, status.Copy{Slice: 1})
	}
	text.Reset()
	if copyText(&text, copyViews(nodes, nil)); !strings.Contains(text.String(), "and 3 copies more") || strings.Count(text.String(), "\n") != copiesShown+3 {
		t.Errorf("got %s, want the first %d and how many there are", &text, copiesShown)
	}
	text.Reset()
	if copyText(&text, nil); text.Len() != 0 {
		t.Errorf("got %q where no copy is made", &text)
	}
}
