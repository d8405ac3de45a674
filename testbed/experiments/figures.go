package experiments

import (
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// quantile is the value that a share of v is at most: the nearest rank. NaN of
// nothing.
func quantile(v []float64, share float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	at := int(math.Ceil(share*float64(len(s)))) - 1
	return s[min(max(at, 0), len(s)-1)]
}

// median is the middle, or the mean of the two in the middle.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

func nan() float64 { return math.NaN() }

// cumulative is the distribution of v as a line: share over value.
func cumulative(name string, v []float64) report.Line {
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	l := report.Line{Name: name, X: s}
	for i := range s {
		l.Y = append(l.Y, float64(i+1)/float64(len(s)))
	}
	return l
}

// numbers reads a list joined by commas.
func numbers(list string, low, high float64) ([]float64, error) {
	var out []float64
	for _, s := range strings.Split(list, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !(v >= low && v <= high) {
			return nil, fault.Errorf(fault.Usage, "experiments.numbers", list, "%q is no number from %g to %g", s, low, high)
		}
		out = append(out, v)
	}
	return out, nil
}

func mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// ends are the times at which operations were acknowledged, in order.
func ends(events []load.Event) []time.Time {
	var out []time.Time
	for _, e := range events {
		if e.Err == "" {
			out = append(out, e.End())
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Before(out[j]) })
	return out
}
