package reliability

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean of runs, and between which ends the true mean is, with the
// given confidence.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Has reports whether a value is between the ends.
func (i Interval) Has(v float64) bool { return v >= i.Low && v <= i.High }

// Times is the interval of values that are so many times as large.
func (i Interval) Times(x float64) Interval { return Interval{i.Mean * x, i.Low * x, i.High * x} }

// Mean estimates the mean that figures of independent runs vary around, by Student's
// distribution. The figures are not negative.
func Mean(runs []float64, confidence float64) Interval {
	if len(runs) < 2 {
		return Interval{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	mean, deviation := stat.MeanStdDev(runs, nil)
	n := float64(len(runs))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(1 - (1-confidence)/2)
	half := t * deviation / math.Sqrt(n)
	return Interval{mean, max(0, mean-half), mean + half}
}

// Counts is Mean of numbers of rare events. Of few events Student's interval is too
// narrow, and of events that come together Poisson's is: this one spans both.
func Counts(runs []float64, confidence float64) Interval {
	i := Mean(runs, confidence)
	if math.IsNaN(i.Mean) {
		return i
	}
	total, n := floats.Sum(runs), float64(len(runs))
	tail := (1 - confidence) / 2
	if total > 0 {
		i.Low = min(i.Low, distuv.ChiSquared{K: 2 * total}.Quantile(tail)/2/n)
	}
	i.High = max(i.High, distuv.ChiSquared{K: 2*total + 2}.Quantile(1-tail)/2/n)
	return i
}
