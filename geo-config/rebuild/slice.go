package rebuild

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Verdict is what becomes of a slice.
type Verdict string

// The verdicts.
const (
	// Kept slices go on with the members that they had: every normal one answered.
	Kept Verdict = "kept"
	// Reduced slices go on without their silent members, which count as failed. The
	// silent ones were too few to have gone on without the others.
	Reduced Verdict = "reduced"
	// Waiting slices keep their old row. Nothing changes in it until their silent
	// members return or an operator accepts the loss.
	Waiting Verdict = "waiting"
	// Lossy slices go on without their silent members because an operator said so.
	Lossy Verdict = "lossy"
)

// Slice is one slice of a plan.
type Slice struct {
	// Row is what the store is to hold.
	Row geoconfig.SliceRow `json:"row"`
	// Was is the highest row that a node remembers.
	Was     geoconfig.SliceRow `json:"was"`
	Verdict Verdict            `json:"verdict"`
	// Silent lists the normal members that did not answer.
	Silent []ids.Node `json:"silent,omitempty"`
	// Hopeless says that no normal member answered, so that accepting a loss would
	// not help.
	Hopeless bool `json:"hopeless,omitempty"`
}

// decide says what becomes of a slice, given the highest row that is known of it and
// the nodes that did not answer. The nodes that answered have promised to obey no
// older geo-config, so their rows are final.
func decide(was geoconfig.SliceRow, silent []ids.Node, o Options) Slice {
	s := Slice{Row: was.Clone(), Was: was, Verdict: Waiting}
	isSilent := func(m geoconfig.Member) bool {
		return m.State == geoconfig.Normal && slices.Contains(silent, m.Node)
	}
	for _, m := range was.Members {
		if isSilent(m) {
			s.Silent = append(s.Silent, m.Node)
		}
	}
	normal := len(was.Normals()) - len(s.Silent)
	s.Hopeless = normal == 0
	switch accept := o.Accept != nil && o.Accept(was.ID); {
	case len(s.Silent) == 0:
		// Only a normal member swaps a row, and each has told the newest it knows.
		s.Verdict = Kept
	case s.Hopeless:
		return s
	case len(silent) < least(&was) && normal >= least(&was) && normal >= was.Hear:
		// A later row has at least as many normal members as the policy's least, and
		// those that are silent are fewer. One of them would be a node that answered
		// and does not know the row, so nothing was acknowledged by it.
		s.Verdict = Reduced
		for i, m := range s.Row.Members {
			if isSilent(m) {
				s.Row.Members[i].State = geoconfig.Failed
			}
		}
	case accept:
		// What the silent members have may differ from what the others have from here
		// on. As no members any more, they drop their copies when they return.
		s.Verdict = Lossy
		s.Row.Members = slices.DeleteFunc(s.Row.Members, isSilent)
		s.Row.Hear = min(s.Row.Hear, normal)
	default:
		return s
	}
	if m, ok := s.Row.Member(s.Row.Active); !ok || m.State != geoconfig.Normal {
		s.Row.Active = s.Row.Normals()[0] // it becomes equal to the longest log among them
	}
	s.Row.Epoch += EpochLeap
	s.Row.Generation = o.Generation
	return s
}

// least returns how many normal members each swap of a row leaves.
func least(r *geoconfig.SliceRow) int {
	if r.Policy.Level >= geoconfig.DefaultLevel {
		return 2
	}
	return 1
}

// Settle returns what becomes of the slices that a store of the options' generation
// holds by old rows, from copies that were made later. Each slice of the answer has
// the highest row that is known; From of its swap is the stored row's epoch.
func Settle(stored []geoconfig.SliceRow, copies []Copy, roster []geoconfig.Node, o Options) []Slice {
	known := highestOf(append(slices.Clone(copies), Copy{Rows: geoconfig.Rows{Slices: stored}}))
	quiet := Silent(roster, copies)
	var out []Slice
	for _, row := range known {
		waits := slices.ContainsFunc(stored, func(r geoconfig.SliceRow) bool { return r.ID == row.ID && r.Generation < o.Generation })
		if waits && row.Generation < o.Generation {
			out = append(out, decide(row, quiet, o))
		}
	}
	return out
}
