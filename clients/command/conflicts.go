package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	gslices "slices"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

type conflictsCmd struct{}

// Help shows how it is called.
func (conflictsCmd) Help() string { return help("cartwheel conflicts --json") }

// conflict is one that a merge met.
type conflict struct {
	Merged time.Time `json:"merged"`
	Path   string    `json:"path"`
	Kept   string    `json:"kept,omitempty"` // beside it
	Reason string    `json:"reason"`
	Wrote  time.Time `json:"wrote"` // at the side
	Side   member    `json:"side"`  // the node that kept the side log
	Slice  ids.Slice `json:"slice"`
}

// waiting is a side log that is not merged yet.
type waiting struct {
	Side    member    `json:"side"`
	Slice   ids.Slice `json:"slice"`
	Objects uint32    `json:"objects"`
	Seconds float64   `json:"seconds"`
}

// conflictList is what the command prints. Partial says that a node did not answer.
type conflictList struct {
	Conflicts []conflict `json:"conflicts"`
	Waiting   []waiting  `json:"waiting"`
	Away      []member   `json:"away,omitempty"`
}

// Run asks all nodes.
func (conflictsCmd) Run(e *env) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	out := conflictList{Conflicts: []conflict{}, Waiting: []waiting{}}
	for _, a := range askAll(e, c, conflictsOf) {
		at := member{Node: a.id, Site: siteOf(c, a.id)}
		if fault.Is(a.err, fault.Permission) {
			return a.err
		}
		if a.err != nil {
			out.Away = append(out.Away, at)
			continue
		}
		for _, x := range a.value.Conflicts {
			out.Conflicts = append(out.Conflicts, conflictView(c, x))
		}
		for _, x := range a.value.Waiting {
			out.Waiting = append(out.Waiting, waiting{at, ids.Slice(x.Slice), x.Objects, time.Duration(x.WaitsNs).Seconds()})
		}
	}
	gslices.SortStableFunc(out.Conflicts, func(a, b conflict) int { return cmp.Or(a.Merged.Compare(b.Merged), cmp.Compare(a.Path, b.Path)) })
	return e.print(out, func(w io.Writer) { conflictsText(w, &out) })
}

func conflictsOf(ctx context.Context, c *contact.Cluster, id ids.Node) (*pb.ConflictsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	a := &pb.ConflictsResponse{}
	body, err := c.Call(ctx, id, wire.Operation, method.Conflicts, &pb.ConflictsRequest{}, nil, a)
	body.Release()
	return a, err
}

func conflictView(c *contact.Cluster, x *pb.Conflict) conflict {
	out := conflict{
		Merged: time.Unix(0, x.MergedNs).UTC(), Path: path.Join(x.Path, string(x.Name)), Reason: x.Reason, Wrote: time.Unix(0, x.AtNs).UTC(),
		Side: member{Node: ids.Node(x.Node), Site: siteOf(c, ids.Node(x.Node))}, Slice: ids.Slice(x.Slice),
	}
	if len(x.KeptName) > 0 {
		out.Kept = path.Join(x.Path, string(x.KeptName))
	}
	return out
}

// conflictsText prints the list for people.
func conflictsText(w io.Writer, list *conflictList) {
	if len(list.Conflicts) == 0 {
		fmt.Fprintln(w, "no conflicts")
	}
	for _, x := range list.Conflicts {
		fmt.Fprintf(w, "%s  %s\n", x.Merged.Format(time.DateTime), x.Path)
		fmt.Fprintf(w, "    written at %s on %s: %s\n", x.Side.Site, x.Wrote.Format(time.DateTime), x.Reason)
		if x.Kept != "" {
			fmt.Fprintf(w, "    kept as %s\n", x.Kept)
		}
	}
	if len(list.Waiting) > 0 {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "WAITS AT\tSLICE\tOBJECTS\tFOR")
		for _, x := range list.Waiting {
			fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", x.Side.Site, x.Slice, x.Objects, time.Duration(x.Seconds*float64(time.Second)).Round(time.Second))
		}
		_ = t.Flush() // whoever reads it has gone
	}
	for _, at := range list.Away {
		fmt.Fprintf(w, "the node at %s (%s) does not answer: its slices are not in the list\n", at.Site, short(at.Node))
	}
}
