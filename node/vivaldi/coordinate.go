package vivaldi

import (
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// MaxDimensions bounds the Euclidean part of a coordinate.
const MaxDimensions = 8

// Bounds on what a coordinate of somebody else may say, in milliseconds.
const (
	// MaxPosition bounds each component of a vector and the height: no two
	// places on Earth are so far apart, and no satellite link is so slow.
	MaxPosition = 10_000
	// MaxError bounds the error estimate; a node that knows nothing says 1.
	MaxError = 2
)

// Coordinate is a position in the space of round-trip times, as a node
// publishes it: a point in a Euclidean space of up to MaxDimensions and a
// height above it (Dabek et al., section 5.4). It is a plain comparable value;
// the zero value is the origin and claims to be without error.
//
// The parts are single-precision, as frames carry them: a microsecond at
// MaxPosition, so nothing is lost on the way to a peer and back.
type Coordinate struct {
	// Vector is the point, in milliseconds of round-trip time. Dimensions
	// that a space does not have are 0.
	Vector [MaxDimensions]float32
	// Height is the time to and from the core of the network over the node's
	// own access link, in milliseconds, at least 0.
	Height float32
	// Error is the node's own estimate of its relative error, without unit:
	// 0.1 means that predictions with this node miss by about a tenth.
	Error float32
}

// Place returns the coordinate with these parts, or a fault of kind Invalid.
// It takes what Parts returns.
func Place(vectorMS []float64, heightMS, relativeError float64) (Coordinate, error) {
	const op fault.Op = "vivaldi.Place"
	var c Coordinate
	if len(vectorMS) > MaxDimensions {
		return c, fault.Errorf(fault.Invalid, op, "", "%d dimensions, the limit is %d", len(vectorMS), MaxDimensions)
	}
	for i, v := range vectorMS {
		c.Vector[i] = float32(v)
	}
	c.Height, c.Error = float32(heightMS), float32(relativeError)
	return c, c.Check()
}

// Parts returns the first n components of the vector, the height and the
// error. The slice is the caller's.
func (c Coordinate) Parts(n int) (vectorMS []float64, heightMS, relativeError float64) {
	vectorMS = make([]float64, min(max(n, 0), MaxDimensions))
	for i := range vectorMS {
		vectorMS[i] = float64(c.Vector[i])
	}
	return vectorMS, float64(c.Height), float64(c.Error)
}

// Dimensions returns the least number of dimensions that holds the vector.
func (c Coordinate) Dimensions() int {
	n := MaxDimensions
	for n > 0 && c.Vector[n-1] == 0 {
		n--
	}
	return n
}

// Check says why a coordinate is not valid, a fault of kind Invalid, or returns
// nil. What passes is finite and within MaxPosition and MaxError; it may still
// be a lie.
func (c Coordinate) Check() error {
	const op fault.Op = "vivaldi.Check"
	for i, v := range c.Vector {
		if !(math.Abs(float64(v)) <= MaxPosition) { // a NaN too
			return fault.Errorf(fault.Invalid, op, "", "component %d of the vector is %v, beyond %d ms", i, v, MaxPosition)
		}
	}
	if !(c.Height >= 0 && c.Height <= MaxPosition) {
		return fault.Errorf(fault.Invalid, op, "", "the height is %v, not between 0 and %d ms", c.Height, MaxPosition)
	}
	if !(c.Error >= 0 && c.Error <= MaxError) {
		return fault.Errorf(fault.Invalid, op, "", "the error estimate is %v, not between 0 and %d", c.Error, MaxError)
	}
	return nil
}

// Valid reports whether Check finds nothing; it allocates nothing.
func (c Coordinate) Valid() bool {
	for _, v := range c.Vector {
		if !(math.Abs(float64(v)) <= MaxPosition) {
			return false
		}
	}
	return c.Height >= 0 && c.Height <= MaxPosition && c.Error >= 0 && c.Error <= MaxError
}

// Distance returns the predicted round-trip time between two coordinates, in
// milliseconds: the Euclidean distance of the points plus both heights
// (Dabek et al., section 5.4). It is symmetric.
func (c Coordinate) Distance(o Coordinate) float64 {
	var sum float64
	for i, v := range c.Vector {
		d := float64(v) - float64(o.Vector[i])
		sum += d * d
	}
	return math.Sqrt(sum) + (float64(c.Height) + float64(o.Height)) // in brackets, or the order of the two shows
}

// apart returns how far a node has moved from one coordinate to another, in
// milliseconds.
func (c *Coordinate) apart(o *Coordinate) float64 {
	var sum float64
	for i, v := range c.Vector {
		d := float64(v) - float64(o.Vector[i])
		sum += d * d
	}
	return math.Sqrt(sum) + math.Abs(float64(c.Height)-float64(o.Height))
}

// Predict is Distance as a duration.
func (c Coordinate) Predict(o Coordinate) time.Duration { return duration(c.Distance(o)) }

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
