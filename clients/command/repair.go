package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/protocol/status"
)

type sliceRepairCmd struct {
	adminFlags
	Slice  uint32 `arg:"" help:"The slice's number."`
	First  bool   `help:"Make its missing copies before those of others that have as many copies left."`
	InTurn bool   `help:"Take that back."`
}

// Help shows how it is called.
func (sliceRepairCmd) Help() string {
	return help("cartwheel slice repair 7 --first\n\nSlices with fewer copies left go first in any case. `cartwheel status` shows which copies are made, and which wait.")
}

// Run writes it into the row of the slice's home site.
func (c sliceRepairCmd) Run(e *env) error {
	if c.First == c.InTurn {
		return fault.E(fault.Usage, "command.Run", "slice repair", "needs either --first or --in-turn")
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		row, err := changes.SetFirst(ctx, a, a.order(), ids.Slice(c.Slice), c.First)
		if err != nil {
			return err
		}
		how := "in turn with others that have as many copies"
		if c.First {
			how = "before others that have as many copies"
		}
		return e.done(row, "slice %d has %d of %d copies, and is repaired %s", row.ID, len(row.Normals()), row.Policy.Level, how)
	})
}

// copyView is a copy that a node makes, or waits to make.
type copyView struct {
	status.Copy
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	// OfBytes is what a whole copy stores; 0: not known.
	OfBytes int64 `json:"of_bytes,omitempty"`
	// LeftNS is how much longer the copy takes at most at its pace, in nanoseconds; 0:
	// not known, or it waits.
	LeftNS time.Duration `json:"left_ns,omitempty"`
}

// copyViews joins what the nodes say of copies with how large the slices are.
func copyViews(nodes []nodeView, stored map[ids.Slice]int64) []copyView {
	out := []copyView{}
	for _, n := range nodes {
		for _, c := range n.Copies {
			v := copyView{Copy: c, Node: n.ID, Site: n.Site, OfBytes: stored[c.Slice]}
			if c.Running && c.Bytes > 0 && v.OfBytes > c.Bytes {
				v.LeftNS = time.Duration(float64(c.TookNS) * float64(v.OfBytes-c.Bytes) / float64(c.Bytes))
			}
			out = append(out, v)
		}
	}
	return out
}

// storedBytes is what one copy of each slice stores, as far as a node told.
func storedBytes(answers []asked[[]status.Slice]) map[ids.Slice]int64 {
	out := map[ids.Slice]int64{}
	for _, row := range newestRows(answers) {
		if row.StoredBytes != nil {
			out[row.ID] = *row.StoredBytes
		}
	}
	return out
}

// copiesShown bounds the copies that the status lists for people.
const copiesShown = 20

func copyText(w io.Writer, views []copyView) {
	if len(views) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "COPY OF\tTO\tNODE\tWHOLE COPIES\tSTATE\tDONE\tOF\tLEFT")
	for _, v := range views[:min(len(views), copiesShown)] {
		state, done, left, of := "waits", "-", "-", "-"
		if v.First {
			state = "waits, before others"
		}
		if v.Running {
			state, done = "is made", size(v.Bytes)
		}
		if v.OfBytes > 0 {
			of = size(v.OfBytes)
		}
		if v.LeftNS > 0 {
			left = v.LeftNS.Round(time.Second).String() + " at most"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", v.Slice, v.Site, short(v.Node), v.Copies, v.Level, state, done, of, left)
	}
	_ = t.Flush() // whoever reads it has gone
	if more := len(views) - copiesShown; more > 0 {
		fmt.Fprintf(w, "and %d copies more\n", more)
	}
}
