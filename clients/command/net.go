package command

import (
	"cmp"
	"context"
	"encoding/json"
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

type netCmd struct {
	Matrix netMatrixCmd `cmd:"" help:"Show the round trips between nodes: measured, predicted, and the difference."`
	Coords netCoordsCmd `cmd:"" help:"Show the nodes' coordinates, from which round trips are predicted."`
	Probe  netProbeCmd  `cmd:"" help:"Measure the round trips between nodes now."`
}

// netLimit bounds what one node is asked for: probes take their time.
const netLimit = 15 * time.Second

// netNode is one node in what net prints.
type netNode struct {
	ID         ids.Node           `json:"id"`
	Site       ids.Site           `json:"site"`
	Reachable  bool               `json:"reachable"`
	Error      string             `json:"error,omitempty"`
	Coordinate *status.Coordinate `json:"coordinate,omitempty"`
	Published  *status.Coordinate `json:"published,omitempty"`
	// PublishedS is the age of what is published, where that was in this life
	// of the node.
	PublishedS float64 `json:"published_age_s,omitempty"`
}

// netLink is the way from one node to another; what is not known is null.
type netLink struct {
	From       ids.Node  `json:"from"`
	FromSite   ids.Site  `json:"from_site"`
	To         ids.Node  `json:"to"`
	ToSite     ids.Site  `json:"to_site"`
	Path       string    `json:"path"`
	PathMS     *float64  `json:"path_ms"`
	Measured   *float64  `json:"measured_ms"`
	Least      *float64  `json:"least_ms"`
	Samples    uint64    `json:"samples"`
	AgeS       *float64  `json:"age_s"`
	Predicted  *float64  `json:"predicted_ms"`
	Difference *float64  `json:"difference_ms"`
	Probes     []float64 `json:"probes_ms,omitempty"`
	Error      string    `json:"error,omitempty"`
}

// netView is what net matrix and net probe print.
type netView struct {
	Nodes []netNode `json:"nodes"`
	Links []netLink `json:"links"`
}

// gather connects, and asks every node that is not to be left out.
func gather(e *env, only []string, probes uint32) (netView, error) {
	c, err := e.connect()
	if err != nil {
		return netView{}, err
	}
	defer leave(c)
	return distances(e, c, only, probes)
}

// distances asks every node that is not to be left out for its round trips.
func distances(e *env, c *contact.Cluster, only []string, probes uint32) (netView, error) {
	v := netView{Nodes: []netNode{}, Links: []netLink{}}
	chosen, err := choose(c.Nodes(), only)
	if err != nil {
		return v, err
	}
	answers := askAll(e, c, func(ctx context.Context, c *contact.Cluster, id ids.Node) (status.Net, error) {
		if !gslices.Contains(chosen, string(id)) {
			return status.Net{}, nil
		}
		ctx, cancel := context.WithTimeout(ctx, netLimit)
		defer cancel()
		var a pb.NetResponse
		var n status.Net
		if _, err := c.Call(ctx, id, wire.Operation, method.Net, &pb.NetRequest{Probes: probes, Nodes: chosen}, nil, &a); err != nil {
			return n, err
		}
		return n, fault.Wrap(fault.Corrupt, "command.net", string(id), json.Unmarshal(a.Net, &n))
	})
	for _, a := range answers {
		if gslices.Contains(chosen, string(a.id)) {
			v.add(c, a)
		}
	}
	gslices.SortFunc(v.Nodes, func(a, b netNode) int { return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.ID, b.ID)) })
	return v, nil
}

// choose returns the IDs of the nodes that words name, by site, ID or the end
// of one; no words: all.
func choose(nodes []geoconfig.Node, words []string) ([]string, error) {
	var out []string
	for _, w := range words {
		before := len(out)
		for _, n := range nodes {
			if string(n.Site) == w || len(w) >= 4 && strings.HasSuffix(string(n.ID), strings.TrimPrefix(w, "…")) {
				out = append(out, string(n.ID))
			}
		}
		if len(out) == before {
			return nil, fault.E(fault.NotFound, "command.net", w, "is no site and no node; `cartwheel status` lists them")
		}
	}
	if len(words) == 0 {
		for _, n := range nodes {
			out = append(out, string(n.ID))
		}
	}
	gslices.Sort(out)
	return gslices.Compact(out), nil
}

