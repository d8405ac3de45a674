package strain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"golang.org/x/sync/errgroup"
)

// Configuration is a geo-config store with very many rows and followers, all in
// this process.
type Configuration struct {
	Options
	// Database is the URL of a CockroachDB or PostgreSQL, in which the run makes a
	// schema of its own and drops it; empty: an embedded store.
	Database string
	Slices   int
	Nodes    int
	// Followers wait for changes, as each node does.
	Followers int
	// Changes is how many single changes are timed.
	Changes int
}

// Shape of the cluster.
const (
	// configurationSites is over how many sites the nodes are spread.
	configurationSites = 50
	// configurationLevel is the number of members of a slice.
	configurationLevel = 3
	// lostBatch is how many rows go in one batch when a node is lost.
	lostBatch = 500
)

// Run fills the store, fetches all of it, and times changes and the loss of a node.
func (o Configuration) Run(ctx context.Context) (figures []Figure, err error) {
	if o.Slices < 1 || o.Nodes < configurationLevel || o.Followers < 1 || o.Changes < 1 {
		return nil, fault.Errorf(fault.Usage, "strain.Configuration", "", "there are one slice, %d nodes, one follower and one change at least", configurationLevel)
	}
	store, remove, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close(), remove()) }()
	run := configurationRun{Configuration: o, store: store}
	for _, step := range []func(context.Context) error{run.fill, run.fetch, run.follow, run.lose} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return run.figures, nil
}

