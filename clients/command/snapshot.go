package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	gslices "slices"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

type snapshotCmd struct {
	Create   snapshotCreateCmd   `cmd:"" help:"Keep the whole tree as it is now, under a name."`
	Schedule snapshotScheduleCmd `cmd:"" help:"Have snapshots made again and again."`
	List     snapshotListCmd     `cmd:"" help:"List the snapshots and the schedules."`
	Delete   snapshotDeleteCmd   `cmd:"" help:"Delete a snapshot: what only it kept is collected. Or end a schedule."`
	Diff     snapshotDiffCmd     `cmd:"" help:"Show how a directory changed between two snapshots, or since one."`
	Restore  snapshotRestoreCmd  `cmd:"" help:"Copy what a snapshot has of a path back."`
	Send     snapshotSendCmd     `cmd:"" help:"Write a snapshot of a path, or what changed since another one, as a file for a copy elsewhere."`
	Receive  snapshotReceiveCmd  `cmd:"" help:"Make a copy of what snapshot send wrote, or make one current."`
}

// snapshotView is one snapshot as the commands print it.
type snapshotView struct {
	Name    string    `json:"name"`
	Time    time.Time `json:"time,omitzero"` // zero: it is a schedule
	By      string    `json:"by"`
	Expires time.Time `json:"expires,omitzero"`
	// Path is of a snapshot of a part of the tree: where that was.
	Path string `json:"path,omitempty"`
}

func viewSnapshot(s *pb.Snapshot) snapshotView {
	v := snapshotView{Name: s.GetName(), By: s.GetBy(), Path: s.GetPath()}
	if s.GetHlc() != 0 {
		v.Time = hlc.Time(s.Hlc).Wall().UTC()
	}
	if s.GetExpiresNs() != 0 {
		v.Expires = time.Unix(0, s.ExpiresNs).UTC()
	}
	return v
}

// snapshotLimit bounds an order, geo-config's part included.
const snapshotLimit = 30 * time.Second

// orderSnapshot has a node make or delete a snapshot. It asks the nearest one that answers
// another question first, so that the order is given once.
func (e *env) orderSnapshot(req *pb.SnapshotRequest) (snapshotView, error) {
	const op fault.Op = "command.orderSnapshot"
	c, err := e.connect()
	if err != nil {
		return snapshotView{}, err
	}
	defer leave(c)
	at := ids.Node("")
	for _, a := range askAll(e, c, snapshotsOf) {
		if a.err == nil && at == "" {
			at = a.id
		}
	}
	if at == "" {
		return snapshotView{}, fault.E(fault.Unreachable, op, cmp.Or(req.Make, req.Schedule, req.Delete), "no node answers that knows snapshots")
	}
	ctx, cancel := context.WithTimeout(e.ctx, snapshotLimit)
	defer cancel()
	a := &pb.SnapshotResponse{}
	body, err := c.Call(ctx, at, wire.Operation, method.Snapshot, req, nil, a)
	body.Release()
	return viewSnapshot(a.Snapshot), err
}

// snapshotsOf asks one node for the snapshots that it knows.
func snapshotsOf(ctx context.Context, c *contact.Cluster, id ids.Node) (*pb.SnapshotsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	a := &pb.SnapshotsResponse{}
	body, err := c.Call(ctx, id, wire.Operation, method.Snapshots, &pb.SnapshotsRequest{}, nil, a)
	body.Release()
	return a, err
}

type snapshotCreateCmd struct {
	Name   string `arg:"" help:"The snapshot's name: letters, digits, and behind the first also . _ -"`
	Path   string `arg:"" optional:"" type:"path" help:"A directory below a mount, to keep a part of the tree under the name (default: all)."`
	Keep   string `placeholder:"AGE" help:"Delete it after so long, such as 12h, 30d or 8w (default: never)."`
	DryRun bool   `help:"Only check whether it can be made."`
}

// Help shows how it is called.
func (snapshotCreateCmd) Help() string {
	return help(`cartwheel snapshot create before-upgrade --keep 30d

Nobody waits for it. Read it below .Snapshot=before-upgrade in any directory. What a mount has not sent yet is not in it.`)
}

