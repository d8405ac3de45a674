package wire

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/protocol"

	"cartwheel.dev/node/wire/framing"
)

// Class says which of a pair's connections a frame takes.
type Class uint8

// The classes. Frames of one class arrive in the order in which they were
// queued, except across a reconnection, and except that on a connection for
// chunks small frames overtake those with large bodies. Classes do not wait for
// each other.
const (
	Beacon    Class = 0 // beacons, keep-alives, revocations: small and urgent
	Operation Class = 1 // operations, reads, replica traffic
	Chunk     Class = 2 // chunks and other bulk
	classes         = 3
)

var classNames = [classes]string{"beacon", "operation", "chunk"}

func (c Class) String() string {
	if c < classes {
		return classNames[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

// lane says what a connection is for, as it is negotiated: a class, a request
// that the listener relays, or a class through a relay.
type lane uint8

const (
	laneRelay   lane = classes
	laneRelayed lane = classes + 1
	lanes            = 2*classes + 1
)

func direct(c Class) lane  { return lane(c) }
func relayed(c Class) lane { return laneRelayed + lane(c) }

// class returns the class of the frames on a lane that is not laneRelay.
func (l lane) class() Class {
	if l.isRelayed() {
		return Class(l - laneRelayed)
	}
	return Class(l)
}

// isRelayed reports whether a relay passes the bytes on.
func (l lane) isRelayed() bool { return l >= laneRelayed }

// Method names what a frame asks for. Numbers are the callers' to assign,
// below MaxMethod-3; 0 is wire's own heartbeat.
type Method = framing.Method

// MaxMethod is the first number that is no method.
const MaxMethod = framing.MaxMethod

// methodReach is wire's own: whether the callee has a direct connection to a
// peer.
const methodReach Method = MaxMethod - 1

// methodPing is wire's own too: it is answered at once, with nothing.
const methodPing Method = MaxMethod - 2

// MethodRelay is what a Filter sees, in class Chunk, of bytes that this host
// relays to a peer for another one; Drop ends the relayed connection.
const MethodRelay Method = 0xfffe

// MethodDial is what a Filter sees when a connection is about to be dialled.
const MethodDial Method = 0xffff

// Coordinate is a node's Vivaldi position in milliseconds, as frames carry it.
type Coordinate = framing.Coordinate

// Buffer is pooled memory that belongs to its receiver until Release.
type Buffer = framing.Buffer

// Answered reports whether err is what the peer itself answered, so that the
// outcome of the call is known. Any other error of a call leaves it open.
func Answered(err error) bool { return framing.Answered(err) }

// protocols are what is negotiated as stream multiplexer: the lane of the
// connection and the version of the frames on it.
var protocols = [lanes]protocol.ID{
	"/cartwheel/1/beacon", "/cartwheel/1/operation", "/cartwheel/1/chunk", "/cartwheel/1/splice",
	"/cartwheel/1/spliced/beacon", "/cartwheel/1/spliced/operation", "/cartwheel/1/spliced/chunk",
}
