package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const opPredict fault.Op = "whatif.Predict"

// Assumptions are what a prediction takes for granted.
type Assumptions struct {
	// Rate is how many bytes a second one site can send to another. 0: not
	// known, so no time is predicted.
	Rate int64 `json:"rate_bytes_per_s,omitempty"`
	// FailedAfter is how long a member stays failed before another node takes
	// its place: the nodes' key failed_after.
	FailedAfter time.Duration `json:"failed_after_ns"`
}

// Outcome is what a prediction says.
type Outcome struct {
	// Revision is that of the State. An outcome of an older revision than the
	// cluster's is out of date.
	Revision ids.Revision `json:"revision"`
	// Before is now, During is seconds after the change, and After is when all
	// copies have been made.
	Before Summary `json:"before"`
	During Summary `json:"during"`
	After  Summary `json:"after"`
	// Sites are by name, and Slices are the ones that change, by number.
	Sites  []Site        `json:"sites"`
	Slices []SliceChange `json:"slices"`
	// Copies are by the sites between which bytes go.
	Copies []Copies `json:"copies"`
	// CopyNS is how long the copies take at the assumed rate, all links at once;
	// 0: not known, or nothing to copy. Copies of lost members begin FailedAfter
	// after the loss.
	CopyNS time.Duration `json:"copy_ns,omitempty"`
	// Notes say what the prediction does not know, and what stays short of what was
	// asked for.
	Notes []string `json:"notes"`
}

// Summary counts slices by how they stand.
type Summary struct {
	Slices int `json:"slices"`
	// Protected slices have as many copies as their policy asks for; Under ones
	// serve with fewer. Waiting ones do not serve until a member is back, and
	// of Lost ones no whole copy is left.
	Protected int `json:"protected"`
	Under     int `json:"under"`
	Waiting   int `json:"waiting"`
	Lost      int `json:"lost"`
	// Critical sites are those whose loss alone, after all this, would make a
	// slice wait that serves.
	Critical []ids.Site `json:"critical"`
}

// Site is what users at one site get. Own are the slices whose home it is, and
// All are those of the whole tree.
type Site struct {
	Name ids.Site `json:"name"`
	// Lost sites have no node left.
	Lost      bool      `json:"lost,omitempty"`
	OwnBefore Latencies `json:"own_before"`
	OwnAfter  Latencies `json:"own_after"`
	AllBefore Latencies `json:"all_before"`
	AllAfter  Latencies `json:"all_after"`
}

// SliceChange is one slice that the change touches.
type SliceChange struct {
	ID     ids.Slice  `json:"id"`
	Home   ids.Site   `json:"home"`
	Before SliceState `json:"before"`
	During SliceState `json:"during"`
	After  SliceState `json:"after"`
}

// SliceState is how one slice stands at one time.
type SliceState struct {
	// Stands is "protected", "under", "waiting" or "lost".
	Stands string   `json:"stands"`
	Active ids.Node `json:"active"`
	Site   ids.Site `json:"site"`
	// Copies are the sites of the whole copies that answer.
	Copies []ids.Site `json:"copies"`
}

// Copies are the bytes that go from one site to another.
type Copies struct {
	From   ids.Site `json:"from"`
	To     ids.Site `json:"to"`
	Slices int      `json:"slices"`
	// Bytes counts the slices of known size; Unknown is how many are not.
	Bytes   int64 `json:"bytes"`
	Unknown int   `json:"unknown,omitempty"`
}

// Predict says what the changes, made one after the other, would do to a
// cluster. Errors: Invalid, NotFound, Exists, Unreachable and NotSupported name
// the part of a change that cannot be, and why.
func Predict(s State, changes []Change, a Assumptions) (Outcome, error) {
	if err := s.check(); err != nil {
		return Outcome{}, err
	}
	if a.Rate < 0 {
		return Outcome{}, fault.Errorf(fault.Invalid, opPredict, "", "a rate of %d bytes a second; above 0, or 0 for unknown", a.Rate)
	}
	before, c := newCluster(&s), newCluster(&s)
	for _, x := range changes {
		if err := c.apply(x); err != nil {
			return Outcome{}, err
		}
	}
	c.failOver()
	during := c.copy()
	made := c.repair()
	o := Outcome{
		Revision: s.Revision,
		Before:   before.summary(), During: during.summary(), After: c.summary(),
		Sites:  sitesOutcome(before, c),
		Slices: slicesOutcome(before, during, c),
		Copies: c.links(made),
		Notes:  append(c.notes(&s, changes, made), c.shortfalls(before)...),
	}
	o.CopyNS = longest(o.Copies, a.Rate)
	return o, nil
}

