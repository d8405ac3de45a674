package database

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/cockroach-go/v2/crdb"

	"cartwheel.dev/geo-config/fault"
)

// Waits between the attempts of a transaction double from the first to the last,
// and each is shortened at random by up to a half.
const (
	// maxRestarts bounds the attempts of one transaction.
	maxRestarts = 100

	firstWait = 2 * time.Millisecond
	lastWait  = 500 * time.Millisecond
)

// Retry runs a transaction, from its beginning to its commit, until it has an
// outcome. work has to find out by itself whether an attempt before it came
// through.
//
// crdb restarts it on a serialization failure. Its ExecuteTx is not used: that
// restarts within the transaction, by a savepoint, and PostgreSQL keeps the old
// snapshot there, so that each restart would fail as the first one did.
func (d *Database) Retry(caller context.Context, op fault.Op, patience time.Duration, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(caller, patience)
	defer cancel()
	ctx = crdb.WithMaxRetries(ctx, maxRestarts)
	var last error // what the newest attempt met
	attempts := 0
	attempt := func(ctx context.Context, _ ...any) error {
		if attempts++; attempts > 1 {
			if err := Pause(ctx, attempts-2); err != nil {
				return err
			}
		}
		last = d.attempt(ctx, work)
		return last
	}
	for {
		err := crdb.ExecuteCtx(ctx, attempt)
		again := IsUnsettled(err) || MustRestart(err)
		if again && ctx.Err() == nil && d.life.Err() == nil && attempts <= maxRestarts {
			continue
		}
		return d.outcome(caller, op, last)
	}
}

// attempt bounds one attempt.
func (d *Database) attempt(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := d.Bound(ctx)
	defer cancel()
	return work(ctx)
}

// outcome gives the error of a call its kind. Why the caller or the store ended
// it says more than what the last attempt met.
func (d *Database) outcome(caller context.Context, op fault.Op, last error) error {
	switch {
	case last == nil:
		return nil
	case isOurs(last):
		return last
	case d.life.Err() != nil:
		return d.Closed(op)
	case caller.Err() != nil:
		return fault.Wrap(fault.Canceled, op, d.where, caller.Err())
	}
	return failure(op, d.where, last)
}

// Pause waits before the attempt after the n-th repetition.
func Pause(ctx context.Context, n int) error {
	wait := lastWait
	if n < 8 {
		wait = min(wait, firstWait<<n)
	}
	wait -= time.Duration(rand.Int64N(int64(wait)/2 + 1))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
