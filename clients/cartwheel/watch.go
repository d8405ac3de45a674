package cartwheel

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
//	user.cartwheel.trace.TOKEN      set "PID" (0: everybody): begin; "end": end;
//	                                get: JSON of Watched
//	user.cartwheel.trace.TOKEN.N    get: JSON of []trace.Record, from number N on
const (
	countsName  = ownPrefix + "counts"
	tracePrefix = ownPrefix + "trace."
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

// traceXattr answers a question about traces.
func (c *Client) traceXattr(_ mount.Caller, name string, buf []byte) (int, error) {
	const op fault.Op = "cartwheel.trace"
	var answer any
	token, at, paged := strings.Cut(strings.TrimPrefix(name, tracePrefix), ".")
	switch {
	case name == countsName:
		answer = c.recorder.Counts()
	case paged:
		from, err := strconv.Atoi(at)
		if err != nil {
			return 0, fault.E(fault.NoAttribute, op, name, "")
		}
		page, err := c.tracePage(token, from)
		if err != nil {
			return 0, err
		}
		return fill(buf, page)
	default:
		counts, dropped, err := c.recorder.Seen(token)
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
func (c *Client) tracePage(token string, from int) ([]byte, error) {
	const op fault.Op = "cartwheel.trace"
	for most := tracePage; ; most /= 2 {
		list, err := c.recorder.Operations(token, from, most)
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

// orderTrace begins or ends a trace. Who is neither root nor runs the mount
// sees only operations of its own.
func (c *Client) orderTrace(who mount.Caller, name, value string) error {
	const op fault.Op = "cartwheel.trace"
	token := strings.TrimPrefix(name, tracePrefix)
	if name == countsName || token == "" || strings.Contains(token, ".") {
		return fault.E(fault.Invalid, op, name, "cannot be set")
	}
	if value == endTrace {
		c.recorder.Unwatch(token)
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
	c.recorder.Watch(token, uint32(process), uid)
	return nil
}
