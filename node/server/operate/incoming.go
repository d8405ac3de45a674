package operate

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// Page is a part of a slice's state: rows behind those of the page before.
type Page struct {
	Rows *meta.Batch
	End  meta.Row // the last of them
	Last bool     // there are none behind it
	// At is the entry as of which the source read them.
	At replica.EntryID
}

// incoming is a slice's state on its way in. Its pages come in the order of
// their rows, each read as of an entry of its own, while the log goes on: an
// entry is applied to the rows that are here and do not show it yet. Those that
// are not here will be read as of that entry or a later one, for no page is
// asked for that is older than what is applied, and nothing is applied while one
// is on its way (replica.Node.TransferHold).
type incoming struct {
	exact meta.Row // the rows up to it show what is applied, and no more
	ahead []Page   // the rows behind, in order; each page shows more than is applied
	all   bool     // every row shows what is applied
	// epoch is of the last entry applied.
	epoch ids.Epoch
	// differs: the source had another entry than the log here.
	differs error
}

// lacks reports whether a row is here that does not show an entry's mutation.
func (in *incoming) lacks(m *tree.Mutation, serial ids.Serial) bool {
	place := meta.Place(tree.Versioned(m.Key), m.Key)
	if in.all || place.Compare(in.exact) <= 0 {
		return true
	}
	for i := range in.ahead {
		if p := &in.ahead[i]; p.Last || place.Compare(p.End) <= 0 {
			return serial > p.At.Serial
		}
	}
	return plant.On(plant.TransferAppliesAhead)
}

// missing returns those of an entry's mutations that rows here do not show. Versions that
// go do so always: rows that are yet to come were read behind that, and where they are
// here already nothing more goes.
func (in *incoming) missing(mutations []tree.Mutation, serial ids.Serial) (out []tree.Mutation) {
	for i := range mutations {
		if tree.IsForgetting(&mutations[i]) || in.lacks(&mutations[i], serial) {
			out = append(out, mutations[i])
		}
	}
	return out
}

// reached notes that everything up to an entry is applied.
func (in *incoming) reached(e replica.EntryID) {
	in.epoch = e.Epoch
	for len(in.ahead) > 0 && in.ahead[0].At.Serial <= e.Serial {
		p := &in.ahead[0]
		if p.At.Serial == e.Serial && p.At.Epoch != e.Epoch {
			in.differs = fault.Errorf(fault.WrongEpoch, "operate.Copy", "", "the source's entry %d is of epoch %d, that of the log of epoch %d", e.Serial, p.At.Epoch, e.Epoch)
		}
		in.exact, in.all = p.End, p.Last
		in.ahead = in.ahead[1:]
	}
}
