package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/drilling"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
)

type drillCmd struct {
	KillActive  string        `placeholder:"DIR" xor:"what" help:"The active of the directory's slice behaves as if its process had died. DIR is below a mount, or a path in the tree such as /reports."`
	Cut         string        `placeholder:"SITE" xor:"what" help:"The site's nodes and clients reach no other site."`
	GeoConfig   bool          `xor:"what" help:"All nodes behave as if geo-config were away."`
	List        bool          `xor:"what" help:"List the drills that are over."`
	Path        string        `placeholder:"DIR" help:"With --cut and --geo-config: the directory below which the probe writes (default: /)."`
	For         time.Duration `default:"15s" help:"How long it lasts, 5m at most."`
	StopAfter   time.Duration `default:"30s" help:"End it once a read or a write pauses for longer."`
	AcceptPause bool          `help:"Allow slices to stop that no standby can take over."`
	DryRun      bool          `help:"Only check whether it may begin."`
}

// Help shows how it is called.
func (drillCmd) Help() string {
	return help(`cartwheel drill --kill-active /reports

A drill fails nothing for real: nodes refuse connections for a time, and then come back by themselves. It begins only while the cluster is whole. Ctrl-C ends it. The exit status is 9 where an acknowledged write was lost.`)
}

const opDrill fault.Op = "command.drill"

// drillCheck is what --dry-run prints.
type drillCheck struct {
	Kind      drill.Kind `json:"kind"`
	Node      ids.Node   `json:"node,omitempty"`
	Site      ids.Site   `json:"site,omitempty"`
	Obstacles []string   `json:"obstacles"`
}

// Run checks, conducts the drill and prints what came of it.
func (d drillCmd) Run(e *env) error {
	o, err := d.options()
	if err != nil {
		return err
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	if d.List {
		list, err := drilling.History(e.ctx, c, nil)
		if err != nil {
			return err
		}
		return e.print(drillList{list}, func(w io.Writer) { drillsText(w, list) })
	}
	o.Cluster, o.Wall = c, time.Now
	if o.Open, err = e.probes(); err != nil {
		return err
	}
	o.Say = func(text string) { fmt.Fprintln(e.stdio.Err, text) }
	return d.conduct(e, drilling.New(o))
}

// options reads the words.
func (d drillCmd) options() (o drilling.Options, err error) {
	o = drilling.Options{Site: ids.Site(d.Cut), For: d.For, StopAfter: d.StopAfter, AcceptPause: d.AcceptPause}
	dir := cmp.Or(d.Path, "/")
	switch {
	case d.List:
		return o, nil
	case d.KillActive != "":
		if d.Path != "" {
			return o, fault.E(fault.Usage, opDrill, "--path", "goes with --cut and --geo-config: with --kill-active the probe writes below DIR")
		}
		o.Kind, dir = drill.KillActive, d.KillActive
	case d.Cut != "":
		o.Kind = drill.Cut
	case d.GeoConfig:
		o.Kind = drill.GeoConfig
	default:
		return o, fault.E(fault.Usage, opDrill, "", "say what is to fail: --kill-active, --cut or --geo-config; --list shows earlier drills")
	}
	if d.For <= 0 || d.For > drill.Longest {
		return o, fault.Errorf(fault.Usage, opDrill, "--for", "is above 0, and %v at most", drill.Longest)
	}
	if d.StopAfter <= 0 {
		return o, fault.E(fault.Usage, opDrill, "--stop-after", "is above 0")
	}
	o.Path, err = treePath(dir)
	return o, err
}

// treePath turns a path below a mount into one in the tree. Any other one must be a path
// in the tree already.
func treePath(name string) (string, error) {
	if _, err := whereOf(name); err != nil {
		if fault.Is(err, fault.NotFound) && strings.HasPrefix(name, "/") {
			return path.Clean(name), nil
		}
		return "", err
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return "", fault.FromOS(opDrill, name, err)
	}
	below := "/"
	for dir := filepath.Dir(full); dir != full; full, dir = dir, filepath.Dir(dir) {
		if _, err := whereOf(dir); err != nil {
			break // full is the mount point
		}
		below = path.Join("/", filepath.Base(full), below)
	}
	return below, nil
}

// probes returns what opens the probe's clients.
func (e *env) probes() (drilling.Opener, error) {
	file, err := e.contactFile()
	if err != nil {
		return nil, err
	}
	f, err := contact.Load(file)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, site ids.Site) (drilling.Files, error) {
		const memory = 16 << 20 // it writes little
		return cartwheel.Open(ctx, cartwheel.Options{Contact: f, Site: site, Name: "drill", Memory: memory})
	}, nil
}

