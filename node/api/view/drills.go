package view

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
)

// Drill is a drill that is over.
type Drill struct {
	ID        string        `json:"id"`
	Kind      string        `json:"kind" enum:"kill-active,cut,geo-config"`
	Path      string        `json:"path" doc:"The directory below which the probe wrote."`
	Slice     ids.Slice     `json:"slice" doc:"The slice of path."`
	Node      ids.Node      `json:"node,omitempty" doc:"Of kill-active: the slice's active."`
	Site      ids.Site      `json:"site,omitempty" doc:"Of cut: the site that was cut off."`
	Who       string        `json:"who"`
	StartedAt time.Time     `json:"started_at"`
	PlannedMS int64         `json:"planned_ms" doc:"How long it was to last."`
	LastedMS  int64         `json:"lasted_ms"`
	Stopped   string        `json:"stopped" enum:"time,interrupted,pause,wrong,members,node" doc:"Why it ended: time where it lasted as long as it was to."`
	Reason    string        `json:"reason" doc:"The same, for people."`
	WriteMS   int64         `json:"write_pause_ms" doc:"The longest time without an acknowledged write: the recovery time."`
	ReadMS    int64         `json:"read_pause_ms" doc:"The longest time without an answer to a read."`
	Writes    int           `json:"acknowledged" doc:"Writes that were acknowledged."`
	Lost      int           `json:"lost" doc:"Those of them that were missing or wrong afterwards: the recovery point."`
	WholeMS   *int64        `json:"whole_ms,omitempty" doc:"How long after the end every slice had its copies again; absent: the commander did not see it."`
	Streams   []DrillStream `json:"streams" nullable:"false"`
}

// DrillStream is what one client of the probe saw: each site has one.
type DrillStream struct {
	Site    ids.Site `json:"site"`
	UsualMS int64    `json:"usual_ms" doc:"The longest pause of writes before the drill."`
	WriteMS int64    `json:"write_pause_ms"`
	ReadMS  int64    `json:"read_pause_ms"`
	Writes  int      `json:"acknowledged"`
	Reads   int      `json:"reads"`
	Lost    int      `json:"lost"`
}

// OfDrill shows a record of the history.
func OfDrill(r *drill.Record) Drill {
	d := Drill{ID: r.ID, Kind: string(r.Kind), Path: r.Path, Slice: r.Slice, Node: r.Node, Site: r.Site, Who: r.By, StartedAt: time.Unix(0, r.AtNS).UTC(),
		PlannedMS: r.ForMS, LastedMS: r.LastedMS, Stopped: string(r.Stopped), Reason: r.Why, WriteMS: r.WritePauseMS, ReadMS: r.ReadPauseMS,
		Writes: r.Acknowledged, Lost: r.Lost, Streams: []DrillStream{}}
	if r.WholeMS >= 0 {
		d.WholeMS = new(r.WholeMS)
	}
	for _, s := range r.Streams {
		d.Streams = append(d.Streams, DrillStream{Site: s.Site, UsualMS: s.UsualMS, WriteMS: s.WritePauseMS, ReadMS: s.ReadPauseMS, Writes: s.Acknowledged, Reads: s.Reads, Lost: s.Lost})
	}
	return d
}
