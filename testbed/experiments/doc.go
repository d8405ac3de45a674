// Package experiments holds the experiments that `cartwheel-testbed run` knows.
// Each brings a topology up, has work done on it by package load, measures, and
// writes the folder of its run by package report, with the figures of others
// beside the measured ones and marked as theirs. An experiment asserts only what
// is promised, such as that nothing acknowledged is lost; how fast it was is for
// the table to say. Each runs by itself, from one goroutine.
package experiments

import "cartwheel.dev/testbed/experiment"

// All returns the experiments of this package.
func All() []experiment.Experiment {
	return []experiment.Experiment{coordinatesExperiment(), kerneltree(), untar(), garage(), pipe(), saturate(), blackout(), forecast(), scalability(), distribution(), pings(), webcache(), mail(), placementExperiment(), volumes(), availabilityExperiment(), failures(), standbys(), syncExperiment(), dedup(), wordcount(), moves(), scale()}
}
