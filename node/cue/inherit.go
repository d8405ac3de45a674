package cue

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Persistent returns what a new object keeps of the set, or nil where that is
// nothing. No directory keeps .EventualConsistency, because none merges yet.
func (s Set) Persistent() *pb.Cues {
	const kept = 1<<Site | 1<<KeepTogether | 1<<RepSites | 1<<RepLevel | 1<<WriteOnce | 1<<Coherence
	if s.present&kept == 0 {
		return nil
	}
	c := &pb.Cues{
		KeepTogether: s.Has(KeepTogether),
		WriteOnce:    s.Has(WriteOnce),
	}
	if s.Has(Site) {
		c.Site = s.site
	}
	if s.Has(RepSites) {
		c.RepSites = uint32(s.repSites)
	}
	if s.Has(RepLevel) {
		c.RepLevel = uint32(s.repLevel)
	}
	if s.Has(Coherence) {
		c.CoherenceNs = int64(s.coherence) * int64(time.Second)
	}
	return c
}

// Inherit returns what a new object keeps: its path's own persistent cues, and
// its directory's where the path has none of that name. Either may be nil; the
// result shares nothing with them and is nil where it is empty.
func Inherit(parent, own *pb.Cues) *pb.Cues {
	if none(parent) && none(own) {
		return nil
	}
	c := &pb.Cues{
		Site:          own.GetSite(),
		RepSites:      own.GetRepSites(),
		RepLevel:      own.GetRepLevel(),
		CoherenceNs:   own.GetCoherenceNs(),
		KeepTogether:  own.GetKeepTogether() || parent.GetKeepTogether(),
		WriteOnce:     own.GetWriteOnce() || parent.GetWriteOnce(),
		EventualMerge: own.GetEventualMerge() || parent.GetEventualMerge(),
	}
	if c.Site == "" {
		c.Site = parent.GetSite()
	}
	if c.RepSites == 0 {
		c.RepSites = parent.GetRepSites()
	}
	if c.RepLevel == 0 {
		c.RepLevel = parent.GetRepLevel()
	}
	if c.CoherenceNs == 0 {
		c.CoherenceNs = parent.GetCoherenceNs()
	}
	return c
}

func none(c *pb.Cues) bool {
	return c.GetSite() == "" && !c.GetKeepTogether() && c.GetRepSites() == 0 && c.GetRepLevel() == 0 &&
		!c.GetWriteOnce() && c.GetCoherenceNs() == 0 && !c.GetEventualMerge()
}

// Kept lists an object's persistent cues, to render them for people.
func Kept(c *pb.Cues) []Cue {
	var out []Cue
	add := func(on bool, cue Cue) {
		if on {
			out = append(out, cue)
		}
	}
	add(c.GetSite() != "", Cue{Name: Site, Text: c.GetSite()})
	add(c.GetKeepTogether(), Cue{Name: KeepTogether})
	add(c.GetRepSites() != 0, Cue{Name: RepSites, Number: int64(c.GetRepSites())})
	add(c.GetRepLevel() != 0, Cue{Name: RepLevel, Number: int64(c.GetRepLevel())})
	add(c.GetEventualMerge(), Cue{Name: EventualConsistency})
	add(c.GetWriteOnce(), Cue{Name: WriteOnce})
	add(c.GetCoherenceNs() != 0, Cue{Name: Coherence, Number: c.GetCoherenceNs() / int64(time.Second)})
	return out
}

// Check refuses persistent cues that no path can spell, as they come in
// messages: values out of range and cues that contradict each other are Invalid,
// cues that do not work yet NotSupported. Whether there is such a site is not looked at. Each policy takes
// a slice of its own, so there must be few.
func Check(c *pb.Cues) error {
	const op fault.Op = "cue.Check"
	for _, q := range Kept(c) {
		r := q.Name.row()
		if r.shape == numberValue && (q.Number < r.least || q.Number > r.most) {
			return fault.Errorf(fault.Invalid, op, q.Name.String(), "%d is out of range; allowed: %s", q.Number, r.allowed)
		}
		if len(q.Text) > MaxValue {
			return fault.Errorf(fault.Invalid, op, q.Name.String(), "the value has %d bytes, more than %d", len(q.Text), MaxValue)
		}
		if !q.Name.Honoured() || q.Name == EventualConsistency {
			return fault.Errorf(fault.NotSupported, op, q.Name.String(), "the cue %s is known but does not work yet for what is kept", q.Name)
		}
	}
	if c.GetWriteOnce() && c.GetCoherenceNs() != 0 {
		return contradiction(op)
	}
	return nil
}

// Policy returns the policy that an object's persistent cues ask for, with home
// where no site is named. `.Site=random` is the caller's to settle first.
func Policy(c *pb.Cues, home ids.Site) geoconfig.Policy {
	p := geoconfig.Policy{Home: home, Level: geoconfig.DefaultLevel, Kind: geoconfig.Ordinary}
	if c.GetSite() != "" {
		p.Home = ids.Site(c.GetSite())
	}
	if c.GetRepLevel() != 0 {
		p.Level = int(c.GetRepLevel())
	}
	p.Sites = min(int(c.GetRepSites()), p.Level)
	if c.GetWriteOnce() {
		p.Kind = geoconfig.WriteOnce
	}
	p.Coherence = time.Duration(c.GetCoherenceNs())
	return p
}
