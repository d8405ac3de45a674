package framing

import (
	"encoding/binary"
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Kind is a frame's first byte. Numbers are fixed once sent.
type Kind uint8

// The kinds.
const (
	Call      Kind = 1
	Answer    Kind = 2
	Error     Kind = 3 // an answer whose header is an encoded fault
	Cancel    Kind = 4 // of the call with this ID
	OneWay    Kind = 5
	Heartbeat Kind = 6
	endOfKind Kind = 7
)

// Method names what a frame asks for.
type Method uint16

// MaxMethod is the first number that is no method.
const MaxMethod = 1024

const (
	// HasCoordinate is the flag of a frame that carries a coordinate.
	HasCoordinate = 1 << 0
	// IsWide is the flag of a coordinate in its wide form. A program that knows the
	// narrow form alone ends the connection at this flag.
	IsWide     = 1 << 1
	knownFlags = HasCoordinate | IsWide

	// FixedSize is the length of the part that every frame has.
	FixedSize = 32
)

// Frame is the fixed part of every frame, and the coordinate if it has one.
type Frame struct {
	Kind       Kind
	Flags      uint8
	Method     Method
	Header     uint32 // bytes of the message that follows
	Body       uint32 // bytes that follow the message
	Time       uint32 // call: ms left, 0 none; answer: us spent; one-way, heartbeat: us since the echoed stamp came
	ID         uint64 // one-way, heartbeat: stamp, and above it the echoed one
	HLC        uint64
	Coordinate Coordinate // valid with HasCoordinate; its form follows from the flags
}

// Limits bound the parts of a frame, in bytes.
type Limits struct{ Header, Body uint32 }

// Append appends the encoded frame.
func (f *Frame) Append(to []byte) []byte {
	le := binary.LittleEndian
	to = append(to, byte(f.Kind), f.Flags)
	to = le.AppendUint16(to, uint16(f.Method))
	to = le.AppendUint32(to, f.Header)
	to = le.AppendUint32(to, f.Body)
	to = le.AppendUint32(to, f.Time)
	to = le.AppendUint64(to, f.ID)
	to = le.AppendUint64(to, f.HLC)
	if n := f.carried(); n > 0 {
		return f.Coordinate.append(to, n)
	}
	return to
}

// Parse reads the first FixedSize bytes and checks them against the limits, before
// the caller allocates memory for the rest.
func (f *Frame) Parse(b []byte, l Limits) error {
	_ = b[FixedSize-1]
	le := binary.LittleEndian
	f.Kind, f.Flags = Kind(b[0]), b[1]
	f.Method = Method(le.Uint16(b[2:]))
	f.Header, f.Body = le.Uint32(b[4:]), le.Uint32(b[8:])
	f.Time = le.Uint32(b[12:])
	f.ID, f.HLC = le.Uint64(b[16:]), le.Uint64(b[24:])
	switch {
	case f.Kind == 0 || f.Kind >= endOfKind || f.Flags&^knownFlags != 0 || f.Flags&knownFlags == IsWide:
		return fault.Errorf(fault.NotSupported, Op, "", "unknown frame kind %d or flags %#x", f.Kind, f.Flags)
	case f.Method >= MaxMethod:
		return fault.Errorf(fault.NotSupported, Op, "", "method %d", f.Method)
	case f.Header > l.Header || f.Body > l.Body:
		return fault.Errorf(fault.TooLarge, Op, "", "frame of %d and %d bytes", f.Header, f.Body)
	case (f.Kind == Cancel || f.Kind == Heartbeat) && f.Header|f.Body != 0:
		return fault.Errorf(fault.Invalid, Op, "", "frame kind %d with content", f.Kind)
	}
	return nil
}

// Carry puts a coordinate into the frame, in the form that it needs.
func (f *Frame) Carry(c *Coordinate) {
	f.Flags |= HasCoordinate
	if c.IsWide() {
		f.Flags |= IsWide
	}
	f.Coordinate = *c
}

// carried is how many components of a vector the frame's form has; 0: the frame
// carries no coordinate.
func (f *Frame) carried() int {
	switch f.Flags & (HasCoordinate | IsWide) {
	case HasCoordinate:
		return narrow
	case HasCoordinate | IsWide:
		return MaxDimensions
	}
	return 0
}

// CoordinateSize is how many bytes of coordinate follow the fixed part.
func (f *Frame) CoordinateSize() int {
	if n := f.carried(); n > 0 {
		return 4 * (n + 2)
	}
	return 0
}

// ParseCoordinate reads CoordinateSize bytes. It does nothing where that is 0.
func (f *Frame) ParseCoordinate(b []byte) {
	if n := f.carried(); n > 0 {
		f.Coordinate = parseCoordinate(b, n)
	}
}

// Op is the op of a fault in a frame's bytes.
const Op fault.Op = "wire.frame"

// IsStamped reports whether the frame is of a kind without an answer, where ID
// and Time carry stamps.
func (f *Frame) IsStamped() bool { return f.Kind == OneWay || f.Kind == Heartbeat }

// Millis encodes the time that a call has left. A deadline never becomes none.
func Millis(left time.Duration) uint32 {
	return uint32(min(max((left+time.Millisecond-1)/time.Millisecond, 1), math.MaxUint32))
}

// Micros encodes a time that was spent.
func Micros(d time.Duration) uint32 {
	return uint32(min(max(d/time.Microsecond, 0), math.MaxUint32))
}

// SetHeader sets the message's length in an encoded frame.
func SetHeader(encoded []byte, n uint32) { binary.LittleEndian.PutUint32(encoded[4:], n) }
