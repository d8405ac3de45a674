package command

import (
	"context"
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
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/wire"
)

type scrubCmd struct {
	Node   string `arg:"" optional:"" help:"The node's ID, or the end of it; without it all nodes."`
	Rate   uint64 `placeholder:"MIB" help:"MiB a second that each node reads at most (default: 32)."`
	Wait   bool   `help:"Wait until the nodes have read everything, and print what they found."`
	Report bool   `help:"Only print how far the nodes are and what they found."`
}

// Help shows how it is called.
func (scrubCmd) Help() string {
	return help(`cartwheel scrub --wait

Each node reads all that it stores and brings what is damaged or missing from other members. Nodes do so by themselves within scrub_period. With --wait or --report the exit status is 9 where something is lost or a slice's state differs.`)
}

// scrubView is what the command prints.
type scrubView struct {
	Nodes []scrubNode `json:"nodes"`
}

// scrubNode is one node's scrub.
type scrubNode struct {
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	// Begun is the round that the command began, or found under way by another's order.
	Begun uint64        `json:"begun_round,omitempty"`
	Scrub *status.Scrub `json:"scrub,omitempty"`
	// Error says why the node was not asked to scrub, or does not tell.
	Error string `json:"error,omitempty"`
	err   error
}

// scrubLook is how often a waiting command looks how far the nodes are, and scrubPatience for
// how long a node may be silent meanwhile: one that starts again goes on with its round.
const (
	scrubLook     = time.Second
	scrubPatience = 5 * time.Minute
	maxScrubRate  = 1 << 20 // MiB a second
)

// Run orders, waits and prints.
func (s scrubCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	if s.Report && (s.Wait || s.Rate > 0) {
		return fault.E(fault.Usage, op, "--report", "orders nothing: leave --wait and --rate away")
	}
	if s.Rate > maxScrubRate {
		return fault.Errorf(fault.Usage, op, "--rate", "is in MiB a second, %d at most", maxScrubRate)
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	v, err := s.nodes(c)
	if err != nil {
		return err
	}
	if !s.Report {
		v.each(func(n *scrubNode) { n.begin(e.ctx, c, s.Rate<<20) })
	}
	if s.Wait {
		if err := s.wait(e, c, &v); err != nil {
			return err
		}
	}
	v.each(func(n *scrubNode) { n.ask(e.ctx, c) })
	if err := e.print(v, v.text); err != nil {
		return err
	}
	return v.verdict(s.Wait || s.Report)
}

// nodes lists the nodes that the command is about.
func (s scrubCmd) nodes(c *contact.Cluster) (v scrubView, err error) {
	all := c.Nodes()
	if s.Node != "" {
		n, err := oneNode(all, s.Node)
		if err != nil {
			return v, err
		}
		all = []geoconfig.Node{n}
	}
	for _, n := range all {
		v.Nodes = append(v.Nodes, scrubNode{Node: n.ID, Site: siteOf(c, n.ID)})
	}
	return v, nil
}

// each calls f for all nodes at once, but those that have failed.
func (v *scrubView) each(f func(*scrubNode)) {
	done, left := make(chan struct{}), 0
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.err == nil {
			left++
			go func() {
				f(n)
				done <- struct{}{}
			}()
		}
	}
	for range left {
		<-done
	}
}

func (n *scrubNode) fail(err error) {
	if n.err = err; err != nil {
		n.Error = explain(err)
	}
}

// begin orders a round at a node.
func (n *scrubNode) begin(ctx context.Context, c *contact.Cluster, rate uint64) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var a pb.ScrubResponse
	b, err := c.Call(ctx, n.Node, wire.Operation, method.Scrub, &pb.ScrubRequest{RateBytes: rate}, nil, &a)
	b.Release()
	n.Begun = a.Round
	n.fail(err)
}

// ask asks a node how far it is.
func (n *scrubNode) ask(ctx context.Context, c *contact.Cluster) {
	s, err := askStatus(ctx, c, n.Node)
	if err == nil && s.Scrub == nil {
		err = fault.E(fault.NewerVersion, "command.ask", string(n.Node), "the node's program does not scrub: update it")
	}
	n.Scrub = s.Scrub
	n.fail(err)
}