// summary counts the slices.
func (c *cluster) summary() Summary {
	s := Summary{Slices: len(c.slices)}
	for i := range c.slices {
		switch c.stands(&c.slices[i]) {
		case protected:
			s.Protected++
		case under:
			s.Under++
		case waiting:
			s.Waiting++
		case lost:
			s.Lost++
		}
	}
	s.Critical = c.critical()
	return s
}

// critical lists the sites whose loss would make a slice wait that serves.
func (c *cluster) critical() []ids.Site {
	found := map[ids.Site]bool{}
	for i := range c.slices {
		row := &c.slices[i]
		if !c.stands(row).serves() {
			continue
		}
		for _, site := range c.sitesOf(row) {
			gone := func(n ids.Node) bool { return c.lost(n) || c.siteOf(n) == site }
			next := failOver(row.SliceRow, gone)
			found[site] = found[site] || !stands(&next, gone).serves()
		}
	}
	out := []ids.Site{}
	for _, site := range c.sites() {
		if found[site] {
			out = append(out, site)
		}
	}
	return out
}

func sitesOutcome(before, after *cluster) []Site {
	out := []Site{}
	for _, name := range after.sites() {
		own := func(row *Slice) bool { return row.Policy.Home == name }
		all := func(*Slice) bool { return true }
		out = append(out, Site{
			Name:      name,
			Lost:      !slices.ContainsFunc(after.nodes, func(n Node) bool { return n.Site == name && !n.Away }),
			OwnBefore: before.latencies(name, own), OwnAfter: after.latencies(name, own),
			AllBefore: before.latencies(name, all), AllAfter: after.latencies(name, all),
		})
	}
	return out
}

func slicesOutcome(before, during, after *cluster) []SliceChange {
	out := []SliceChange{}
	for i := range after.slices {
		x := SliceChange{ID: after.slices[i].ID, Home: after.slices[i].Policy.Home,
			Before: before.state(i), During: during.state(i), After: after.state(i)}
		if !x.Before.equal(x.During) || !x.Before.equal(x.After) {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b SliceChange) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (c *cluster) state(i int) SliceState {
	row := &c.slices[i]
	s := SliceState{Stands: c.stands(row).String(), Active: row.Active, Site: c.siteOf(row.Active), Copies: []ids.Site{}}
	for _, n := range row.Normals() {
		if !c.lost(n) {
			s.Copies = append(s.Copies, c.siteOf(n))
		}
	}
	return s
}

func (s SliceState) equal(o SliceState) bool {
	return s.Stands == o.Stands && s.Active == o.Active && slices.Equal(s.Copies, o.Copies)
}

// links adds copies up by the sites between which they go, the largest first.
func (c *cluster) links(made []copied) []Copies {
	type link struct{ from, to ids.Site }
	at := map[link]*Copies{}
	for _, x := range made {
		l := link{c.siteOf(x.from), c.siteOf(x.to)}
		if at[l] == nil {
			at[l] = &Copies{From: l.from, To: l.to}
		}
		at[l].Slices++
		if x.bytes == UnknownSize {
			at[l].Unknown++
		} else {
			at[l].Bytes += x.bytes
		}
	}
	out := []Copies{}
	for _, l := range at {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Copies) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}

// longest is how long the busiest link takes.
func longest(links []Copies, rate int64) time.Duration {
	if rate == 0 {
		return 0
	}
	var most time.Duration
	for _, l := range links {
		if l.From != l.To {
			most = max(most, time.Duration(float64(l.Bytes)/float64(rate)*float64(time.Second)))
		}
	}
	return most
}

// notes say what the prediction does not know.
func (c *cluster) notes(s *State, changes []Change, made []copied) []string {
	out := []string{}
	if s.SinglePoint {
		out = append(out, "Geo-config is one process: if it goes with what is lost, nobody takes over.")
	}
	for _, x := range changes {
		if x.Kind == AddSite && len(x.RTT) < 3 {
			out = append(out, fmt.Sprintf("The place of %s is a guess by %d round trips; three or more give it a coordinate.", x.Site, len(x.RTT)))
		}
	}
	if slices.ContainsFunc(made, func(x copied) bool { return x.bytes == UnknownSize }) {
		out = append(out, "The size of some slices is not known: their actives did not answer.")
	}
	return out
}
