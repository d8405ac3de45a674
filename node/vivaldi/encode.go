package vivaldi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"

	"cartwheel.dev/geo-config/fault"
)

// The binary form: one byte d, the number of dimensions, 0 to MaxDimensions;
// d components of the vector; the height; the error: each an IEEE 754
// single-precision number, big-endian. So 1 + 4 (d + 2) bytes, 17 in the plane.
//
// The JSON form is that of a node's row in geo-config: {"vector_ms": [x, y],
// "height_ms": h, "error": e}, at most MaxJSON bytes.

// MaxBinary and MaxJSON bound the encodings in bytes.
const (
	MaxBinary = 1 + 4*(MaxDimensions+2)
	MaxJSON   = 1024
)

// AppendBinary appends the binary form with at least two dimensions.
func (c Coordinate) AppendBinary(dst []byte) ([]byte, error) {
	d := max(c.Dimensions(), 2)
	dst = append(dst, byte(d))
	for _, v := range c.Vector[:d] {
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(v))
	}
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(c.Height))
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(c.Error)), nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (c Coordinate) MarshalBinary() ([]byte, error) { return c.AppendBinary(nil) }

// UnmarshalBinary implements encoding.BinaryUnmarshaler. What is not exactly
// one valid coordinate is a fault of kind Invalid and leaves c as it was.
func (c *Coordinate) UnmarshalBinary(b []byte) error {
	const op fault.Op = "vivaldi.UnmarshalBinary"
	if len(b) == 0 || b[0] > MaxDimensions || len(b) != 1+4*(int(b[0])+2) {
		return fault.Errorf(fault.Invalid, op, "", "%d bytes are no coordinate", len(b))
	}
	at := func(i int) float32 { return math.Float32frombits(binary.BigEndian.Uint32(b[1+4*i:])) }
	var got Coordinate
	d := int(b[0])
	for i := range d {
		got.Vector[i] = at(i)
	}
	got.Height, got.Error = at(d), at(d+1)
	if err := got.Check(); err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	*c = got
	return nil
}

type document struct {
	Vector []float32 `json:"vector_ms"`
	Height float32   `json:"height_ms"`
	Error  float32   `json:"error"`
}

// MarshalJSON implements json.Marshaler with at least two dimensions. A
// coordinate that is not valid is a fault of kind Invalid: JSON has no NaN.
func (c Coordinate) MarshalJSON() ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return json.Marshal(document{c.Vector[:max(c.Dimensions(), 2)], c.Height, c.Error})
}

// UnmarshalJSON implements json.Unmarshaler. What is not a valid coordinate is
// a fault of kind Invalid and leaves c as it was.
func (c *Coordinate) UnmarshalJSON(b []byte) error {
	const op fault.Op = "vivaldi.UnmarshalJSON"
	if len(b) > MaxJSON {
		return fault.Errorf(fault.Invalid, op, "", "%d bytes, the limit is %d", len(b), MaxJSON)
	}
	var d document
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	if err := in.Decode(&d); err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	if _, err := in.Token(); err != io.EOF {
		return fault.E(fault.Invalid, op, "", "more than one document")
	}
	if len(d.Vector) > MaxDimensions {
		return fault.Errorf(fault.Invalid, op, "", "%d dimensions, the limit is %d", len(d.Vector), MaxDimensions)
	}
	var got Coordinate
	copy(got.Vector[:], d.Vector)
	got.Height, got.Error = d.Height, d.Error
	if err := got.Check(); err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	*c = got
	return nil
}