// wait waits until all nodes have ended the rounds that were begun.
func (s scrubCmd) wait(e *env, c *contact.Cluster, v *scrubView) error {
	defer progressOf(e.stdio.Err, func() string { return "waiting until the nodes have read everything" })()
	heard := c.Now()
	for {
		left := 0
		asked := scrubView{Nodes: gslices.Clone(v.Nodes)}
		asked.each(func(n *scrubNode) { n.ask(e.ctx, c) })
		silent := error(nil)
		for i := range v.Nodes {
			switch n := &asked.Nodes[i]; {
			case v.Nodes[i].err != nil:
			case n.err != nil:
				silent = n.err
			case n.Scrub.EndedRound < n.Begun:
				left++
			}
		}
		if silent == nil {
			heard = c.Now()
			if left == 0 {
				return nil
			}
		} else if c.Now()-heard > scrubPatience {
			return silent
		}
		if !contact.Pause(e.ctx, scrubLook) {
			return fault.Wrap(fault.Canceled, "command.wait", "", e.ctx.Err())
		}
	}
}

// verdict is the error of the command. What is lost counts first, where the command was asked
// for it, and then a node that failed.
func (v scrubView) verdict(strict bool) error {
	const op fault.Op = "command.verdict"
	var failed error
	for _, n := range v.Nodes {
		if n.err != nil && failed == nil {
			failed = fault.Wrap(fault.Other, op, string(n.Node), n.err)
		}
		if n.Scrub == nil || !strict {
			continue
		}
		if n.Scrub.LostChunks > 0 {
			return fault.Errorf(fault.Corrupt, op, string(n.Node), "%d chunks are lost: restore the files that have them, or delete them", n.Scrub.LostChunks)
		}
		if len(n.Scrub.Different) > 0 {
			return fault.Errorf(fault.Corrupt, op, string(n.Node), "its state of slice %d differs from that of other members", n.Scrub.Different[0].Slice)
		}
	}
	return failed
}

// tells reports whether any node tells of its scrub.
func (v scrubView) tells() bool {
	return gslices.ContainsFunc(v.Nodes, func(n scrubNode) bool { return n.Scrub != nil })
}

// text prints a view for people.
func (v scrubView) text(w io.Writer) {
	if v.tells() {
		scrubText(w, v.Nodes)
	}
	for _, n := range v.Nodes {
		if n.Error != "" {
			fmt.Fprintf(w, "%s %s: %s\n", n.Site, short(n.Node), n.Error)
		}
		if n.Scrub == nil {
			continue
		}
		for _, l := range n.Scrub.Lost {
			fmt.Fprintf(w, "Lost at %s: chunk %s of slices %v%s\n", n.Site, l.Chunk, l.Slices, lostDetail(&l))
		}
		for _, d := range n.Scrub.Different {
			fmt.Fprintf(w, "Different at %s: the state of slice %d at serial %d, from that of %s%s\n", n.Site, d.Slice, d.Serial, short(d.With), differentDetail(&d))
		}
	}
}

// lostDetail says what else is known of a lost chunk.
func lostDetail(l *status.LostChunk) string {
	out := ""
	if len(l.Objects) > 0 {
		names := make([]string, len(l.Objects))
		for i, o := range l.Objects {
			names[i] = o.String()
		}
		out = ", in objects " + strings.Join(names, ", ")
	}
	if l.Unasked {
		out += "; a member that may have it does not answer"
	}
	return out
}

// differentDetail says what to do where a state is not made anew by itself.
func differentDetail(d *status.DifferentState) string {
	if !d.ActiveDiffers {
		return "; it is made anew"
	}
	return fmt.Sprintf(", which is the active; two standbys are equal: cartwheel slice hand-over %d", d.Slice)
}

// scrubText prints a table of scrubs, of those nodes that tell.
func scrubText(w io.Writer, nodes []scrubNode) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SCRUB OF\tNODE\tLAST ENDED\tNOW\tDAMAGED\tMISSING\tREPAIRED\tREAD ERRORS\tLOST\tDIFFERENT")
	for _, n := range nodes {
		if s := n.Scrub; s != nil {
			c := s.Total
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", n.Site, short(n.Node), endText(s), nowText(s), c.Damaged, c.Missing, c.Repaired, c.ReadErrors, s.LostChunks, len(s.Different))
		}
	}
	_ = t.Flush() // whoever reads it has gone
}

func endText(s *status.Scrub) string {
	if s.EndedAtNS == 0 {
		return "never"
	}
	return time.Unix(0, s.EndedAtNS).Format("2006-01-02 15:04")
}

func nowText(s *status.Scrub) string {
	switch {
	case !s.Running:
		return "-"
	case s.Phase == "chunks":
		return fmt.Sprintf("%.0f %% of chunks", 100*s.DoneShare)
	}
	return s.Phase
}
