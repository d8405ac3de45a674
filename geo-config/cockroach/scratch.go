package cockroach

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"cartwheel.dev/geo-config/fault"
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
	if err := migrateTables(ctx, o); err != nil {
		// The error that matters is the first one.
		_ = s.Drop(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

// Open empties the tables and opens a store on them.
func (s *Scratch) Open(ctx context.Context) (*Store, error) {
	var statements []string
	for _, table := range []string{"cluster", "sites", "nodes", "slices", "users", "node_sites", "slice_members", "audit", "batches"} {
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
	const op fault.Op = "cockroach.Scratch"
	pool, where, err := connect(s.options.defaults())
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, statement); err != nil {
		return failure(op, where, fmt.Errorf("schema %s: %w", s.options.Schema, err))
	}
	return nil
}
