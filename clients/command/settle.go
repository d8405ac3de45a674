package command

import (
	"context"
	"fmt"
	"io"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
)

type geoConfigSettleCmd struct {
	adminFlags
	acceptFlags `embed:""`

	DryRun bool `help:"Only show what would be changed."`
}

// Help shows how it is called.
func (geoConfigSettleCmd) Help() string {
	return help(`cartwheel geo-config settle --accept-loss 7

After a rebuild: slices with members that were silent wait. Once these are back, this lets the slices go on. With --accept-loss it does so without them.`)
}

// Run settles what waits.
func (c geoConfigSettleCmd) Run(e *env) error {
	accept, err := c.accept()
	if err != nil {
		return err
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		stored, rows, err := ofOldGeneration(ctx, a)
		if err != nil {
			return err
		}
		v := rebuiltView{Cluster: rows.Cluster.ID, Generation: rows.Cluster.Generation, DryRun: c.DryRun, Silent: []silentView{}, Slices: []rebuild.Slice{}}
		if len(stored) == 0 {
			return e.print(v, func(w io.Writer) { fmt.Fprintln(w, "No slice waits.") })
		}
		reach, err := e.connect()
		if err != nil {
			return err
		}
		defer leave(reach)
		heard, err := recall(e, reach, v.Generation)
		if err != nil {
			return err
		}
		v.Slices = rebuild.Settle(stored, heard.copies, rows.Nodes, rebuild.Options{Generation: v.Generation, Accept: accept})
		if err := c.unknown(v.Slices); err != nil {
			return err
		}
		v.Cut = cutOf(v.Slices, askAll(e, reach, slices)) // before the slices go on
		if !c.DryRun {
			if err := a.settle(ctx, stored, v.Slices); err != nil {
				return err
			}
		}
		v.Answered = len(heard.copies)
		v.Silent = silentViews(rebuild.Silent(rows.Nodes, heard.copies), rows.Nodes, heard)
		return e.print(v, v.write)
	})
}

// ofOldGeneration returns the slices whose rows are of an earlier generation than the store,
// and the other rows that a settling needs.
func ofOldGeneration(ctx context.Context, a *administration) ([]geoconfig.SliceRow, geoconfig.Rows, error) {
	var out []geoconfig.SliceRow
	q := geoconfig.Query{Nodes: true, Slices: geoconfig.MaxBatchRows}
	for {
		rows, err := a.Read(ctx, q)
		if err != nil {
			return nil, rows, err
		}
		if rows.Cluster == nil {
			return nil, rows, fault.E(fault.NotFound, "command.settle", "geo-config", "holds no cluster: start it with the store that was rebuilt")
		}
		for _, r := range rows.Slices {
			if r.Generation < rows.Cluster.Generation {
				out = append(out, r)
			}
		}
		if !rows.More {
			return out, rows, nil
		}
		q.SlicesFrom = rows.Slices[len(rows.Slices)-1].ID + 1
	}
}

// settle writes the rows of the slices that wait no longer, each with its record.
func (a *administration) settle(ctx context.Context, stored []geoconfig.SliceRow, settled []rebuild.Slice) error {
	from := map[ids.Slice]ids.Epoch{}
	for _, r := range stored {
		from[r.ID] = r.Epoch
	}
	for _, s := range settled {
		if s.Verdict == rebuild.Waiting {
			continue
		}
		action, detail := "slice.settle", string(s.Verdict)
		if s.Verdict == rebuild.Lossy {
			action, detail = "slice.accept-loss", "without "+rebuild.Names(s.Silent)
		}
		b := geoconfig.Batch{Slices: []geoconfig.SliceSwap{{From: from[s.Row.ID], Row: s.Row, AcceptLoss: true}}}
		if _, err := a.order().Apply(ctx, a, b, action, geoconfig.SliceKey(s.Row.ID), detail); err != nil {
			return err
		}
	}
	return nil
}
