package survey

import (
	"math"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
)

func TestPublish_NeedsAChangeByEnough(t *testing.T) {
	at := func(x, height, relative float64) geoconfig.Coordinate {
		return geoconfig.Coordinate{Vector: []float64{x, 0}, Height: height, Error: relative}
	}
	for name, test := range map[string]struct {
		old, now geoconfig.Coordinate
		want     bool
	}{
		"the first, once it means something": {geoconfig.Coordinate{}, at(10, 1, 0.4), true},
		"not before":                         {geoconfig.Coordinate{}, at(10, 1, 0.9), false},
		"jitter":                             {at(100, 5, 0.1), at(101, 5, 0.1), false},
		"a few milliseconds of very many":    {at(100, 5, 0.1), at(104, 5, 0.1), false},
		"a few milliseconds of not so many":  {at(20, 5, 0.1), at(24, 5, 0.1), true},
		"far":                                {at(100, 5, 0.1), at(140, 5, 0.1), true},
		"higher":                             {at(10, 5, 0.1), at(10, 9, 0.1), true},
		"as before, but much surer":          {at(10, 5, 0.4), at(10, 5, 0.1), true},
		"less sure, where it was":            {at(10, 5, 0.1), at(10, 5, 0.4), false},
		"what cannot be is never published":  {at(10, 5, 0.1), at(math.Inf(1), 5, 0.1), false},
		"what could not be is replaced":      {at(1e9, 5, 0.1), at(10, 5, 0.1), true},
	} {
		if got := worthPublishing(test.old, test.now); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
