package vivaldi

import (
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Bounds of a Config.
const (
	// MaxWindow bounds Config.Window.
	MaxWindow = 8
	// MaxPeers bounds Config.Peers.
	MaxPeers = 65536
)

// Config says how a Node works. Start from Default; the zero value is not
// valid.
type Config struct {
	// Dimensions of the Euclidean part, 1 to MaxDimensions. All nodes of a
	// space have the same; coordinates of more are refused.
	Dimensions int
	// NoHeight leaves the height out: every node is at height 0.
	NoHeight bool
	// StepError is c_e and StepPosition c_c of Dabek et al., section 2.5: the
	// share of the way that the error estimate and the position go at most
	// after one sample, above 0 and at most 1.
	StepError, StepPosition float64
	// Window is how many last samples of a link its filter looks at, 1 to
	// MaxWindow.
	Window int
	// Percentile of the window that stands for the link, 0 (the least) to 100.
	Percentile float64
	// Neighbours is how many peers Next probes by turns: half of them near,
	// half random. At least 2.
	Neighbours int
	// Peers bounds the peers that are remembered, neighbours included. Where
	// there are more, the one unheard of for longest is forgotten.
	Peers int
	// Fresh is how long a measurement of a link goes before a prediction.
	Fresh time.Duration
	// Horizon is how long a sample of a neighbour pulls: its weight falls
	// evenly with its age and is 0 at Horizon (Ledlie et al., section 4.2).
	Horizon time.Duration
	// MaxRTT is the longest round trip that is believed.
	MaxRTT time.Duration
	// GravityRadius is rho of Ledlie et al., section 7.2, in milliseconds:
	// the distance from the origin at which gravity pulls 1 ms per sample.
	// 0 turns gravity off.
	GravityRadius float64
}

// Default returns the configuration of a Cartwheel node: eight dimensions and a
// height.
func Default() Config {
	return Config{
		Dimensions: 8, StepError: 0.25, StepPosition: 0.25, Window: 4, Percentile: 25,
		Neighbours: 32, Peers: 1024,
		Fresh: 5 * time.Minute, Horizon: 30 * time.Minute, MaxRTT: 5 * time.Second, GravityRadius: 500,
	}
}

// Validate returns nil, or a fault of kind Invalid that names the field and
// what it allows.
func (c Config) Validate() error {
	const op fault.Op = "vivaldi.Validate"
	for _, f := range []struct {
		name    string
		ok      bool
		allowed string
	}{
		{"Dimensions", c.Dimensions >= 1 && c.Dimensions <= MaxDimensions, "1 to 8"},
		{"StepError", c.StepError > 0 && c.StepError <= 1, "above 0 and at most 1"},
		{"StepPosition", c.StepPosition > 0 && c.StepPosition <= 1, "above 0 and at most 1"},
		{"Window", c.Window >= 1 && c.Window <= MaxWindow, "1 to 8"},
		{"Percentile", c.Percentile >= 0 && c.Percentile <= 100, "0 to 100"},
		{"Neighbours", c.Neighbours >= 2, "at least 2"},
		{"Peers", c.Peers >= c.Neighbours && c.Peers <= MaxPeers, "at least Neighbours and at most 65536"},
		{"Fresh", c.Fresh >= 0, "at least 0"},
		{"Horizon", c.Horizon > 0, "above 0"},
		{"MaxRTT", c.MaxRTT > 0 && c.MaxRTT <= MaxPosition*time.Millisecond, "above 0 and at most 10 s"},
		{"GravityRadius", c.GravityRadius == 0 || c.GravityRadius >= 1, "0 or at least 1 ms"},
	} {
		if !f.ok {
			return fault.Errorf(fault.Invalid, op, f.name, "out of range; allowed: %s", f.allowed)
		}
	}
	return nil
}