// Run has a node make it.
func (c snapshotCreateCmd) Run(e *env) error {
	keep, err := parseKeep(c.Keep)
	if err != nil {
		return err
	}
	req := &pb.SnapshotRequest{Make: c.Name, KeepNs: int64(keep), DryRun: c.DryRun}
	if c.Path != "" {
		root := ids.Object(0)
		if req.Path, root, err = partAt(c.Path); err != nil {
			return err
		}
		req.Root = uint64(root)
	}
	v, err := e.orderSnapshot(req)
	if err != nil {
		return err
	}
	if v.Path != req.Path {
		return fault.E(fault.NotSupported, "command.Run", c.Name, "was made of the whole tree, by a node of an earlier version: delete it, and update the node")
	}
	until := "until it is deleted"
	if !v.Expires.IsZero() {
		until = "until " + v.Expires.Local().Format(time.DateTime)
	}
	verb := "is kept"
	if c.DryRun {
		verb = "would be kept"
	}
	what := "the tree"
	if v.Path != "" {
		what = v.Path
	}
	return e.done(v, "%s %s %s: %s as of %s", v.Name, verb, until, what, v.Time.Local().Format(time.DateTime))
}

// parseKeep reads an age as the cue .Snapshot has it; empty is 0.
func parseKeep(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	q, is, err := cue.Parse(cue.Snapshot.String() + "=-" + text)
	if err != nil || !is {
		return 0, fault.E(fault.Usage, "command.parseKeep", text, "is no age such as 12h, 30d or 8w")
	}
	_, age := q.Moment(time.UTC)
	return age, nil
}

type snapshotListCmd struct{}

// Help shows how it is called.
func (snapshotListCmd) Help() string { return help("cartwheel snapshot list --json") }

// snapshotList is what the command prints.
type snapshotList struct {
	Snapshots []snapshotView `json:"snapshots"`
	Schedules []scheduleView `json:"schedules"`
	// AgeSeconds is how old the list is; negative: not known.
	AgeSeconds float64 `json:"age_seconds"`
}

// Run prints the newest list that a node has.
func (snapshotListCmd) Run(e *env) error {
	best, err := e.newestSnapshots()
	if err != nil {
		return err
	}
	out := snapshotList{Snapshots: []snapshotView{}, Schedules: []scheduleView{}, AgeSeconds: time.Duration(best.AgeNs).Seconds()}
	for _, s := range best.Snapshots {
		out.Snapshots = append(out.Snapshots, viewSnapshot(s))
	}
	for _, s := range best.Schedules {
		out.Schedules = append(out.Schedules, viewSchedule(s))
	}
	gslices.SortStableFunc(out.Snapshots, func(a, b snapshotView) int { return a.Time.Compare(b.Time) })
	return e.print(out, func(w io.Writer) {
		snapshotsText(w, &out)
		schedulesText(w, out.Schedules)
	})
}

// newestSnapshots returns the newest list that a node has.
func (e *env) newestSnapshots() (*pb.SnapshotsResponse, error) {
	c, err := e.connect()
	if err != nil {
		return nil, err
	}
	defer leave(c)
	var best *pb.SnapshotsResponse
	for _, a := range askAll(e, c, snapshotsOf) {
		if a.err == nil && (best == nil || a.value.AgeNs >= 0 && (best.AgeNs < 0 || a.value.AgeNs < best.AgeNs)) {
			best = a.value
		}
	}
	if best == nil {
		return nil, fault.E(fault.Unreachable, "command.newestSnapshots", "snapshots", "no node answers that knows snapshots")
	}
	return best, nil
}

// snapshotsText prints the list for people.
func snapshotsText(w io.Writer, list *snapshotList) {
	if len(list.Snapshots) == 0 {
		fmt.Fprintln(w, "no snapshots")
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tAS OF\tMADE BY\tUNTIL\tOF")
	for _, s := range list.Snapshots {
		until := "deleted"
		if !s.Expires.IsZero() {
			until = s.Expires.Local().Format(time.DateTime)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Time.Local().Format(time.DateTime), s.By, until, cmp.Or(s.Path, "/"))
	}
	_ = t.Flush() // whoever reads it has gone
}

type snapshotDeleteCmd struct {
	Name   string `arg:"" help:"The snapshot's or the schedule's name."`
	DryRun bool   `help:"Only check whether it is there."`
}

// Help shows how it is called.
func (snapshotDeleteCmd) Help() string { return help("cartwheel snapshot delete before-upgrade") }

// Run has a node delete it.
func (c snapshotDeleteCmd) Run(e *env) error {
	v, err := e.orderSnapshot(&pb.SnapshotRequest{Delete: c.Name, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	verb := "is deleted"
	if c.DryRun {
		verb = "would be deleted"
	}
	if v.Time.IsZero() {
		return e.done(v, "the schedule %s %s: what it made stays until it expires", v.Name, verb)
	}
	return e.done(v, "%s of %s %s: what only it kept goes with the next collections", v.Name, v.Time.Local().Format(time.DateTime), verb)
}
