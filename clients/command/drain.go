package command

import (
	"context"
	"fmt"
	"io"
	gslices "slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drain"
	"cartwheel.dev/node/whatif"
)

// drainFlags are those of the commands that drain.
type drainFlags struct {
	adminFlags
	rateFlag
	Wait   bool `help:"Wait until the nodes are left, and say how far it is."`
	DryRun bool `help:"Only say what would be copied and what stands in the way."`
	Force  bool `help:"Begin although something stands in the way."`
}

type nodeDrainCmd struct {
	drainFlags
	Node string `arg:"" help:"The node's ID, or the end of it."`
}

// Help shows how it is called.
func (nodeDrainCmd) Help() string {
	return help(`cartwheel node drain TMFqeQKx --wait

The other nodes take over what it leads and copy what it stores; reads and writes go on. A copy goes only when another one is whole. Stop the node or remove it afterwards.`)
}

// Run has the node left.
func (c nodeDrainCmd) Run(e *env) error {
	return c.drain(e, func(nodes []geoconfig.Node) ([]ids.Node, error) {
		n, err := oneNode(nodes, c.Node)
		return []ids.Node{n.ID}, err
	})
}

type siteDrainCmd struct {
	drainFlags
	Name string `arg:"" help:"The site's name."`
}

// Help shows how it is called.
func (siteDrainCmd) Help() string { return help("cartwheel site drain tokyo --dry-run") }

// Run has all nodes of the site left.
func (c siteDrainCmd) Run(e *env) error {
	return c.drain(e, func(nodes []geoconfig.Node) ([]ids.Node, error) { return nodesAt(nodes, c.Name) })
}

// nodesAt lists the nodes of a site.
func nodesAt(nodes []geoconfig.Node, site string) ([]ids.Node, error) {
	var out []ids.Node
	for _, n := range nodes {
		if string(n.Site) == site {
			out = append(out, n.ID)
		}
	}
	if len(out) == 0 {
		return nil, fault.E(fault.NotFound, "command.nodesAt", site, "has no nodes; `cartwheel site ls` lists the sites")
	}
	return out, nil
}

// oneNode returns the node that an ID, or the end of one, names.
func oneNode(nodes []geoconfig.Node, name string) (geoconfig.Node, error) {
	const op fault.Op = "command.oneNode"
	found := gslices.DeleteFunc(gslices.Clone(nodes), func(n geoconfig.Node) bool { return len(name) < 4 || !strings.HasSuffix(string(n.ID), name) })
	switch {
	case len(found) == 0:
		return geoconfig.Node{}, fault.E(fault.NotFound, op, name, "is no node, nor the last four or more letters of one; `cartwheel node ls` lists them")
	case len(found) > 1:
		return geoconfig.Node{}, fault.Errorf(fault.Usage, op, name, "ends the IDs of %d nodes; write more of one", len(found))
	}
	return found[0], nil
}

// drain checks, orders and awaits.
func (f drainFlags) drain(e *env, choose func([]geoconfig.Node) ([]ids.Node, error)) error {
	const op fault.Op = "command.drain"
	state := e.sizes()
	a, err := e.administer(e.ctx, f.adminFlags)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.readState(e.ctx, &state); err != nil {
		return err
	}
	nodes, err := choose(rowsOf(state.Nodes))
	if err != nil {
		return err
	}
	v, err := drain.Check(state, nodes)
	if err != nil {
		return err
	}
	if f.DryRun {
		return f.preview(e, v, state)
	}
	if len(v.Obstacles) > 0 && !f.Force {
		return fault.Errorf(fault.Busy, op, fmt.Sprint(len(nodes), " nodes"), "%s; --force begins all the same", v.Obstacles[0].Text)
	}
	if err := drain.Set(e.ctx, a, a.order(), nodes, true); err != nil {
		return err
	}
	if f.Wait {
		if v.Left, err = f.await(e, a, state, nodes); err != nil {
			return err
		}
		return e.done(v, "%d nodes hold no copy any more: stop them, or `cartwheel node remove` them", len(nodes))
	}
	return e.print(v, func(w io.Writer) {
		verdictText(w, v)
		fmt.Fprintln(w, "The nodes are being left. `cartwheel node ls` shows how many slices they still have.")
	})
}

// drainPreview is what a drain would do.
type drainPreview struct {
	drain.Verdict
	preview
}

// preview prints what stands in the way and what would be copied.
func (f drainFlags) preview(e *env, v drain.Verdict, state whatif.State) error {
	for i := range state.Nodes {
		n := &state.Nodes[i]
		n.Draining = n.Draining || gslices.Contains(v.Nodes, n.ID)
	}
	p, err := f.previewOf(state)
	if err != nil {
		return err
	}
	return e.print(drainPreview{v, p}, func(w io.Writer) {
		verdictText(w, v)
		p.text(w)
	})
}

// drainLook is how often a waiting command looks how far it is.
const drainLook = time.Second

