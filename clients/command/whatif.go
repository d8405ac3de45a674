package command

import (
	gslices "slices"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

type whatIfCmd struct {
	LoseSite    []string      `placeholder:"SITE" help:"All nodes of the site are gone. May be repeated, as all of these."`
	LoseNode    []string      `placeholder:"NODE" help:"The node is gone: its ID, or the end of it."`
	AddSite     []string      `sep:"none" placeholder:"SITE:NODES:OTHER=RTT,..." help:"There is a new site with so many nodes, so far from others: oslo:2:paris=30ms,boston=95ms."`
	DrainNode   []string      `placeholder:"NODE" help:"The slices leave the node: its ID, or the end of it."`
	DrainSite   []string      `placeholder:"SITE" help:"The slices leave all nodes of the site."`
	Home        []string      `placeholder:"SLICE=SITE" help:"The slice has its home at the site, to which its active follows."`
	Level       []string      `placeholder:"SLICE=COPIES" help:"The slice has so many copies."`
	Move        []string      `placeholder:"SLICE=SITE" help:"The slice's member at the site becomes its active."`
	Rate        float64       `placeholder:"MBIT" help:"Mbit/s from one site to another, to tell how long copies take."`
	FailedAfter time.Duration `default:"30m" help:"How long a node is gone before its copies are made elsewhere: the nodes' failed_after."`
}

// Help shows how it is called.
func (whatIfCmd) Help() string {
	return help("cartwheel what-if --lose-site tokyo --rate 200")
}

const opWhatIf fault.Op = "command.whatIf"

// Run asks the nodes how all is, and predicts. It changes nothing.
func (w whatIfCmd) Run(e *env) error {
	changes, err := w.changes()
	if err != nil {
		return err
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	state, err := clusterState(e, c)
	if err != nil {
		return err
	}
	for i := range changes {
		if changes[i].Kind != whatif.LoseNode && changes[i].Kind != whatif.DrainNode {
			continue
		}
		chosen, err := choose(c.Nodes(), []string{string(changes[i].Node)})
		if err != nil {
			return err
		}
		if len(chosen) > 1 {
			return fault.Errorf(fault.Usage, opWhatIf, string(changes[i].Node), "names %d nodes; write more of the ID, or name the site", len(chosen))
		}
		changes[i].Node = ids.Node(chosen[0])
	}
	o, err := whatif.Predict(state, changes, whatif.Assumptions{Rate: int64(w.Rate * 1e6 / 8), FailedAfter: w.FailedAfter})
	if err != nil {
		return err
	}
	return e.print(o, whatIfView{o, w.FailedAfter}.text)
}

// changes reads the words: losses first, then sites that are added, drains, and what
// becomes different for single slices.
func (w whatIfCmd) changes() ([]whatif.Change, error) {
	if w.Rate < 0 {
		return nil, fault.Errorf(fault.Usage, opWhatIf, "--rate", "is %v; above 0", w.Rate)
	}
	var out []whatif.Change
	for _, s := range w.LoseSite {
		out = append(out, whatif.Change{Kind: whatif.LoseSite, Site: ids.Site(s)})
	}
	for _, n := range w.LoseNode {
		out = append(out, whatif.Change{Kind: whatif.LoseNode, Node: ids.Node(n)})
	}
	for _, s := range w.AddSite {
		x, err := addedSite(s)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	for _, s := range w.DrainSite {
		out = append(out, whatif.Change{Kind: whatif.DrainSite, Site: ids.Site(s)})
	}
	for _, n := range w.DrainNode {
		out = append(out, whatif.Change{Kind: whatif.DrainNode, Node: ids.Node(n)})
	}
	ofSlices, err := w.ofSlices()
	return append(out, ofSlices...), err
}

// ofSlices reads the homes, the levels and the moves.
func (w whatIfCmd) ofSlices() ([]whatif.Change, error) {
	var out []whatif.Change
	for _, s := range w.Home {
		slice, site, err := ofSlice("--home", s, "SITE")
		if err != nil {
			return nil, err
		}
		out = append(out, whatif.Change{Kind: whatif.SetHome, Slice: slice, Site: ids.Site(site)})
	}
	for _, s := range w.Level {
		slice, value, err := ofSlice("--level", s, "COPIES")
		if err != nil {
			return nil, err
		}
		level, err := strconv.Atoi(value)
		if err != nil {
			return nil, fault.E(fault.Usage, opWhatIf, "--level "+s, "is not SLICE=COPIES, like 3=4")
		}
		out = append(out, whatif.Change{Kind: whatif.SetLevel, Slice: slice, Level: level})
	}
	for _, s := range w.Move {
		slice, site, err := ofSlice("--move", s, "SITE")
		if err != nil {
			return nil, err
		}
		out = append(out, whatif.Change{Kind: whatif.MoveActive, Slice: slice, Site: ids.Site(site)})
	}
	return out, nil
}

// ofSlice reads SLICE=VALUE.
func ofSlice(option, word, what string) (ids.Slice, string, error) {
	number, value, ok := strings.Cut(word, "=")
	slice, err := strconv.ParseUint(number, 10, ids.SliceBits)
	if !ok || err != nil || value == "" {
		return 0, "", fault.E(fault.Usage, opWhatIf, option+" "+word, "is not SLICE="+what+"; `cartwheel slice ls` lists the slices")
	}
	return ids.Slice(slice), value, nil
}

// addedSite reads SITE:NODES:OTHER=RTT,...
func addedSite(word string) (whatif.Change, error) {
	x := whatif.Change{Kind: whatif.AddSite, RTT: map[ids.Site]time.Duration{}}
	wrong := fault.E(fault.Usage, opWhatIf, "--add-site "+word, "is not SITE:NODES:OTHER=RTT,... like oslo:2:paris=30ms,boston=95ms")
	parts := strings.Split(word, ":")
	if len(parts) != 3 {
		return x, wrong
	}
	x.Site = ids.Site(parts[0])
	var err error
	if x.Nodes, err = strconv.Atoi(parts[1]); err != nil {
		return x, wrong
	}
	for _, way := range strings.Split(parts[2], ",") {
		other, rtt, ok := strings.Cut(way, "=")
		d, err := time.ParseDuration(rtt)
		if !ok || err != nil {
			return x, wrong
		}
		x.RTT[ids.Site(other)] = d
	}
	return x, nil
}

// clusterState asks the nodes for all that a prediction starts from.
func clusterState(e *env, c *contact.Cluster) (whatif.State, error) {
	var s whatif.State
	for _, a := range askAll(e, c, askStatus) {
		row, _ := c.Node(a.id)
		s.Nodes = append(s.Nodes, whatif.Node{Node: row, Away: a.err != nil})
		s.Revision = max(s.Revision, row.Revision)
		s.SinglePoint = s.SinglePoint || a.value.GeoConfig.SinglePoint
	}
	net, err := distances(e, c, nil, 0)
	if err != nil {
		return s, err
	}
	for _, l := range net.Links {
		if l.Measured != nil {
			s.Measured = append(s.Measured, whatif.Measurement{From: l.From, To: l.To, RTT: time.Duration(*l.Measured * float64(time.Millisecond))})
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].Coordinate = published(net, s.Nodes[i].Node)
	}
	for _, row := range newestRows(askAll(e, c, slices)) {
		x := whatif.Slice{SliceRow: row.SliceRow, Bytes: whatif.UnknownSize}
		if row.StoredBytes != nil {
			x.Bytes = *row.StoredBytes
		}
		s.Revision = max(s.Revision, row.Revision)
		s.Slices = append(s.Slices, x)
	}
	return s, nil
}

// published is a node's coordinate: its own word, else its row's.
func published(net netView, n geoconfig.Node) geoconfig.Coordinate {
	i := gslices.IndexFunc(net.Nodes, func(x netNode) bool { return x.ID == n.ID })
	if i < 0 || net.Nodes[i].Coordinate == nil {
		return n.Coordinate
	}
	c := net.Nodes[i].Coordinate
	return geoconfig.Coordinate{Vector: c.Vector, Height: c.Height, Error: c.Error}
}