func (v *netView) add(c *contact.Cluster, a asked[status.Net]) {
	n := netNode{ID: a.id, Site: siteOf(c, a.id), Reachable: a.err == nil}
	if a.err != nil {
		n.Error = explain(a.err)
		v.Nodes = append(v.Nodes, n)
		return
	}
	n.Coordinate = &a.value.Coordinate
	if len(a.value.Published.Vector) > 0 {
		n.Published, n.PublishedS = &a.value.Published, a.value.PublishedNS.Seconds()
	}
	v.Nodes = append(v.Nodes, n)
	for _, l := range a.value.Links {
		out := netLink{From: a.id, FromSite: a.value.Site, To: l.To, ToSite: l.Site, Path: l.Path, PathMS: positive(l.PathNS),
			Measured: positive(l.MeasuredNS), Least: positive(l.LeastNS), Samples: l.Samples, Predicted: positive(l.PredictedNS), Error: l.Error}
		if l.Samples > 0 {
			age := l.AgeNS.Seconds()
			out.AgeS = &age
		}
		if out.Measured != nil && out.Predicted != nil {
			d := *out.Predicted - *out.Measured
			out.Difference = &d
		}
		for _, p := range l.ProbeNS {
			out.Probes = append(out.Probes, ms(p))
		}
		v.Links = append(v.Links, out)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func positive(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	v := ms(d)
	return &v
}

func (v netView) link(from, to ids.Node) *netLink {
	for i := range v.Links {
		if v.Links[i].From == from && v.Links[i].To == to {
			return &v.Links[i]
		}
	}
	return nil
}

// table prints one number for each pair, the rows' nodes being who measured.
func (v netView) table(w io.Writer, title string, cell func(*netLink) string) {
	fmt.Fprintln(w, title)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	head := "FROM\t"
	for i := range v.Nodes {
		head += fmt.Sprintf("%d\t", i+1)
	}
	fmt.Fprintln(t, head)
	for i, from := range v.Nodes {
		line := fmt.Sprintf("%d %s %s\t", i+1, from.Site, short(from.ID))
		for _, to := range v.Nodes {
			text := "-"
			if l := v.link(from.ID, to.ID); from.ID == to.ID {
				text = "."
			} else if l != nil {
				text = cell(l)
			}
			line += text + "\t"
		}
		fmt.Fprintln(t, line)
	}
	_ = t.Flush() // whoever reads it has gone
}

func number(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v < 10 && *v > -10:
		return fmt.Sprintf("%.2f", *v)
	}
	return fmt.Sprintf("%.1f", *v)
}

// silent lists the nodes that did not answer, and the ways that are not direct.
func (v netView) silent(w io.Writer) {
	for _, n := range v.Nodes {
		if !n.Reachable {
			fmt.Fprintf(w, "%s %s does not answer: %s\n", n.Site, short(n.ID), n.Error)
		}
	}
	for _, l := range v.Links {
		if over, ok := strings.CutPrefix(l.Path, "via "); ok {
			name := "a third node"
			if over != "?" {
				name = short(ids.Node(over))
			}
			fmt.Fprintf(w, "%s %s reaches %s %s over %s: the direct way is broken\n", l.FromSite, short(l.From), l.ToSite, short(l.To), name)
		}
	}
}

type netMatrixCmd struct {
	Nodes []string `arg:"" optional:"" name:"node" help:"Sites or nodes to show; all if none is named."`
}

// Help shows how it is called.
func (netMatrixCmd) Help() string { return help("cartwheel net matrix tokyo boston --json") }

// Run asks every node what it knows.
func (m netMatrixCmd) Run(e *env) error {
	v, err := gather(e, m.Nodes, 0)
	if err != nil {
		return err
	}
	return e.print(v, func(w io.Writer) {
		v.table(w, "Measured, ms:", func(l *netLink) string { return number(l.Measured) })
		v.table(w, "\nPredicted from coordinates, ms:", func(l *netLink) string { return number(l.Predicted) })
		v.table(w, "\nDifference, ms:", func(l *netLink) string { return number(l.Difference) })
		v.silent(w)
	})
}

type netProbeCmd struct {
	Nodes []string `arg:"" optional:"" name:"node" help:"Sites or nodes between which to measure; all if none is named."`
	Count uint32   `default:"5" help:"How many times, at most 20."`
}

// Help shows how it is called.
func (netProbeCmd) Help() string { return help("cartwheel net probe tokyo boston --count 10") }

// Run lets the nodes measure.
func (p netProbeCmd) Run(e *env) error {
	if p.Count < 1 || p.Count > 20 {
		return fault.Errorf(fault.Usage, "command.net", "--count", "is %d; between 1 and 20", p.Count)
	}
	v, err := gather(e, p.Nodes, p.Count)
	if err != nil {
		return err
	}
	return e.print(v, func(w io.Writer) {
		v.table(w, "The least round trip measured now, ms:", func(l *netLink) string {
			if len(l.Probes) == 0 {
				return "none"
			}
			least := gslices.Min(l.Probes)
			return number(&least)
		})
		for _, l := range v.Links {
			if l.Error != "" {
				fmt.Fprintf(w, "%s %s could not measure %s %s: %s\n", l.FromSite, short(l.From), l.ToSite, short(l.To), l.Error)
			}
		}
		v.silent(w)
	})
}

type netCoordsCmd struct{}

// Help shows how it is called.
func (netCoordsCmd) Help() string { return help("cartwheel net coords --json") }

// Run asks every node where it is.
func (netCoordsCmd) Run(e *env) error {
	v, err := gather(e, nil, 0)
	if err != nil {
		return err
	}
	return e.print(v.Nodes, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "SITE\tNODE\tVECTOR MS\tHEIGHT MS\tERROR\tPUBLISHED")
		for _, n := range v.Nodes {
			if !n.Reachable {
				fmt.Fprintf(t, "%s\t%s\t-\t-\t-\tdoes not answer: %s\n", n.Site, short(n.ID), n.Error)
				continue
			}
			published := "not yet"
			if n.Published != nil {
				published = "before it was started"
			}
			if n.PublishedS > 0 {
				published = ago(time.Duration(n.PublishedS*float64(time.Second))) + " ago"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%.2f\t%s\n", n.Site, short(n.ID), vector(n.Coordinate.Vector), n.Coordinate.Height, n.Coordinate.Error, published)
		}
		_ = t.Flush() // whoever reads it has gone
	})
}

// vector writes all components.
func vector(v []float64) string {
	out := make([]string, len(v))
	for i, x := range v {
		out[i] = fmt.Sprintf("%.2f", x)
	}
	return strings.Join(out, " ")
}

// milliseconds writes a round trip for people.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", ms(d)) }

// ago writes an age for people.
func ago(d time.Duration) string {
	if d < time.Second {
		return "under 1s"
	}
	return d.Round(time.Second).String()
}
