package framing

import (
	"encoding/binary"
	"math"
)

// MaxDimensions bounds the dimensions of a coordinate: the wide form has as many.
const MaxDimensions = 8

// narrow is how many dimensions the narrow form has.
const narrow = 2

// Coordinate is a node's Vivaldi position in milliseconds, as frames carry it.
// What a peer sent may be any numbers; IsFinite and the receiver's own bounds
// say which are of use.
//
// The narrow form has the first two components of the vector, the height and the
// error, 16 bytes. The wide form has all eight components, the height and the
// error, 40 bytes. All are little-endian IEEE 754 single-precision numbers.
type Coordinate struct {
	// Vector has 0 in dimensions that the sender's space does not have.
	Vector        [MaxDimensions]float32
	Height, Error float32
	// Dimensions of the sender's space, 1 to MaxDimensions. More than two need the
	// wide form; what was received says 2 or MaxDimensions, by its form.
	Dimensions int
}

// IsWide reports whether the coordinate needs the wide form.
func (c *Coordinate) IsWide() bool { return c.Dimensions > narrow }

// IsFinite reports whether no part is infinite or no number.
func (c *Coordinate) IsFinite() bool {
	for _, v := range c.Vector {
		if !isFinite(v) {
			return false
		}
	}
	return isFinite(c.Height) && isFinite(c.Error)
}

func isFinite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// append appends the first n components, the height and the error.
func (c *Coordinate) append(to []byte, n int) []byte {
	for _, v := range c.Vector[:n] {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(v))
	}
	to = binary.LittleEndian.AppendUint32(to, math.Float32bits(c.Height))
	return binary.LittleEndian.AppendUint32(to, math.Float32bits(c.Error))
}

// parseCoordinate reads a form of n components.
func parseCoordinate(b []byte, n int) Coordinate {
	at := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
	c := Coordinate{Height: at(n), Error: at(n + 1), Dimensions: n}
	for i := range n {
		c.Vector[i] = at(i)
	}
	return c
}
