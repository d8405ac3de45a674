package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

// The line that is saturated, and the lease beside it.
const (
	saturateMbit  = 20
	saturateLease = 3 * time.Second
	saturateYAML  = `
name: saturate
sites:
  - {name: near, nodes: 1, link: {rate: 20 Mbps}}
  - {name: far, nodes: 1, link: {rate: 20 Mbps}}
wan: {rtt: 300 ms}
`
)

func saturate() experiment.Experiment {
	return experiment.Experiment{
		Name:    "saturate",
		Summary: "sessions, leases and small operations beside files that fill 20 Mbit/s at 300 ms in both directions",
		Settings: []experiment.Setting{
			{Name: "controls", Default: "machine,reno", Help: "congestion controls of TCP, one after the other; machine: whatever this machine uses"},
			{Name: "seconds", Default: "60", Help: "for how long the line is full (8 in the short form)"},
			{Name: "bytes", Default: "33554432", Help: "bytes of each file (8 MiB in the short form)"},
		},
		Run: runSaturate,
	}
}

// saturateRow is what was met under one congestion control, beside nothing or
// beside a full line.
type saturateRow struct {
	Control string `json:"control"`
	Full    bool   `json:"full"`
	// Sessions are keep-alives of a client at the near site, Beacons round
	// trips over the nodes' own connections for beacons, Operations what one
	// writer did.
	Sessions   load.SessionResult `json:"sessions"`
	Beacons    []float64          `json:"beacons_ms"`
	Unheard    int                `json:"beacons_failed"`
	Operations []float64          `json:"operations_ms"`
	Refused    int                `json:"operations_failed"`
	// Lapsed counts sessions of the mounts, Parts the changes of what a node
	// is in a slice: nothing fails here, so there should be none.
	Lapsed int `json:"mount_sessions_lapsed"`
	Parts  int `json:"slice_roles_changed"`
	// Out and In are what passed from near to far, and back, in Mbit/s.
	Out float64 `json:"out_mbit"`
	In  float64 `json:"in_mbit"`
}

func runSaturate(ctx context.Context, env *experiment.Env) error {
	seconds, err := env.Number("seconds")
	if err != nil {
		return err
	}
	size, err := env.Number("bytes")
	if err != nil {
		return err
	}
	controls := strings.Split(env.Text("controls"), ",")
	if env.Short {
		controls, seconds, size = controls[len(controls)-1:], min(seconds, 8), min(size, 8<<20)
	}
	length := time.Duration(seconds * float64(time.Second))
	if length < time.Second || size < 1 {
		return fault.E(fault.Usage, "experiments.saturate", "seconds", "the line is full for a second at least, with files of a byte at least")
	}
	t, err := described("saturate", saturateYAML)
	if err != nil {
		return err
	}
	f, err := env.Folder("saturate", t)
	if err != nil {
		return err
	}
	var rows []saturateRow
	var voids, earlier []string
	for _, control := range controls {
		with, err := controlled(control)
		if err != nil {
			return err
		}
		var got []saturateRow
		out, err := withLab(ctx, env, f, with, func(ctx context.Context, b *bed) error {
			var err error
			got, err = saturateOnce(ctx, b, control, length, int64(size), f.Path)
			return err
		})
		if err != nil {
			return err
		}
		rows = append(rows, got...)
		if out.void != "" {
			voids = append(voids, control+": "+out.void)
		}
		for _, v := range out.earlier {
			earlier = append(earlier, control+": "+v)
		}
	}
	r := saturateReport(rows, length)
	return outcome{strings.Join(voids, "; "), earlier}.end(f, env, r, nil)
}

// controlled is the topology with a congestion control.
func controlled(control string) (*topology.Topology, error) {
	yaml := saturateYAML
	if control != "machine" {
		yaml += "tcp: " + control + "\n"
	}
	return described("saturate", yaml)
}

