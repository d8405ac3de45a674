package locks

import (
	"math"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Types of pb.Lock.
const (
	wireRead   = 0
	wireWrite  = 1
	wireUnlock = 2
)

func toWire(o ids.Object, l mount.Lock) *pb.Lock {
	out := &pb.Lock{Object: uint64(o), Owner: uint64(l.Owner), Flock: l.Whole, Start: l.Start, End: l.End, Pid: l.PID}
	if l.Whole {
		out.Start, out.End = 0, math.MaxUint64
	}
	if l.End >= mount.LockEnd {
		out.End = math.MaxUint64
	}
	switch l.Type {
	case mount.ReadLock:
		out.Type = wireRead
	case mount.WriteLock:
		out.Type = wireWrite
	default:
		out.Type = wireUnlock
	}
	return out
}

func fromWire(l *pb.Lock) mount.Lock {
	out := mount.Lock{Owner: mount.LockOwner(l.Owner), Start: l.Start, End: min(l.End, mount.LockEnd), PID: l.Pid, Whole: l.Flock}
	switch l.Type {
	case wireRead:
		out.Type = mount.ReadLock
	case wireWrite:
		out.Type = mount.WriteLock
	}
	return out
}
