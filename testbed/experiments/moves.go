package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

// What happens to a slice under writers, by order of an operator.
const (
	movesHandOver failuresKind = "hand-over" // another member becomes the active
	movesStandby  failuresKind = "standby"   // the node of a standby is drained
	movesActive   failuresKind = "active"    // the node of the active is drained
	movesStop     failuresKind = "stop"      // the node of the active is stopped in order, and started
)

// movesKinds are all of them.
func movesKinds() []failuresKind {
	return []failuresKind{movesHandOver, movesStandby, movesActive, movesStop}
}

func moves() experiment.Experiment {
	return experiment.Experiment{
		Name:    "moves",
		Summary: "writers while their slice is handed over, while its members move to other nodes, and while its active's node is stopped in order",
		Settings: []experiment.Setting{
			{Name: "objects", Default: "1000,100000", Help: "files of the slice, each number in a slice of its own (50 in the short form)"},
			{Name: "kinds", Default: "hand-over,standby,active,stop", Help: "what happens, one after the other (the first and the last in the short form)"},
			{Name: "lease", Default: "3", Help: "lease, s (1 in the short form)"},
			{Name: "rtt", Default: "20", Help: "round trip between the five sites, ms (5 in the short form)"},
			{Name: "calm", Default: "5", Help: "seconds before it happens (1 in the short form)"},
			{Name: "during", Default: "20", Help: "seconds for which the writers go on (5 in the short form)"},
			{Name: "workers", Default: "4", Help: "writers at each of two sites (2 in the short form)"},
		},
		Run: runMoves,
	}
}

// movesPlan is what is done, and over what.
type movesPlan struct {
	syncPlan // how slices are made and filled, and how writers work
	kinds    []failuresKind
}

func planMoves(env *experiment.Env) (movesPlan, error) {
	const op fault.Op = "experiments.planMoves"
	var p movesPlan
	v := map[string]float64{}
	for name, most := range map[string]float64{"lease": 30, "rtt": 1000, "calm": 600, "during": 3600, "workers": 256} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if !(v[name] >= 1 && v[name] <= most) {
			return p, fault.Errorf(fault.Usage, op, name, "%s=%s is not from 1 to %g", name, env.Text(name), most)
		}
	}
	for _, name := range strings.Split(env.Text("kinds"), ",") {
		if !slices.Contains(movesKinds(), failuresKind(name)) {
			return p, fault.Errorf(fault.Usage, op, "kinds", "%q is none: there are %v", name, movesKinds())
		}
		p.kinds = append(p.kinds, failuresKind(name))
	}
	objects, err := numbers(env.Text("objects"), 1, 1e6)
	if err != nil {
		return p, err
	}
	if env.Short {
		objects, p.kinds = []float64{50}, slices.Compact([]failuresKind{p.kinds[0], p.kinds[len(p.kinds)-1]})
		for name, most := range map[string]float64{"lease": 1, "rtt": 5, "calm": 1, "during": 5, "workers": 2} {
			v[name] = min(v[name], most)
		}
	}
	for _, n := range objects {
		p.objects = append(p.objects, int(n))
	}
	seconds := func(name string) time.Duration { return time.Duration(v[name] * float64(time.Second)) }
	p.workers = int(v["workers"])
	p.failures = failuresPlan{leases: []time.Duration{seconds("lease")}, kinds: p.kinds, rtt: v["rtt"],
		calm: seconds("calm"), away: seconds("during"), workers: p.workers, bytes: 2048, limit: 5 * time.Minute}
	return p, nil
}

// movesRow is one move of a slice with so many objects.
type movesRow struct {
	Planted int `json:"planted"`
	// Objects are those of the slice as the nodes count them, with the writers' own.
	Objects uint64 `json:"objects"`
	// Moved is what nodes took from others to have copies of slices, in bytes; nil: the
	// nodes' counts began anew meanwhile.
	Moved *int64      `json:"moved_bytes,omitempty"`
	Move  failuresRow `json:"move"`
}

// gap is the longest time without an acknowledged change from the order until a while
// after its end, and before the order for as long, in milliseconds.
func (r movesRow) gap() (during, before float64) {
	m := r.Move
	end := m.Back.Add(2 * m.Lease)
	if m.Ended.Before(end) {
		end = m.Ended
	}
	return 1000 * stall(m.changes, m.Failed, end), 1000 * stall(m.changes, m.Began.Add(m.Failed.Sub(m.Began)/3), m.Failed)
}

