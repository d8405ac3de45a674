package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
)

// PingOptions say who measures round trips to whom, and where all keep them.
type PingOptions struct {
	Dir   string // holds a folder for each host, there already; may have cues
	Host  string
	Peers map[string]string // ADDRESS:PORT of each other host; nothing need listen there
	For   time.Duration
	Every time.Duration // from one measurement, and one look at the others, to the next
}

// PingSample is what a host's file holds: its latest round trips.
type PingSample struct {
	Host    string             `json:"host"`
	Version uint64             `json:"version"`
	At      int64              `json:"at_us"`  // when it was measured, since 1970
	RTT     map[string]float64 `json:"rtt_ms"` // of those that answered
}

// PingEvent is one write or read of a host's file.
type PingEvent struct {
	By   string     `json:"by"`
	Op   string     `json:"op"` // OpReplace or OpRead
	Is   PingSample `json:"is"` // what was written or read; of a failed read only Host
	At   int64      `json:"at_us"`
	Took int64      `json:"took_us"`
	Err  string     `json:"err,omitempty"`
	// Back says that this reader had seen a later version before.
	Back bool `json:"back,omitempty"`
}

// End is when the operation ended.
func (e PingEvent) End() time.Time { return time.UnixMicro(e.At + e.Took) }

// Age is how old what was read was when the read ended.
func (e PingEvent) Age() time.Duration { return time.Duration(e.At+e.Took-e.Is.At) * time.Microsecond }

// pingLimit bounds one measurement of a round trip.
const pingLimit = time.Second

// pingFile is a host's file, from Dir.
func pingFile(host string) string { return filepath.Join(host, "pings") }

// ReadPings reads the latest sample of a host.
func ReadPings(dir, host string) (PingSample, error) {
	var s PingSample
	data, err := os.ReadFile(filepath.Join(dir, pingFile(host)))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

// Pings measures, writes and reads until o.For has passed, and writes every
// operation to out as it ends, a line of JSON each. One that waits holds up no
// read of another host's file. Errors of operations are events.
func Pings(ctx context.Context, o PingOptions, out io.Writer) error {
	const op fault.Op = "load.Pings"
	if o.Every <= 0 || len(o.Peers) == 0 {
		return fault.E(fault.Usage, op, o.Host, "there is a time between two measurements, and another host")
	}
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	l := &eventLog{w: bufio.NewWriterSize(out, 1<<16)}
	var g errgroup.Group
	g.Go(func() error {
		version := uint64(0)
		return o.again(ctx, func() error { version++; return o.save(ctx, version, l) })
	})
	for host := range o.Peers {
		g.Go(func() error {
			last := uint64(0)
			return o.again(ctx, func() error { return o.look(host, &last, l) })
		})
	}
	return fault.Wrap(fault.IO, op, o.Dir, errors.Join(g.Wait(), l.flush()))
}

// again calls fn at every tick, not before it has returned.
func (o PingOptions) again(ctx context.Context, fn func() error) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := fn(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// save measures the round trips and replaces the host's file.
func (o PingOptions) save(ctx context.Context, version uint64, l *eventLog) error {
	s := PingSample{Host: o.Host, Version: version, At: time.Now().UnixMicro(), RTT: o.measure(ctx)}
	// The dialer gives up at the end itself, before the context has noticed it.
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) || ctx.Err() != nil {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	e := PingEvent{By: o.Host, Op: OpReplace, Is: s, At: time.Now().UnixMicro()}
	file := filepath.Join(o.Dir, pingFile(o.Host))
	if err = os.WriteFile(file+".new", data, 0o644); err == nil {
		err = os.Rename(file+".new", file)
	}
	return e.note(err, l)
}

// look reads the file of another host. Before the first version there is nothing
// to note.
func (o PingOptions) look(host string, last *uint64, l *eventLog) error {
	e := PingEvent{By: o.Host, Op: OpRead, At: time.Now().UnixMicro()}
	s, err := ReadPings(o.Dir, host)
	if *last == 0 && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if e.Is = s; err != nil {
		e.Is = PingSample{Host: host}
		return e.note(err, l)
	}
	e.Back = s.Version < *last
	*last = max(*last, s.Version)
	return e.note(nil, l)
}

func (e PingEvent) note(err error, l *eventLog) error {
	if e.Took = time.Now().UnixMicro() - e.At; err != nil {
		e.Err = err.Error()
	}
	return l.add(e)
}

// measure times a connection to each peer, all at once, in milliseconds. A host
// that refuses it has answered, too.
func (o PingOptions) measure(ctx context.Context) map[string]float64 {
	var mu sync.Mutex // guards rtt
	rtt := map[string]float64{}
	var all sync.WaitGroup
	for host, address := range o.Peers {
		all.Go(func() {
			dialer := net.Dialer{Timeout: pingLimit}
			took, err := timed(func() error {
				c, err := dialer.DialContext(ctx, "tcp", address)
				if err == nil {
					err = c.Close()
				}
				return err
			})
			if err == nil || errors.Is(err, syscall.ECONNREFUSED) {
				mu.Lock()
				defer mu.Unlock()
				rtt[host] = milliseconds(took)
			}
		})
	}
	all.Wait()
	return rtt
}

// ReadPingEvents reads what Pings wrote.
func ReadPingEvents(in io.Reader) ([]PingEvent, error) {
	return readLines[PingEvent]("load.ReadPingEvents", in)
}
