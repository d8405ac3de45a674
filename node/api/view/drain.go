package view

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drain"
)

// maxRemarks bounds the slices that a verdict names of each kind.
const maxRemarks = 100

// DrainVerdict says what draining nodes does.
type DrainVerdict struct {
	Nodes []ids.Node `json:"nodes" nullable:"false"`
	Left  Left       `json:"left" doc:"What the nodes have now."`
	// Obstacles and Losses name the first slices; the totals count all.
	Obstacles      []SliceRemark `json:"obstacles" nullable:"false" doc:"Slices of which a copy cannot leave. At most 100."`
	ObstaclesTotal int           `json:"obstacles_total"`
	Losses         []SliceRemark `json:"losses" nullable:"false" doc:"Slices that do not keep what their policy asks for. At most 100."`
	LossesTotal    int           `json:"losses_total"`
	DryRun         bool          `json:"dry_run" doc:"Nothing was changed."`
}

// Left counts what drained nodes still have.
type Left struct {
	Slices int `json:"slices" doc:"Slices with a copy there."`
	Active int `json:"active" doc:"Slices whose active stands there."`
	// StoredBytes counts the slices of known size.
	StoredBytes   *int64 `json:"stored_bytes,omitempty" doc:"What the copies of known size store; absent: not asked for."`
	UnknownSlices int    `json:"unknown_slices,omitempty" doc:"How many slices' size is not known."`
}

// SliceRemark is about one slice.
type SliceRemark struct {
	Slice ids.Slice `json:"slice"`
	Home  ids.Site  `json:"home"`
	Text  string    `json:"text" doc:"What the matter is, and what would help."`
}

// OfVerdict shows a verdict.
func OfVerdict(v *drain.Verdict, dryRun bool) DrainVerdict {
	return DrainVerdict{Nodes: NotNil(v.Nodes),
		Left:      Left{Slices: v.Left.Slices, Active: v.Left.Active, StoredBytes: new(v.Left.Bytes), UnknownSlices: v.Left.Unknown},
		Obstacles: remarks(v.Obstacles), ObstaclesTotal: len(v.Obstacles), Losses: remarks(v.Losses), LossesTotal: len(v.Losses), DryRun: dryRun}
}

func remarks(list []drain.Remark) []SliceRemark {
	out := []SliceRemark{}
	for _, r := range list[:min(maxRemarks, len(list))] {
		out = append(out, SliceRemark{r.Slice, r.Home, r.Text})
	}
	return out
}
