package wire

import "fmt"

// Class says which of a pair's connections a frame takes.
type Class uint8

// The classes. Frames of one class arrive in the order in which they were
// queued, except across a reconnection; classes do not wait for each other.
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

// Method names what a frame asks for. Numbers are the callers' to assign,
// below MaxMethod; 0 is wire's own heartbeat.
type Method uint16

// MaxMethod is the first number that is no method.
const MaxMethod = 1024

// MethodDial is what a Filter sees when a connection is about to be dialled.
const MethodDial Method = 0xffff

// Coordinate is a node's Vivaldi position in milliseconds, as frames carry it.
type Coordinate struct{ X, Y, Height, Error float32 }
