package command

import (
	"cmp"
	"fmt"
	"io"
	gslices "slices"
	"strings"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/health"
	"cartwheel.dev/node/protocol/status"
)

type statusCmd struct {
	Wait    bool          `help:"Wait until all is well and every copy is where it should be, and say how far it is."`
	Timeout time.Duration `help:"Stop waiting after this time (0: wait until it ends)."`
}

// nodeView is one node in the status.
type nodeView struct {
	ID        ids.Node `json:"id"`
	Site      ids.Site `json:"site"`
	Addresses []string `json:"addresses"`
	Reachable bool     `json:"reachable"`
	Error     string   `json:"error,omitempty"`
	Version   string   `json:"version,omitempty"`
	Used      int64    `json:"used_bytes"`
	Capacity  int64    `json:"capacity_bytes"`
	ReadOnly  bool     `json:"read_only,omitempty"`
	// Packs is the length of the files that chunks lie in, Waiting what in them waits to
	// be given back.
	Packs   int64 `json:"pack_bytes"`
	Waiting int64 `json:"waiting_bytes"`
	// Moved is the content that it sent since its start to members that lacked it.
	Moved int64 `json:"moved_bytes"`
	// Free is what the disk has left, and Disk what holds it, where the caller may see it.
	Free     int64        `json:"free_bytes"`
	Disk     *status.Disk `json:"disk,omitempty"`
	Active   int          `json:"slices_active"`
	Standby  int          `json:"slices_standby"`
	Junior   int          `json:"slices_junior"`
	Sessions int          `json:"sessions"`
	// Scrub is how far the node is with reading all that it stores.
	Scrub *status.Scrub `json:"scrub,omitempty"`
	// Balance is how the node's disk stands to its marks.
	Balance *status.Balance `json:"balance,omitempty"`
	// Copies are those that the node makes, or waits to make: statusView has them.
	Copies []status.Copy `json:"-"`
}

// statusView is what status prints.
type statusView struct {
	Cluster   ids.Cluster `json:"cluster"`
	Healthy   bool        `json:"healthy"`
	Sentence  string      `json:"sentence"`
	GeoConfig struct {
		Reachable   bool   `json:"reachable"`
		Kind        string `json:"kind"`
		SinglePoint bool   `json:"single_point"`
		Warning     string `json:"warning,omitempty"`
		// Generation rises with each rebuild.
		Generation ids.Generation `json:"generation"`
	} `json:"geo_config"`
	Nodes    []nodeView       `json:"nodes"`
	Copies   []copyView       `json:"copies"`
	Sites    []geoconfig.Site `json:"sites"`
	Warnings []warning        `json:"warnings"`
	// Balancing says which nodes give slices away because their disks fill up, and why
	// others do not.
	Balancing []string `json:"balancing,omitempty"`
	// Drill is under way; nil: none is.
	Drill *status.Drill `json:"drill,omitempty"`
	// Mixed says that nodes run different versions; empty: they do not.
	Mixed string `json:"mixed_versions,omitempty"`
	// Waited is what happened while the command waited.
	Waited *waitView `json:"waited,omitempty"`
}

// Help shows how it is called.
func (statusCmd) Help() string { return help("cartwheel status --wait --timeout 10m") }

