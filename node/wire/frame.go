package wire

import (
	"encoding/binary"
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// kind is a frame's first byte. Numbers are fixed once sent.
type kind uint8

const (
	kindCall      kind = 1
	kindAnswer    kind = 2
	kindError     kind = 3 // an answer whose header is an encoded fault
	kindCancel    kind = 4 // of the call with this id
	kindMessage   kind = 5 // one-way
	kindHeartbeat kind = 6
	kindEnd       kind = 7
)

const (
	flagCoordinate = 1 << 0
	knownFlags     = flagCoordinate

	frameSize      = 32
	coordinateSize = 16
	maxFrameHead   = frameSize + coordinateSize
)

// frame is the fixed part of every frame; docs/formats/wire.md has its bytes.
type frame struct {
	kind       kind
	flags      uint8
	method     Method
	header     uint32 // bytes of the message that follows
	body       uint32 // bytes that follow the message
	time       uint32 // call: ms left, 0 none; answer: us spent; message, heartbeat: us since the echoed stamp came
	id         uint64 // message, heartbeat: stamp, and above it the echoed one
	hlc        uint64
	coordinate Coordinate // valid with flagCoordinate
}

func (f *frame) append(to []byte) []byte {
	le := binary.LittleEndian
	to = append(to, byte(f.kind), f.flags)
	to = le.AppendUint16(to, uint16(f.method))
	to = le.AppendUint32(to, f.header)
	to = le.AppendUint32(to, f.body)
	to = le.AppendUint32(to, f.time)
	to = le.AppendUint64(to, f.id)
	to = le.AppendUint64(to, f.hlc)
	if f.flags&flagCoordinate != 0 {
		for _, v := range [...]float32{f.coordinate.X, f.coordinate.Y, f.coordinate.Height, f.coordinate.Error} {
			to = le.AppendUint32(to, math.Float32bits(v))
		}
	}
	return to
}

// parse reads the first frameSize bytes and checks them against the limits, so
// that nothing is allocated for a frame that will not be read.
func (f *frame) parse(b []byte, l *ClassLimits) error {
	_ = b[frameSize-1]
	le := binary.LittleEndian
	f.kind, f.flags = kind(b[0]), b[1]
	f.method = Method(le.Uint16(b[2:]))
	f.header, f.body = le.Uint32(b[4:]), le.Uint32(b[8:])
	f.time = le.Uint32(b[12:])
	f.id, f.hlc = le.Uint64(b[16:]), le.Uint64(b[24:])
	switch {
	case f.kind == 0 || f.kind >= kindEnd || f.flags&^knownFlags != 0:
		return fault.Errorf(fault.NotSupported, opFrame, "", "unknown frame kind %d or flags %#x", f.kind, f.flags)
	case f.method >= MaxMethod:
		return fault.Errorf(fault.NotSupported, opFrame, "", "method %d", f.method)
	case f.header > l.Header || f.body > l.Body:
		return fault.Errorf(fault.TooLarge, opFrame, "", "frame of %d and %d bytes", f.header, f.body)
	case (f.kind == kindCancel || f.kind == kindHeartbeat) && f.header|f.body != 0:
		return fault.Errorf(fault.Invalid, opFrame, "", "frame kind %d with content", f.kind)
	}
	return nil
}

func (f *frame) parseCoordinate(b []byte) {
	at := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[i:])) }
	f.coordinate = Coordinate{at(0), at(4), at(8), at(12)}
}

const opFrame fault.Op = "wire.frame"

// stamped reports whether the frame is of a kind that nobody answers, where id
// and time carry stamps.
func (f *frame) stamped() bool { return f.kind == kindMessage || f.kind == kindHeartbeat }

// millis encodes the time that a call has left; a deadline never becomes none.
func millis(left time.Duration) uint32 {
	return uint32(min(max((left+time.Millisecond-1)/time.Millisecond, 1), math.MaxUint32))
}

func micros(d time.Duration) uint32 {
	return uint32(min(max(d/time.Microsecond, 0), math.MaxUint32))
}

// patchHeader sets the message's length in an encoded frame.
func patchHeader(encoded []byte, n uint32) { binary.LittleEndian.PutUint32(encoded[4:], n) }
