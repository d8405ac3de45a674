package cockroach

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/ids"
)

// Scratch is a schema of its own for checks on a live database. What is in other
// schemas it neither reads nor changes. One store at a time uses it.
type Scratch struct {
	options Options
}

// NewScratch makes the schema and its tables. The schema of o is ignored.
func NewScratch(ctx context.Context, o Options) (*Scratch, error) {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	o.Schema = "cartwheel_scratch_" + hex.EncodeToString(random[:])
	s := &Scratch{options: o}
	patient := o.Options
	patient.Patience = schema.Patience
	d, err := database.Open(ctx, patient)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if _, err := schema.Migrate(ctx, d); err != nil {
		// The error that matters is the first one.
		_ = s.Drop(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

// Open empties the tables and opens a store on them.
func (s *Scratch) Open(ctx context.Context) (*Store, error) {
	var statements []string
	for _, table := range []string{"cluster", "sites", "nodes", "slices", "users", "records", "node_sites", "slice_members", "audit", "batches"} {
		statements = append(statements, "DELETE FROM "+table)
	}
	statements = append(statements, "UPDATE state SET revision = 0, audit = 0, keys = 0 WHERE one = 1")
	if err := s.execute(ctx, strings.Join(statements, "; ")); err != nil {
		return nil, err
	}
	return Open(ctx, s.options)
}

// Drop removes the schema and all that is in it.
func (s *Scratch) Drop(ctx context.Context) error {
	return s.execute(ctx, `DROP SCHEMA IF EXISTS "`+s.options.Schema+`" CASCADE`)
}

func (s *Scratch) execute(ctx context.Context, statement string) error {
	d, err := database.Open(ctx, s.options.Options)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Pool.Exec(ctx, statement)
	return d.Failure("cockroach.Scratch", err)
}

// Measure returns the median time of n commits, each of one row, on an empty
// store, by the clock given.
func Measure(ctx context.Context, s geoconfig.Store, n int, now func() time.Time) (time.Duration, error) {
	_, err := s.Apply(ctx, geoconfig.Batch{Key: "measure", Cluster: &geoconfig.Cluster{ID: "scratch", Generation: 1}})
	if err != nil {
		return 0, err
	}
	var times []time.Duration
	for i := range n {
		start := now()
		name := fmt.Sprintf("s%d", i)
		if _, err := s.Apply(ctx, geoconfig.Batch{Key: name, Sites: []geoconfig.Site{{Name: ids.Site(name)}}}); err != nil {
			return 0, err
		}
		times = append(times, now().Sub(start))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