// conduct checks and runs a drill. The first signal ends it, and the second what is left to
// do afterwards.
func (d drillCmd) conduct(e *env, c *drilling.Conductor) error {
	obstacles, err := c.Check(e.ctx)
	if err != nil {
		return err
	}
	p := c.Plan()
	if d.DryRun {
		v := drillCheck{Kind: p.Kind, Node: p.Node, Site: p.Site, Obstacles: obstacles}
		if err := e.print(v, v.text); err != nil {
			return err
		}
	}
	if len(obstacles) > 0 {
		return fault.E(fault.Busy, opDrill, string(p.Kind), "the drill does not begin: "+strings.Join(obstacles, "; "))
	}
	if d.DryRun {
		return nil
	}
	hurry, cancel := context.WithCancel(context.WithoutCancel(e.ctx))
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-e.stdio.Again: // nil: never
			cancel()
		case <-done:
		}
	}()
	r, err := c.Run(e.ctx, hurry)
	if r == nil {
		return err
	}
	if printErr := e.print(r, func(w io.Writer) { drillText(w, r) }); printErr != nil {
		return printErr
	}
	return cmp.Or(drillVerdict(r), err)
}

// drillVerdict is the error of a drill that did not go as it was to.
func drillVerdict(r *drill.Record) error {
	kind := map[drill.Stop]fault.Kind{drill.Time: fault.None, drill.Interrupted: fault.Canceled, drill.Pause: fault.TimedOut,
		drill.Wrong: fault.Corrupt, drill.Members: fault.Unreachable, drill.Failing: fault.Unreachable}[r.Stopped]
	if kind == fault.None {
		return nil
	}
	return fault.E(kind, opDrill, r.ID, r.Why)
}

func (v drillCheck) text(w io.Writer) {
	if len(v.Obstacles) == 0 {
		fmt.Fprintf(w, "A %s drill may begin.\n", strings.TrimSpace(fmt.Sprintf("%s %s", v.Kind, cmp.Or(string(v.Site), tailOf(v.Node)))))
	}
}

// tailOf is short, but nothing of no node.
func tailOf(id ids.Node) string {
	if id == "" {
		return ""
	}
	return short(id)
}

// drillText prints a drill for people.
func drillText(w io.Writer, r *drill.Record) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SITE\tUSUAL\tWRITES PAUSED\tREADS PAUSED\tACKNOWLEDGED\tLOST\tREADS")
	for _, s := range r.Streams {
		fmt.Fprintf(t, "%s\t%d ms\t%d ms\t%d ms\t%d\t%d\t%d\n", s.Site, s.UsualMS, s.WritePauseMS, s.ReadPauseMS, s.Acknowledged, s.Lost, s.Reads)
	}
	_ = t.Flush() // whoever reads it has gone
	fmt.Fprintf(w, "\nRecovery time (RTO): %d ms for writes, %d ms for reads.\n", r.WritePauseMS, r.ReadPauseMS)
	fmt.Fprintf(w, "Recovery point (RPO): %d of %d acknowledged writes lost.\n", r.Lost, r.Acknowledged)
	if r.Lost > 0 {
		fmt.Fprintf(w, "The probe's files are still in %s: keep them, and report this.\n", path.Join(r.Path, "drill-"+r.ID))
	}
	fmt.Fprintf(w, "Drill %s (%s) lasted %.1f s: %s.\n", r.ID, drillSubject(r), float64(r.LastedMS)/1000, r.Why)
	if r.WholeMS >= 0 {
		fmt.Fprintf(w, "Every slice was whole again %.1f s later.\n", float64(r.WholeMS)/1000)
	} else {
		fmt.Fprintln(w, "Whether every slice is whole again, `cartwheel status` tells.")
	}
}

// drillSubject says what a drill was about.
func drillSubject(r *drill.Record) string {
	switch r.Kind {
	case drill.KillActive:
		return fmt.Sprintf("%s of %s", r.Kind, r.Path)
	case drill.Cut:
		return fmt.Sprintf("%s of %s", r.Kind, r.Site)
	}
	return string(r.Kind)
}

// drillList is what --list prints, the oldest first.
type drillList struct {
	Drills []drill.Record `json:"drills"`
}

// drillsText prints the history for people.
func drillsText(w io.Writer, list []drill.Record) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no drills yet")
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "BEGAN\tWHAT\tBY\tLASTED\tWRITES PAUSED\tREADS PAUSED\tLOST\tENDED BY")
	for i := range list {
		r := &list[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f s\t%d ms\t%d ms\t%d of %d\t%s\n", time.Unix(0, r.AtNS).Format(time.DateTime), drillSubject(r), r.By,
			float64(r.LastedMS)/1000, r.WritePauseMS, r.ReadPauseMS, r.Lost, r.Acknowledged, r.Stopped)
	}
	_ = t.Flush() // whoever reads it has gone
}
