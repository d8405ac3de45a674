package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	gslices "slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

const opRecover fault.Op = "command.recover"

type sliceRecoverCmd struct {
	adminFlags
	Slice      uint32 `arg:"" help:"The slice's number."`
	AcceptLoss bool   `help:"Do it: what only the silent members have is lost."`
	DryRun     bool   `help:"Only show what would be done, and what may be lost."`
}

// Help shows how it is called.
func (sliceRecoverCmd) Help() string {
	return help(`cartwheel slice recover 7 --accept-loss

For a slice of which no up-to-date member will come back. The freshest other member goes on, and the rest get copies of it. A member that returns later loses what only it has.`)
}

// recovery is what a recovery does, and what it may lose.
type recovery struct {
	Slice  ids.Slice `json:"slice"`
	DryRun bool      `json:"dry_run,omitempty"`
	// From goes on, with all changes up to Serial.
	From   member     `json:"from"`
	Serial ids.Serial `json:"serial"`
	// Time is that of the last of these; zero: it is not known. As of then the whole tree
	// is consistent, as far as this slice is concerned.
	Time time.Time `json:"time,omitzero"`
	// Known is the highest serial of which a member that answers has heard.
	Known ids.Serial `json:"known"`
	// Lacking counts changes whose content From has not got.
	Lacking int `json:"lacking"`
	// Silent are the up-to-date members that do not answer, or lost their copy.
	Silent []member `json:"silent"`
}

// Run recovers the slice.
func (c sliceRecoverCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		row, err := c.row(ctx, a)
		if err != nil {
			return err
		}
		reach, err := e.connect()
		if err != nil {
			return err
		}
		defer leave(reach)
		r, err := planRecovery(row, askAll(e, reach, slices), func(id ids.Node) ids.Site { return siteOf(reach, id) })
		if err != nil {
			return err
		}
		if err := r.checkGone(askAll(e, reach, askStatus)); err != nil {
			return err
		}
		r.DryRun = c.DryRun
		if c.DryRun {
			return e.print(r, r.text)
		}
		if !c.AcceptLoss {
			r.text(e.stdio.Err)
			return fault.E(fault.ReadOnly, opRecover, r.subject(), "its up-to-date members may come back with what is missing: bring them back, or say --accept-loss")
		}
		if err := a.recover(ctx, row, r); err != nil {
			return err
		}
		return e.print(r, r.text)
	})
}

// row reads the slice's row.
func (c sliceRecoverCmd) row(ctx context.Context, a *administration) (geoconfig.SliceRow, error) {
	subject := fmt.Sprint("slice ", c.Slice)
	rows, err := a.Read(ctx, geoconfig.Query{SliceIDs: []ids.Slice{ids.Slice(c.Slice)}})
	switch {
	case err != nil:
		return geoconfig.SliceRow{}, err
	case len(rows.Slices) != 1:
		return geoconfig.SliceRow{}, fault.E(fault.NotFound, opRecover, subject, "there is no such slice; `cartwheel slice ls` lists them")
	case rows.Slices[0].Generation < rows.Cluster.Generation:
		return geoconfig.SliceRow{}, fault.E(fault.ReadOnly, opRecover, subject, "waits since geo-config was rebuilt: run `cartwheel geo-config settle` first")
	}
	return rows.Slices[0], nil
}

// planRecovery chooses the member that goes on. Errors: NotEmpty where an up-to-date
// member answers, NotFound where no other member has a copy to go on from.
func planRecovery(row geoconfig.SliceRow, answers []asked[[]status.Slice], site func(ids.Node) ids.Site) (recovery, error) {
	r := recovery{Slice: row.ID, Silent: []member{}}
	told := map[ids.Node]status.Slice{}
	for _, a := range answers {
		for _, s := range a.value {
			if s.ID == row.ID && s.Whole {
				told[a.id] = s
				r.Known = max(r.Known, s.Commit, s.Applied)
			}
		}
	}
	var best ids.Node
	for _, m := range row.Members {
		s, answers := told[m.Node]
		shown := member{Node: m.Node, Site: site(m.Node), State: m.State.String()}
		switch {
		case m.State == geoconfig.Normal && answers:
			return r, fault.E(fault.NotEmpty, opRecover, r.subject(), fmt.Sprintf("its member %s at %s is up to date and answers: nothing is to be recovered, the slice goes on once enough members are back", short(m.Node), site(m.Node)))
		case m.State == geoconfig.Normal:
			r.Silent = append(r.Silent, shown)
		case answers && (best == "" || cmp.Or(cmp.Compare(reaches(s), reaches(told[best])), cmp.Compare(m.Node, best)) > 0):
			best, r.From, r.Serial, r.Time, r.Lacking = m.Node, shown, reaches(s), s.LastTime, s.Lacking
		}
	}
	if best == "" {
		return r, fault.E(fault.NotFound, opRecover, r.subject(), "no member that answers has a whole copy of it: start the nodes that have one, even an old one")
	}
	return r, nil
}

