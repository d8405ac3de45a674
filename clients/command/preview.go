package command

import (
	"fmt"
	"io"
	"time"

	"cartwheel.dev/node/whatif"
)

// preview is what has to be copied until all copies are where they should be.
type preview struct {
	Copies []whatif.Copies `json:"copies"`
	// CopyNS is how long that takes at the rate that was given, in nanoseconds; 0: not
	// known, or nothing is copied.
	CopyNS time.Duration `json:"copy_ns,omitempty"`
	// Notes say what is not known, and what stays short of what is asked for.
	Notes []string `json:"notes"`
}

// rateFlag is what a preview counts with.
type rateFlag struct {
	Rate float64 `placeholder:"MBIT" help:"Mbit/s from one site to another, to tell with --dry-run how long copies take."`
}

// previewOf predicts what nodes would copy from a state on.
func (f rateFlag) previewOf(s whatif.State) (preview, error) {
	o, err := whatif.Predict(s, nil, whatif.Assumptions{Rate: int64(f.Rate * 1e6 / 8)})
	return preview{Copies: o.Copies, CopyNS: o.CopyNS, Notes: o.Notes}, err
}

func (p preview) text(w io.Writer) {
	if len(p.Copies) == 0 {
		fmt.Fprintln(w, "Nothing has to be copied.")
	}
	copiesText(w, p.Copies, p.CopyNS)
	for _, n := range p.Notes {
		fmt.Fprintln(w, "Note:", n)
	}
}