// await waits until no slice has a member on the nodes.
func (f drainFlags) await(e *env, a *administration, state whatif.State, nodes []ids.Node) (drain.Left, error) {
	for {
		left := drain.Remains(state.Slices, nodes)
		if left.Slices == 0 {
			return left, nil
		}
		fmt.Fprintf(e.stdio.Err, "%s\n", leftText(left))
		select {
		case <-e.ctx.Done():
			return left, fault.Wrap(fault.Canceled, "command.await", "", e.ctx.Err())
		case <-time.After(drainLook):
		}
		if err := a.readState(e.ctx, &state); err != nil {
			return left, err
		}
	}
}

func leftText(left drain.Left) string {
	text := fmt.Sprintf("%d slices to move, %d led there, %s", left.Slices, left.Active, size(left.Bytes))
	if left.Unknown > 0 {
		text += fmt.Sprintf(" and %d slices of unknown size", left.Unknown)
	}
	return text
}

func verdictText(w io.Writer, v drain.Verdict) {
	fmt.Fprintln(w, leftText(v.Left)+".")
	for _, r := range v.Obstacles {
		fmt.Fprintln(w, "In the way:", r.Text+".")
	}
	for _, r := range v.Losses {
		fmt.Fprintln(w, "Note:", r.Text+".")
	}
	if len(v.Obstacles) == 0 {
		fmt.Fprintln(w, "Nothing is in the way.")
	}
}

// sizes asks the nodes which of them answer and how large slices are, as far as
// a contact file is there. Without one, nothing is known of that.
func (e *env) sizes() whatif.State {
	c, err := e.connect()
	if err != nil {
		return whatif.State{}
	}
	defer leave(c)
	var s whatif.State
	for _, a := range askAll(e, c, askStatus) {
		s.Nodes = append(s.Nodes, whatif.Node{Node: geoconfig.Node{ID: a.id}, Away: a.err != nil})
	}
	for _, row := range newestRows(askAll(e, c, slices)) {
		if row.StoredBytes != nil {
			s.Slices = append(s.Slices, whatif.Slice{SliceRow: row.SliceRow, Bytes: *row.StoredBytes})
		}
	}
	return s
}

// readState brings the rows of a state up to date. What it knew of nodes that do
// not answer and of sizes stays.
func (a *administration) readState(ctx context.Context, s *whatif.State) error {
	bytes, away := map[ids.Slice]int64{}, map[ids.Node]bool{}
	for i := range s.Slices {
		bytes[s.Slices[i].ID] = s.Slices[i].Bytes
	}
	for _, n := range s.Nodes {
		away[n.ID] = n.Away
	}
	*s = whatif.State{}
	q := geoconfig.Query{Nodes: true, Slices: geoconfig.MaxBatchRows}
	for more := true; more; q.Nodes = false {
		rows, err := a.Read(ctx, q)
		if err != nil {
			return err
		}
		for _, n := range rows.Nodes {
			s.Nodes = append(s.Nodes, whatif.Node{Node: n, Away: away[n.ID]})
		}
		for _, row := range rows.Slices {
			x := whatif.Slice{SliceRow: row, Bytes: whatif.UnknownSize}
			if n, known := bytes[row.ID]; known {
				x.Bytes = n
			}
			s.Slices = append(s.Slices, x)
			q.SlicesFrom = row.ID + 1
		}
		s.Revision, more = rows.Revision, rows.More
	}
	return nil
}

func rowsOf(nodes []whatif.Node) []geoconfig.Node {
	out := make([]geoconfig.Node, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].Node
	}
	return out
}

type nodeUndrainCmd struct {
	adminFlags
	Node string `arg:"" help:"The node's ID, or the end of it."`
}

// Help shows how it is called.
func (nodeUndrainCmd) Help() string { return help("cartwheel node undrain TMFqeQKx") }

// Run lets the node have slices again.
func (c nodeUndrainCmd) Run(e *env) error {
	return undrain(e, c.adminFlags, func(nodes []geoconfig.Node) ([]ids.Node, error) {
		n, err := oneNode(nodes, c.Node)
		return []ids.Node{n.ID}, err
	})
}

type siteUndrainCmd struct {
	adminFlags
	Name string `arg:"" help:"The site's name."`
}

// Help shows how it is called.
func (siteUndrainCmd) Help() string { return help("cartwheel site undrain tokyo") }

// Run lets all nodes of the site have slices again.
func (c siteUndrainCmd) Run(e *env) error {
	return undrain(e, c.adminFlags, func(nodes []geoconfig.Node) ([]ids.Node, error) { return nodesAt(nodes, c.Name) })
}

func undrain(e *env, f adminFlags, choose func([]geoconfig.Node) ([]ids.Node, error)) error {
	return administered(e, f, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Nodes: true})
		if err != nil {
			return err
		}
		nodes, err := choose(rows.Nodes)
		if err != nil {
			return err
		}
		if err := drain.Set(ctx, a, a.order(), nodes, false); err != nil {
			return err
		}
		return e.done(nodes, "%d nodes may have slices again", len(nodes))
	})
}
