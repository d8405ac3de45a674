package content_test

import (
	"context"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/node/protocol/pb"
)

// TestRecover_KnowsWhichOfItsCommitsRan begins after several processes died with
// a commit on its way, of which an earlier one was run last.
func TestRecover_KnowsWhichOfItsCommitsRan(t *testing.T) {
	const at = 1_000_000
	writes := []content.Numbered{
		{Number: 1, Written: content.Written{Kind: content.WriteData, Data: []byte("aaaa")}},
		{Number: 2, Written: content.Written{Kind: content.WriteData, Offset: 2, Data: []byte("bbbb")}},
		{Number: 3, Written: content.Written{Kind: content.WriteData, Offset: 4, Data: []byte("cccc")}},
	}
	sent := []content.Sent{{Upto: 1, MtimeNs: at + 1}, {Upto: 2, MtimeNs: at + 2}, {Upto: 3, MtimeNs: at + 3}}
	texts := []string{"aaaa", "aabbbb", "aabbcccc"}
	for ran, text := range texts {
		for other := range 2 {
			cluster := contenttest.New()
			left := content.Leftover{Object: object, Known: cluster.Attr(object).Version, Writes: writes, Sent: sent}
			run := content.Commit{Object: object, Body: [][]byte{[]byte(text)}, Splice: &pb.Commit{Object: uint64(object), MtimeNs: sent[ran].MtimeNs,
				Extents: []*pb.Extent{{Length: uint64(len(text)), Source: &pb.Extent_BodyOffset{}}}}}
			if _, err := cluster.Apply(run); err != nil {
				t.Fatal(err)
			}
			want := "aabbcccc"
			if other == 1 {
				cluster.Write(object, 100, []byte("another client's"))
				want = string(cluster.Contents(object))
			}
			parked := false
			e := content.New(cluster, content.Options{})
			err := e.Recover(t.Context(), left, content.Recovery{Park: func(context.Context, *content.Parked) error {
				parked = true
				return nil
			}})
			must(t, err)
			must(t, e.Close(t.Context()))
			if got := string(cluster.Contents(object)); got != want || parked != (other == 1 && ran < 2) {
				t.Errorf("commit %d of 3 was run, %d others: %q, parked %v; want %q", ran+1, other, got, parked, want)
			}
		}
	}
}
