package simulation

import (
	"io"
	"log/slog"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// Options are one run.
type Options struct {
	Seed  uint64
	Nodes int // of the cluster at first; 0: drawn
	// Length is how long faults come and go, in virtual time; 0: drawn.
	Length time.Duration
	Trace  io.Writer // nil: nobody reads it
	Level  slog.Level
	// Dir is a folder for what is not state.
	Dir string
	// Faults are the kinds that there are; nil: Kinds.
	Faults []Kind
}

// Result is what came of a run.
type Result struct {
	Seed       uint64
	Limits     Limits
	Operations int
	Problems   []string
	Sum        uint64 // of the trace
	Lines      int
	Virtual    time.Duration
	Faults     map[Kind]int
}

// clusterID names every simulated cluster.
const clusterID ids.Cluster = "simulated"

// Bounds, in virtual time.
const (
	callBound  = 60 * time.Second
	startBound = 60 * time.Second
	wholeBound = 120 * time.Second
)