// Run asks every node and sums up; with --wait until all is well.
func (s statusCmd) Run(e *env) error {
	if s.Timeout != 0 && !s.Wait || s.Timeout < 0 {
		return fault.E(fault.Usage, "command.Run", "--timeout", "bounds --wait: give both, and a time above 0")
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	if s.Wait {
		return s.wait(e, c)
	}
	v, _ := survey(e, c)
	return e.print(v, v.text)
}

// survey asks every node how it is and what its slices are.
func survey(e *env, c *contact.Cluster) (statusView, []sliceView) {
	var v statusView
	v.Sites = c.Sites()
	v.GeoConfig.Reachable = true
	var troubles []health.Cause
	answered := false
	var findings []status.Finding
	for _, a := range askAll(e, c, askStatus) {
		row, _ := c.Node(a.id)
		n := nodeView{ID: a.id, Site: row.Site, Addresses: row.Addresses}
		if a.err != nil {
			n.Error = explain(a.err)
			troubles = append(troubles, health.Silent(a.id, row.Site))
		} else {
			answered = true
			v.Cluster = a.value.Cluster
			fill(&n, a.value)
			v.geoConfig(a.value.GeoConfig)
			v.Drill = cmp.Or(v.Drill, a.value.Drill)
			findings = append(findings, a.value.Findings...)
			if n.ReadOnly {
				troubles = append(troubles, health.Full(a.id, row.Site))
			}
			troubles = append(troubles, health.Scrubbed(a.id, row.Site, n.Scrub)...)
		}
		v.Nodes = append(v.Nodes, n)
		if text := n.balancing(c.Demo()); text != "" {
			v.Balancing = append(v.Balancing, text)
		}
	}
	if answered && !v.GeoConfig.Reachable {
		troubles = append(troubles, health.Away())
	}
	listed := askAll(e, c, slices)
	views := sliceViews(c, listed)
	v.Copies = copyViews(v.Nodes, storedBytes(listed))
	if answered && len(views) == 0 {
		troubles = append(troubles, health.Rootless())
	}
	for _, s := range views {
		lacks := s.lacks()
		if lacks == "" && s.Generation < v.GeoConfig.Generation {
			lacks = "waits since geo-config was rebuilt, and its members cannot change: `cartwheel geo-config settle`"
		}
		if lacks != "" {
			troubles = append(troubles, health.Lacking(s.ID, s.Serving != nil && *s.Serving, lacks))
		}
	}
	v.Warnings = warnings(findings, c.Demo())
	v.Mixed = mixedVersions(v.Nodes)
	v.Healthy = len(troubles) == 0
	v.Sentence = health.Sentence(troubles, len(v.Nodes), len(v.Sites))
	return v, views
}

// mixedVersions says that the nodes which answer run different versions.
func mixedVersions(nodes []nodeView) string {
	count := map[string]int{}
	for _, n := range nodes {
		if n.Reachable {
			count[n.Version]++
		}
	}
	if len(count) < 2 {
		return ""
	}
	var list []string
	for v, n := range count {
		list = append(list, fmt.Sprintf("%s at %d", v, n))
	}
	gslices.Sort(list)
	return "nodes run different versions (" + strings.Join(list, ", ") + "): features that not all of them know stay off until the older ones are updated"
}

// geoConfig takes in what one node says of the configuration store.
func (v *statusView) geoConfig(g status.GeoConfig) {
	if !g.Reachable {
		v.GeoConfig.Reachable = false
	}
	if g.Kind != "" {
		v.GeoConfig.Kind, v.GeoConfig.SinglePoint = g.Kind, g.SinglePoint
	}
	if g.Warning != "" {
		v.GeoConfig.Warning = g.Warning
	}
	v.GeoConfig.Generation = max(v.GeoConfig.Generation, g.Generation)
}

func fill(n *nodeView, r status.Node) {
	n.Reachable, n.Version = true, r.Version
	n.Used, n.Capacity, n.ReadOnly = r.UsedBytes, r.CapacityBytes, r.ReadOnly
	n.Packs, n.Waiting, n.Free, n.Disk = r.PackBytes, r.WaitingBytes, r.FreeBytes, r.Disk
	n.Scrub, n.Moved, n.Balance, n.Copies = r.Scrub, r.MovedBytes, r.Balance, r.Copies
	n.Active, n.Standby, n.Junior, n.Sessions = r.SlicesActive, r.SlicesStandby, r.SlicesJunior, r.Sessions
}

// lacks says what a slice's protection is short of, empty if nothing.
func (v sliceView) lacks() string {
	normal := 0
	for _, m := range v.Members {
		if m.State == geoconfig.Normal.String() {
			normal++
		}
	}
	switch {
	case v.Serving == nil:
		return "has no active that answers"
	case !*v.Serving:
		return "does not serve: " + v.Why
	case normal < v.Policy.Level:
		return fmt.Sprintf("has %d of %d copies (%s)", normal, v.Policy.Level, strip(v.Members))
	}
	return ""
}

func (v statusView) text(w io.Writer) {
	fmt.Fprintln(w, v.Sentence)
	if v.Waited != nil {
		v.Waited.text(w)
	}
	if v.GeoConfig.Warning != "" {
		fmt.Fprintln(w, "Note:", v.GeoConfig.Warning)
	}
	if v.Mixed != "" {
		fmt.Fprintln(w, "Note:", v.Mixed)
	}
	if d := v.Drill; d != nil {
		fmt.Fprintf(w, "Note: drill %s (%s) is under way, for %.0f s more at the most: what fails now may fail on purpose\n", d.ID, d.Kind, d.LeftNS.Seconds())
	}
	for _, text := range v.Balancing {
		fmt.Fprintln(w, "Note:", text)
	}
	for _, x := range v.Warnings {
		fmt.Fprintln(w, "Warning:", x.Text)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SITE\tNODE\tSTATE\tACTIVE\tSTANDBY\tJUNIOR\tCLIENTS\tUSED\tOF\tVERSION")
	for _, n := range v.Nodes {
		state := "up"
		if !n.Reachable {
			state = "does not answer"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", n.Site, short(n.ID), state, n.Active, n.Standby, n.Junior, n.Sessions, size(n.Used), size(n.Capacity), n.Version)
	}
	_ = t.Flush() // whoever reads it has gone
	copyText(w, v.Copies)
	diskText(w, v.Nodes)
	scrubs := scrubView{Nodes: make([]scrubNode, len(v.Nodes))}
	for i, n := range v.Nodes {
		scrubs.Nodes[i] = scrubNode{Node: n.ID, Site: n.Site, Scrub: n.Scrub}
	}
	if scrubs.tells() {
		fmt.Fprintln(w)
		scrubText(w, scrubs.Nodes)
	}
}

// diskText prints what holds the nodes' disks, where that is known.
func diskText(w io.Writer, nodes []nodeView) {
	if !gslices.ContainsFunc(nodes, func(n nodeView) bool { return n.Disk != nil }) {
		return
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "DISK OF\tNODE\tLIVE\tRETAINED\tWAITING\tEMPTY\tJOURNAL\tMETADATA\tFREE")
	for _, n := range nodes {
		if d := n.Disk; d != nil {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Site, short(n.ID), size(d.LiveBytes), size(d.RetainedBytes), size(n.Waiting),
				size(d.EmptyBytes), size(d.JournalBytes), size(d.MetadataBytes), size(n.Free))
		}
	}
	_ = t.Flush() // whoever reads it has gone
}

// size writes bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n), "KMGTPE"
	i := -1
	for v >= unit {
		v /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}
