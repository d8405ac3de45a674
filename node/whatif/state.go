// Package whatif predicts what a change would do to a cluster before anybody
// makes it: which slices go on, who takes over, what is copied where, and how
// long reads and writes take at each site. It follows the rules by which nodes
// act (node/replica, node/server/placement) and the round trips that
// docs/architecture.md counts. It is pure: it knows only the State that it is
// given, asks nobody and changes nothing. All of it may be called from anywhere.
package whatif

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// State is what is known of a cluster at one revision. Predict reads it only.
type State struct {
	Revision ids.Revision `json:"revision"`
	Nodes    []Node       `json:"nodes"`
	Slices   []Slice      `json:"slices"`
	// Measured are round trips between nodes. They take precedence over
	// predictions by coordinates.
	Measured []Measurement `json:"measured,omitempty"`
	// SinglePoint says that the configuration is kept by one process, without
	// which nobody takes over.
	SinglePoint bool `json:"single_point,omitempty"`
}

// Node is a storage node.
type Node struct {
	geoconfig.Node
	// Away nodes do not answer now. They are lost already, as far as a
	// prediction goes.
	Away bool `json:"away,omitempty"`
}

// Slice is a row of the slice table with the size of one copy.
type Slice struct {
	geoconfig.SliceRow
	// Bytes is what one copy stores. UnknownSize: nobody said.
	Bytes int64 `json:"bytes"`
	// moves says that the home is a new one, to which the active follows.
	moves bool
}

// UnknownSize is the size of a slice whose active did not answer.
const UnknownSize = -1

// Measurement is a measured round trip.
type Measurement struct {
	From ids.Node      `json:"from"`
	To   ids.Node      `json:"to"`
	RTT  time.Duration `json:"rtt_ns"`
}

// check refuses a state that contradicts itself.
func (s *State) check() error {
	known := map[ids.Node]bool{}
	for _, n := range s.Nodes {
		if n.ID == "" || n.Site == "" {
			return fault.E(fault.Invalid, opPredict, string(n.ID), "a node needs an ID and a site")
		}
		if known[n.ID] {
			return fault.E(fault.Invalid, opPredict, string(n.ID), "the node is listed twice")
		}
		known[n.ID] = true
	}
	seen := map[ids.Slice]bool{}
	for i := range s.Slices {
		row := &s.Slices[i]
		if seen[row.ID] {
			return fault.Errorf(fault.Invalid, opPredict, "", "slice %d is listed twice", row.ID)
		}
		seen[row.ID] = true
		if _, ok := row.Member(row.Active); !ok {
			return fault.Errorf(fault.Invalid, opPredict, string(row.Active), "is the active of slice %d but no member of it", row.ID)
		}
	}
	return nil
}