// open makes an empty store, and returns what removes it.
func (o Configuration) open(ctx context.Context) (geoconfig.Store, func() error, error) {
	if o.Database != "" {
		scratch, err := cockroach.NewScratch(ctx, cockroach.Options{Options: database.Options{URL: o.Database}})
		if err != nil {
			return nil, nil, err
		}
		remove := func() error { return scratch.Drop(context.WithoutCancel(ctx)) }
		s, err := scratch.Open(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, remove())
		}
		return s, remove, nil
	}
	dir, err := os.MkdirTemp(o.In, "configuration-")
	if err != nil {
		return nil, nil, fault.FromOS("strain.open", o.In, err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	s, err := embedded.Open(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return s, remove, nil
}

// configurationRun is one run, on one goroutine.
type configurationRun struct {
	Configuration
	store   geoconfig.Store
	figures []Figure
}

func (r *configurationRun) add(name string, value float64, unit string) {
	r.figures = append(r.figures, Figure{name, value, unit})
}

func nodeName(n int) ids.Node { return ids.Node(fmt.Sprintf("node-%06d", n)) }

func siteName(n int) ids.Site { return ids.Site(fmt.Sprintf("site-%02d", n%configurationSites)) }

// members of a slice: each node has as many slices as any other.
func (r *configurationRun) members(slice int) (members []geoconfig.Member) {
	for i := range configurationLevel {
		members = append(members, geoconfig.Member{Node: nodeName((slice + i*r.Nodes/configurationLevel) % r.Nodes), State: geoconfig.Normal, Incarnation: 1})
	}
	return members
}

func (r *configurationRun) row(slice int) geoconfig.SliceRow {
	members := r.members(slice)
	return geoconfig.SliceRow{ID: ids.Slice(slice), Epoch: 1, Active: members[0].Node, Members: members,
		Policy: geoconfig.Policy{Home: siteName(slice % r.Nodes), Level: configurationLevel, Kind: geoconfig.Ordinary}}
}

// fill writes sites, nodes and slices, in batches as large as they may be.
func (r *configurationRun) fill(ctx context.Context) error {
	start := time.Now()
	first := geoconfig.Batch{Key: "sites", Cluster: &geoconfig.Cluster{ID: "strain", Generation: 1}}
	for n := range min(configurationSites, r.Nodes) {
		first.Sites = append(first.Sites, geoconfig.Site{Name: siteName(n)})
	}
	if _, err := r.store.Apply(ctx, first); err != nil {
		return err
	}
	for from := 0; from < r.Nodes; from += geoconfig.MaxBatchRows {
		b := geoconfig.Batch{Key: fmt.Sprint("nodes-", from)}
		for n := from; n < min(from+geoconfig.MaxBatchRows, r.Nodes); n++ {
			b.Nodes = append(b.Nodes, geoconfig.Node{ID: nodeName(n), Site: siteName(n), Addresses: []string{"/ip4/192.0.2.1/tcp/7400"}, CapacityBytes: 1 << 40, Incarnation: 1, Version: "1"})
		}
		if _, err := r.store.Apply(ctx, b); err != nil {
			return err
		}
	}
	for from := 1; from <= r.Slices; from += geoconfig.MaxBatchRows {
		b := geoconfig.Batch{Key: fmt.Sprint("slices-", from)}
		for n := from; n < min(from+geoconfig.MaxBatchRows, r.Slices+1); n++ {
			b.Slices = append(b.Slices, geoconfig.SliceSwap{Row: r.row(n)})
		}
		if _, err := r.store.Apply(ctx, b); err != nil {
			return err
		}
		if (from-1)%(100*geoconfig.MaxBatchRows) == 0 {
			r.say("%d slices are there", from-1)
		}
	}
	took := time.Since(start)
	r.add("slices", float64(r.Slices), "")
	r.add("nodes", float64(r.Nodes), "")
	r.add("filling took", took.Seconds(), "s")
	r.add("rows filled a second", float64(r.Slices+r.Nodes)/took.Seconds(), "")
	return nil
}

// fetch reads every row, as a node does that has none.
func (r *configurationRun) fetch(ctx context.Context) error {
	var since ids.Revision
	bytes, rows, start := 0, 0, time.Now()
	var coding time.Duration
	for {
		page, err := r.store.Follow(ctx, since, 0)
		if err != nil {
			return err
		}
		begun := time.Now()
		data, err := json.Marshal(page)
		if err != nil {
			return fault.Wrap(fault.Other, "strain.fetch", "", err)
		}
		coding += time.Since(begun)
		bytes, rows, since = bytes+len(data), rows+len(page.Sites)+len(page.Nodes)+len(page.Slices), page.Revision
		if !page.More {
			break
		}
	}
	if want := r.Slices + r.Nodes + min(configurationSites, r.Nodes); rows != want {
		return fault.Errorf(fault.Corrupt, "strain.fetch", "", "%d rows came, want %d", rows, want)
	}
	r.add("full fetch took", (time.Since(start) - coding).Seconds(), "s")
	r.add("full fetch, as sent", mib(int64(bytes)), "MiB")
	r.add("bytes a row", float64(bytes)/float64(rows), "")
	return nil
}

// follow times changes: until the store has acknowledged one, and until every
// follower has it.
func (r *configurationRun) follow(ctx context.Context) error {
	rows, err := r.store.Read(ctx, geoconfig.Query{})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	heard := make(chan struct{}, r.Followers)
	all, ctx := errgroup.WithContext(ctx)
	for range r.Followers {
		all.Go(func() error {
			since := rows.Revision
			for range r.Changes {
				page, err := r.store.Follow(ctx, since, 0)
				if err != nil {
					return err
				}
				since = page.Revision
				heard <- struct{}{}
			}
			return nil
		})
	}
	var acknowledged, everywhere []time.Duration
	all.Go(func() error {
		for n := range r.Changes {
			start := time.Now()
			if err := r.change(ctx, n+1); err != nil {
				return err
			}
			acknowledged = append(acknowledged, time.Since(start))
			for range r.Followers {
				select {
				case <-heard:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			everywhere = append(everywhere, time.Since(start))
		}
		return nil
	})
	if err := all.Wait(); err != nil {
		return err
	}
	slices.Sort(acknowledged)
	slices.Sort(everywhere)
	r.add("followers", float64(r.Followers), "")
	r.add("a change is acknowledged after, median", milliseconds(acknowledged[len(acknowledged)/2]), "ms")
	r.add("all followers have it after, median", milliseconds(everywhere[len(everywhere)/2]), "ms")
	r.add("all followers have it after, worst", milliseconds(everywhere[len(everywhere)-1]), "ms")
	return nil
}

// change swaps the row of a slice.
func (r *configurationRun) change(ctx context.Context, n int) error {
	slice := 1 + n%r.Slices
	row := r.row(slice)
	read, err := r.store.Read(ctx, geoconfig.Query{SliceIDs: []ids.Slice{row.ID}})
	if err != nil {
		return err
	}
	row.Epoch = read.Slices[0].Epoch + 1
	_, err = r.store.Apply(ctx, geoconfig.Batch{Key: fmt.Sprintf("change-%d", n), Slices: []geoconfig.SliceSwap{{From: row.Epoch - 1, Row: row}}})
	return err
}

// lose marks a node failed in all of its slices, as the other members do.
func (r *configurationRun) lose(ctx context.Context) error {
	lost := nodeName(0)
	var of []int
	for slice := 1; slice <= r.Slices; slice++ {
		if slices.ContainsFunc(r.members(slice), func(m geoconfig.Member) bool { return m.Node == lost }) {
			of = append(of, slice)
		}
	}
	start := time.Now()
	batches := 0
	for part := range slices.Chunk(of, lostBatch) {
		var q geoconfig.Query
		for _, slice := range part {
			q.SliceIDs = append(q.SliceIDs, ids.Slice(slice))
		}
		rows, err := r.store.Read(ctx, q)
		if err != nil {
			return err
		}
		b := geoconfig.Batch{Key: fmt.Sprint("lost-", batches)}
		for _, row := range rows.Slices {
			from := row.Epoch
			row.Epoch++
			row.Members = slices.Clone(row.Members)
			for i, m := range row.Members {
				if m.Node == lost {
					row.Members[i].State = geoconfig.Failed
				} else {
					row.Active = m.Node
				}
			}
			b.Slices = append(b.Slices, geoconfig.SliceSwap{From: from, Row: row})
		}
		if _, err := r.store.Apply(ctx, b); err != nil {
			return err
		}
		batches++
	}
	took := time.Since(start)
	r.add("slices of a lost node", float64(len(of)), "")
	r.add("their rows were changed in", took.Seconds(), "s")
	r.add("batches", float64(batches), "")
	return nil
}