// saturateOnce measures beside nothing, then beside a full line.
func saturateOnce(ctx context.Context, b *bed, control string, length time.Duration, size int64, path func(string) string) ([]saturateRow, error) {
	near, err := b.at(pipeNear)
	if err != nil {
		return nil, err
	}
	far, err := b.at(pipeFar)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{".Site=far/.RepLevel=1/away", ".Site=near/.RepLevel=2/both", ".Site=far/.RepLevel=2/small-false", ".Site=far/.RepLevel=2/small-true"} {
		if err := mkdir(ctx, filepath.Join(near.mount, dir)); err != nil {
			return nil, err
		}
	}
	if err := far.stream(ctx, "write", "away/there", size, b.env.Seed); err != nil {
		return nil, err
	}
	var rows []saturateRow
	for _, full := range []bool{false, true} {
		r := saturateRow{Control: control, Full: full}
		b.say("saturate: %s, the line is full: %v", control, full)
		most := length
		if !full {
			most = min(length, 10*time.Second)
		}
		if err := r.measure(ctx, b, near, far, most, size, path(fmt.Sprintf("events-%s-%v.jsonl", control, full))); err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// stream writes or reads one large file.
func (p place) stream(ctx context.Context, way, name string, size int64, seed uint64) error {
	return p.work(ctx, nil, "stream", way, filepath.Join(p.mount, name), "--size", strconv.FormatInt(size, 10), "--seed", strconv.FormatUint(seed, 10))
}

// measure has everything go on at once for a while, and counts.
func (r *saturateRow) measure(ctx context.Context, b *bed, near, far place, length time.Duration, size int64, events string) error {
	began := time.Now()
	before, err := b.Network().Stats(ctx)
	if err != nil {
		return err
	}
	var fill sync.WaitGroup
	filling, stop := context.WithCancel(ctx)
	defer fill.Wait()
	defer stop()
	if r.Full {
		pour(filling, &fill, near, size, b.env.Seed)
		if err := sleep(ctx, min(length/4, 5*time.Second)); err != nil { // until the queues are full
			return err
		}
	}
	errs := make(chan error, 3)
	go func() {
		errs <- near.work(ctx, &r.Sessions, "sessions", "--contact", near.contact, "--site", near.site, "--nodes", far.site, "--for", length.String())
	}()
	go func() { errs <- r.write(ctx, near, length, events, b.env.Seed) }()
	go func() { errs <- r.ping(ctx, near, began.Add(length)) }()
	for range cap(errs) {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	after, err := b.Network().Stats(ctx)
	if err != nil {
		return err
	}
	passed := after.Since(before)
	mbit := func(from, to string) float64 {
		return float64(passed.Pairs[wan.Pair{From: from, To: to}].Through) * 8 / 1e6 / passed.Elapsed.Seconds()
	}
	r.Out, r.In = mbit(pipeNear, pipeFar), mbit(pipeFar, pipeNear)
	stop()
	fill.Wait()
	if r.Lapsed, err = b.said("mount", "a session lapsed", began); err == nil {
		r.Parts, err = b.said("node", "part in a slice", began)
	}
	return err
}

// pour keeps the line full, both ways, until ctx ends: the mount writes to the
// far node, the near node passes chunks on to it, and the mount reads.
func pour(ctx context.Context, all *sync.WaitGroup, near place, size int64, seed uint64) {
	again := func(one func(n int) error) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if one(n) != nil { // the next one tries again, or it is over
					_ = sleep(ctx, time.Second)
				}
			}
		})
	}
	for i, dir := range []string{"away", "both"} {
		again(func(n int) error {
			return near.stream(ctx, "write", fmt.Sprintf("%s/file-%d", dir, n), size, seed+uint64(2*n+i+1))
		})
	}
	again(func(int) error {
		return errors.Join(near.stream(ctx, "read", "away/there", size, seed), near.cold(ctx))
	})
}

// write has one writer work on small files.
func (r *saturateRow) write(ctx context.Context, at place, length time.Duration, file string, seed uint64) error {
	err := at.work(ctx, nil, "writers", filepath.Join(at.mount, fmt.Sprintf("small-%v", r.Full)), "--workers", "1", "--pause", "100ms", "--for", length.String(),
		"--seed", strconv.FormatUint(seed, 10), "--events", file)
	if err != nil {
		return err
	}
	events, err := readEvents(file)
	for _, e := range events {
		if e.Err != "" {
			r.Refused++
		} else {
			r.Operations = append(r.Operations, float64(e.Took)/1000)
		}
	}
	return err
}

// ping has the nodes measure each other, again and again.
func (r *saturateRow) ping(ctx context.Context, at place, until time.Time) error {
	for time.Now().Before(until) {
		out, err := at.run(ctx, at.programs.Cartwheel, "--json", "--contact", at.contact, "net", "probe", "--count", "5")
		var v struct {
			Links []struct {
				Probes []float64 `json:"probes_ms"`
				Error  string    `json:"error"`
			} `json:"links"`
		}
		if err == nil {
			err = json.Unmarshal(out, &v)
		}
		if err != nil {
			return fault.Wrap(fault.Other, "experiments.saturate", "cartwheel net probe", err)
		}
		for _, l := range v.Links {
			r.Beacons = append(r.Beacons, l.Probes...)
			if l.Error != "" {
				r.Unheard++
			}
		}
	}
	return nil
}