func runMoves(ctx context.Context, env *experiment.Env) error {
	p, err := planMoves(env)
	if err != nil {
		return err
	}
	t, err := p.failures.topology(p.lease())
	if err != nil {
		return err
	}
	f, err := env.Folder("moves", t)
	if err != nil {
		return err
	}
	var rows []movesRow
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		rows, err = p.all(ctx, b, f.Path)
		b.final = slices.ContainsFunc(rows, func(r movesRow) bool { return len(r.Move.Verdict.Lost) > 0 })
		return err
	})
	if err != nil {
		return err
	}
	r := movesReport(p, rows)
	return out.end(f, env, r, lost(rows, func(r movesRow) (string, load.Verdict) { return string(r.Move.Kind), r.Move.Verdict }))
}

// all makes every move with every number of objects.
func (p movesPlan) all(ctx context.Context, b *bed, path func(string) string) ([]movesRow, error) {
	var rows []movesRow
	for _, objects := range p.objects {
		b.say("moves: a slice gets %d files", objects)
		folder := fmt.Sprintf("objects-%d", objects)
		f, err := p.slice(ctx, b, folder, func(name string) string { return path(folder + "-" + name) })
		if err != nil {
			return rows, err
		}
		if _, err := p.create(ctx, b, f.watcher(), folder, "planted", objects); err != nil {
			return rows, err
		}
		for _, k := range p.kinds {
			b.say("moves: %s, %d files", k, objects)
			r, err := f.move(ctx, k, objects)
			if err != nil {
				return rows, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// move has the writers work while one move is made, and undone.
func (f *failuresBed) move(ctx context.Context, k failuresKind, planted int) (movesRow, error) {
	r := movesRow{Planted: planted}
	if err := f.settle(ctx, "experiments.move"); err != nil {
		return r, err
	}
	before, err := f.moved(ctx)
	if err != nil {
		return r, err
	}
	r.Move, err = f.under(ctx, k, func(ctx context.Context, m *failuresRow) error {
		if err := sleep(ctx, f.p.calm); err != nil {
			return err
		}
		s, err := f.watcher().slice(ctx, f.slice)
		if err != nil {
			return err
		}
		r.Objects, m.Failed = s.Objects, time.Now()
		return f.order(ctx, k, s, m)
	})
	if err != nil || k == movesStop {
		return r, err
	}
	after, err := f.moved(ctx)
	after -= before
	r.Moved = &after
	return r, err
}

// order makes the move and notes its end; then it is undone.
func (f *failuresBed) order(ctx context.Context, k failuresKind, s sliceState, m *failuresRow) error {
	at := f.watcher()
	command := func(words ...string) error {
		_, err := at.run(ctx, append([]string{at.programs.Cartwheel, "--contact", at.contact}, words...)...)
		return err
	}
	i := slices.IndexFunc(s.Members, func(m sliceMember) bool { return m.Node != s.Active.Node })
	if i < 0 {
		return fault.Errorf(fault.Other, "experiments.order", f.folder, "slice %d has no standby", f.slice)
	}
	victim := s.Active
	switch k {
	case movesHandOver:
		if err := command("slice", "hand-over", fmt.Sprint(f.slice), s.Members[i].Site); err != nil {
			return err
		}
		m.Victims, m.Back = []string{victim.Site}, time.Now()
		if err := sleep(ctx, 2*f.lease); err != nil {
			return err
		}
		return command("slice", "hand-over", fmt.Sprint(f.slice), failuresHome)
	case movesStop:
		host, err := f.hostOf(victim.Node)
		if err != nil {
			return err
		}
		if err := f.Do(ctx, lab.Fault{Do: lab.Stop, A: host}); err != nil {
			return err
		}
		m.Victims, m.Back = []string{victim.Site}, time.Now()
		return f.Do(ctx, lab.Fault{Do: lab.Start, A: host})
	case movesStandby:
		victim = s.Members[i]
	}
	if err := command("node", "drain", string(victim.Node), "--wait"); err != nil {
		return err
	}
	m.Victims, m.Back = []string{victim.Site}, time.Now()
	return command("node", "undrain", string(victim.Node))
}

// moved is what all nodes took from others to have copies of slices, in bytes.
func (f *failuresBed) moved(ctx context.Context) (int64, error) {
	at := f.watcher()
	out, err := at.run(ctx, at.programs.Cartwheel, "--json", "--contact", at.contact, "status")
	if err != nil {
		return 0, err
	}
	var v struct {
		Nodes []struct {
			Moved int64 `json:"moved_bytes"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return 0, fault.Wrap(fault.Other, "experiments.moved", "cartwheel status", err)
	}
	sum := int64(0)
	for _, n := range v.Nodes {
		sum += n.Moved
	}
	return sum, nil
}