// reaches is up to which serial a copy has the changes: a member that goes on applies its
// whole log. Nodes of older versions tell only what is applied.
func reaches(s status.Slice) ids.Serial { return max(s.Applied, s.Last) }

// checkGone refuses, as NotEmpty, where a node is connected to an up-to-date member that
// this machine does not reach: it acts for the slice, perhaps.
func (r recovery) checkGone(answers []asked[status.Node]) error {
	for _, m := range r.Silent {
		if gslices.ContainsFunc(answers, func(a asked[status.Node]) bool { return a.err == nil && a.id == m.Node }) {
			continue // it answers here, and has no copy
		}
		for _, a := range answers {
			if gslices.ContainsFunc(a.value.Peers, func(p status.Peer) bool { return p.ID == m.Node && p.Connected }) {
				return fault.E(fault.NotEmpty, opRecover, r.subject(), fmt.Sprintf("its up-to-date member %s at %s does not answer this machine, and node %s reaches it: run this where all nodes are reached, or stop that member", short(m.Node), m.Site, short(a.id)))
			}
		}
	}
	return nil
}

// subject names the slice in errors.
func (r recovery) subject() string { return fmt.Sprint("slice ", r.Slice) }

// recover swaps the slice's row. The other members leave it: they drop their copies,
// which may differ from what goes on, and get new ones as new members.
func (a *administration) recover(ctx context.Context, row geoconfig.SliceRow, r recovery) error {
	next := row.Clone()
	next.Epoch, next.Active, next.Hear = row.Epoch+1, r.From.Node, 0
	next.Members = gslices.DeleteFunc(next.Members, func(m geoconfig.Member) bool { return m.Node != r.From.Node })
	next.Members[0].State = geoconfig.Normal
	silent := make([]ids.Node, len(r.Silent))
	for i, m := range r.Silent {
		silent[i] = m.Node
	}
	b := geoconfig.Batch{Slices: []geoconfig.SliceSwap{{From: row.Epoch, Row: next, AcceptLoss: true}}}
	_, err := a.order().Apply(ctx, a, b, "slice.recover", geoconfig.SliceKey(row.ID),
		fmt.Sprintf("from %s at serial %d, known %d, without %v", r.From.Node, r.Serial, r.Known, silent))
	return err
}

// text prints the recovery for people.
func (r recovery) text(w io.Writer) {
	verb := "goes on from"
	if r.DryRun {
		verb = "would go on from"
	}
	at := ""
	if !r.Time.IsZero() {
		at = ", made at " + cutText(r.Time)
	}
	fmt.Fprintf(w, "Slice %d %s node %s at %s, with all changes up to serial %d%s.\n", r.Slice, verb, short(r.From.Node), r.From.Site, r.Serial, at)
	for _, m := range r.Silent {
		fmt.Fprintf(w, "Silent or without its copy: the up-to-date member %s at %s\n", short(m.Node), m.Site)
	}
	if r.Known > r.Serial {
		fmt.Fprintf(w, "Lost: changes %d to %d, of which other members have heard.\n", r.Serial+1, r.Known)
	}
	fmt.Fprintf(w, "Lost, too: whatever was changed after serial %d that nobody who answers has heard of.\n", max(r.Serial, r.Known))
	if r.Lacking > 0 {
		fmt.Fprintf(w, "Content of %d changes is not at this node; `cartwheel scrub` tells which files lack it.\n", r.Lacking)
	}
	writeCut(w, r.Time)
}
