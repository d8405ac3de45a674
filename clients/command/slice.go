package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	gslices "slices"
	"strings"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

type sliceCmd struct {
	Ls       sliceLsCmd       `cmd:"" help:"List the slices with their members."`
	HandOver sliceHandOverCmd `cmd:"" name:"hand-over" help:"Make another member the active, without waiting for a lease to end."`
	Repair   sliceRepairCmd   `cmd:"" help:"Make a slice's missing copies before those of others, or in turn."`
	Recover  sliceRecoverCmd  `cmd:"" help:"Let a slice go on without its up-to-date members, from the freshest other one."`
}

// sliceView is one slice in the list.
type sliceView struct {
	ID      ids.Slice        `json:"id"`
	Epoch   ids.Epoch        `json:"epoch"`
	Active  member           `json:"active"`
	Members []member         `json:"members"`
	Policy  geoconfig.Policy `json:"policy"`
	Closed  bool             `json:"closed"`
	// Generation is that of the geo-config which wrote the row.
	Generation ids.Generation `json:"generation"`
	// Serving says whether its active acts for it now; nobody answered for it
	// where that is not known.
	Serving *bool      `json:"serving,omitempty"`
	Why     string     `json:"why,omitempty"`
	Objects uint64     `json:"objects"`
	Commit  ids.Serial `json:"commit"`
}

type sliceLsCmd struct{}

// Help shows how it is called.
func (sliceLsCmd) Help() string { return help("cartwheel slice ls --json") }

// Run lists what the nodes know, the newest row of each slice.
func (sliceLsCmd) Run(e *env) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	views := sliceViews(c, askAll(e, c, slices))
	return e.print(views, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "SLICE\tEPOCH\tACTIVE\tMEMBERS\tHOME\tLEVEL\tOBJECTS\tSTATE")
		for _, v := range views {
			fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%d\t%d\t%s\n", v.ID, v.Epoch, v.Active.Site, strip(v.Members), v.Policy.Home, v.Policy.Level, v.Objects, v.state())
		}
		_ = t.Flush() // whoever reads it has gone
	})
}

func (v sliceView) state() string {
	switch {
	case v.Serving == nil:
		return "its active does not answer"
	case !*v.Serving:
		return "waits: " + v.Why
	case v.Closed:
		return "serves, closed to new objects"
	}
	return "serves"
}

func strip(members []member) string {
	var out []string
	for _, m := range members {
		out = append(out, fmt.Sprintf("%s:%s", m.Site, m.State))
	}
	return strings.Join(out, " ")
}

// newestRow is what the nodes said of one slice.
type newestRow struct {
	status.Slice
	// ofActive says that the slice's active said so.
	ofActive bool
}

// newestRows joins what the nodes answered, by slice: the newest row of each, and
// of equal ones the active's own.
func newestRows(answers []asked[[]status.Slice]) []newestRow {
	best := map[ids.Slice]newestRow{}
	for _, a := range answers {
		for _, s := range a.value {
			old, ok := best[s.ID]
			if !ok || s.Epoch > old.Epoch || s.Epoch == old.Epoch && a.id == s.Active {
				best[s.ID] = newestRow{s, a.id == s.Active}
			}
		}
	}
	return gslices.SortedFunc(maps.Values(best), func(a, b newestRow) int { return cmp.Compare(a.ID, b.ID) })
}

// sliceViews shows what the nodes answered, by slice.
func sliceViews(c *contact.Cluster, answers []asked[[]status.Slice]) []sliceView {
	out := []sliceView{}
	for _, s := range newestRows(answers) {
		v := sliceView{ID: s.ID, Epoch: s.Epoch, Policy: s.Policy, Closed: s.Closed, Generation: s.Generation, Objects: s.Objects, Commit: s.Commit}
		v.Active = member{Node: s.Active, Site: siteOf(c, s.Active), State: geoconfig.Normal.String()}
		for _, m := range s.SliceRow.Members {
			v.Members = append(v.Members, member{Node: m.Node, Site: siteOf(c, m.Node), State: m.State.String()})
		}
		if s.ofActive {
			v.Serving, v.Why = &s.Serving, s.Why
		}
		out = append(out, v)
	}
	return out
}

type sliceHandOverCmd struct {
	Slice uint32 `arg:"" help:"The slice's number."`
	Site  string `arg:"" optional:"" help:"Site whose member becomes the active; without it the active chooses."`
	To    string `help:"The same site, as an option."`
}

// Help shows how it is called.
func (sliceHandOverCmd) Help() string { return help("cartwheel slice hand-over 1 boston") }

// handOverLimit bounds a hand-over, object leases waited out included.
const handOverLimit = 30 * time.Second

// Run asks the active to pass its part on.
func (h sliceHandOverCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	switch {
	case h.To == "":
		h.To = h.Site
	case h.Site != "" && h.Site != h.To:
		return fault.E(fault.Usage, op, h.Site, "is another site than --to "+h.To+": name one of them")
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	for _, v := range sliceViews(c, askAll(e, c, slices)) {
		if v.ID != ids.Slice(h.Slice) {
			continue
		}
		to := ""
		for _, m := range v.Members {
			if h.To != "" && string(m.Site) == h.To {
				to = string(m.Node)
			}
		}
		if h.To != "" && to == "" {
			return fault.Errorf(fault.NotFound, op, h.To, "has no member of slice %d: %s", h.Slice, strip(v.Members))
		}
		defer e.progress("handing slice %d over", h.Slice)()
		ctx, cancel := context.WithTimeout(e.ctx, handOverLimit)
		defer cancel()
		_, err := c.Call(ctx, v.Active.Node, wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: h.Slice, To: to}, nil, &pb.HandOverResponse{})
		if err != nil {
			return fault.Wrap(fault.Other, op, fmt.Sprint("slice ", h.Slice), err)
		}
		return e.done(map[string]any{"slice": h.Slice, "from": v.Active.Site}, "slice %d was handed over by %s", h.Slice, v.Active.Site)
	}
	return fault.Errorf(fault.NotFound, op, fmt.Sprint("slice ", h.Slice), "no node knows it; `cartwheel slice ls` lists them")
}
