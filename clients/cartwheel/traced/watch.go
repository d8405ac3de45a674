package traced

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
)

// The attributes through which a mount's counts and traces are asked for, on
// any of its directories. They are not traced themselves.
//
//	user.cartwheel.counts           get: JSON of []trace.Count since the mount began
//	user.cartwheel.trace.TOKEN      set "PID" (0: every process): begin; "end": end;
//	                                get: JSON of Watched
//	user.cartwheel.trace.TOKEN.N    get: JSON of []trace.Record, from number N on
const (
	countsName  = "user.cartwheel.counts"
	tracePrefix = "user.cartwheel.trace."
)

// endTrace is the value that ends a trace.
const endTrace = "end"

// tracePage is how many operations one answer may hold, and traceBytes how
// large it may be: attributes end at 64 KiB.
const (
	tracePage  = 256
	traceBytes = 60 << 10
)

// Watched is what a trace has come to.
type Watched struct {
	Counts  []trace.Count `json:"counts"`
	Dropped uint64        `json:"dropped"`
}

func isTrace(name string) bool { return name == countsName || strings.HasPrefix(name, tracePrefix) }

// op is what the errors of these attributes say that they come from.
const op fault.Op = "traced.FileSystem"

// fill copies a value by the rule that an empty buf asks for the size.
func fill(buf, value []byte) (int, error) {
	if len(buf) == 0 {
		return len(value), nil
	}
	if len(buf) < len(value) {
		return len(value), fault.E(fault.TooSmall, "cartwheel.Xattr", "", "")
	}
	return copy(buf, value), nil
}

// readXattr answers a question about traces. An empty buf asks for the size.
func (f *FileSystem) readXattr(name string, buf []byte) (int, error) {
	var answer any
	token, at, paged := strings.Cut(strings.TrimPrefix(name, tracePrefix), ".")
	switch {
	case name == countsName:
		answer = f.recorder.Counts()
	case paged:
		from, err := strconv.Atoi(at)
		if err != nil {
			return 0, fault.E(fault.NoAttribute, op, name, "")
		}
		page, err := f.tracePage(token, from)
		if err != nil {
			return 0, err
		}
		return fill(buf, page)
	default:
		counts, dropped, err := f.recorder.Seen(token)
		if err != nil {
			return 0, fault.Wrap(fault.NoAttribute, op, name, err)
		}
		answer = Watched{Counts: counts, Dropped: dropped}
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return 0, fault.Wrap(fault.Corrupt, op, name, err)
	}
	return fill(buf, encoded)
}

// tracePage encodes as many operations as one answer holds.
func (f *FileSystem) tracePage(token string, from int) ([]byte, error) {
	for most := tracePage; ; most /= 2 {
		list, err := f.recorder.Operations(token, from, most)
		if err != nil {
			return nil, fault.Wrap(fault.NoAttribute, op, token, err)
		}
		if most == 0 && len(list) == 0 {
			return []byte("[]"), nil
		}
		encoded, err := json.Marshal(list)
		if err != nil || len(encoded) <= traceBytes {
			return encoded, fault.Wrap(fault.Corrupt, op, token, err)
		}
		if most == 1 {
			list[0].Calls = nil // it made too many to be shown
			encoded, err = json.Marshal(list)
			return encoded, fault.Wrap(fault.Corrupt, op, token, err)
		}
	}
}

// setXattr begins or ends a trace. A caller that is neither root nor the mount's
// own user sees only its own operations.
func (f *FileSystem) setXattr(who mount.Caller, name, value string) error {
	token := strings.TrimPrefix(name, tracePrefix)
	if name == countsName || token == "" || strings.Contains(token, ".") {
		return fault.E(fault.Invalid, op, name, "cannot be set")
	}
	if value == endTrace {
		f.recorder.Unwatch(token)
		return nil
	}
	process, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return fault.E(fault.Invalid, op, name, "is set to a process number, 0 for all, or to end")
	}
	uid := who.UID
	if int(uid) == os.Getuid() {
		uid = 0
	}
	f.recorder.Watch(token, uint32(process), uid)
	return nil
}
