package experiments

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// sliceMember is one member of a slice, as `cartwheel slice ls` shows it.
type sliceMember struct {
	Node  ids.Node `json:"node"`
	Site  string   `json:"site"`
	State string   `json:"state"`
}

// sliceState is what `cartwheel slice ls` shows of one slice.
type sliceState struct {
	ID      ids.Slice     `json:"id"`
	Active  sliceMember   `json:"active"`
	Members []sliceMember `json:"members"`
	Serving *bool         `json:"serving"` // nil: its active did not answer
	Objects uint64        `json:"objects"`
	Commit  uint64        `json:"commit"` // serial of the last committed entry
}

// normalState is the state of a member that has every committed operation.
const normalState = "N"

// isWhole reports whether the slice serves with so many members, all of them normal.
func (s sliceState) isWhole(level int) bool {
	return s.Serving != nil && *s.Serving && len(s.Members) == level &&
		!slices.ContainsFunc(s.Members, func(m sliceMember) bool { return m.State != normalState })
}

// sliceOf is the slice that holds what lies at a path of a mount.
func sliceOf(path string) (ids.Slice, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fault.FromOS("experiments.sliceOf", path, err)
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fault.E(fault.Other, "experiments.sliceOf", path, "has no inode number")
	}
	return ids.Object(s.Ino).Slice(), nil
}

// slices asks the nodes that answer for the states of all slices.
func (p place) slices(ctx context.Context) ([]sliceState, error) {
	out, err := p.run(ctx, p.programs.Cartwheel, "--json", "--contact", p.contact, "slice", "ls")
	if err != nil {
		return nil, err
	}
	var all []sliceState
	return all, fault.Wrap(fault.Other, "experiments.slices", "cartwheel slice ls", json.Unmarshal(out, &all))
}

// slice asks the nodes that answer for the state of a slice.
func (p place) slice(ctx context.Context, id ids.Slice) (sliceState, error) {
	all, err := p.slices(ctx)
	if err != nil {
		return sliceState{}, err
	}
	for _, s := range all {
		if s.ID == id {
			return s, nil
		}
	}
	return sliceState{}, fault.Errorf(fault.NotFound, "experiments.slice", "cartwheel slice ls", "does not list slice %d", id)
}

// slicePoll is the time between two questions for the state of a slice: the least time
// that can be told apart.
const slicePoll = 100 * time.Millisecond

// await asks for the state of a slice again and again, until holds was true of it for as
// long as long says. It returns since when holds is true, and false where limit passed
// before. A question that fails counts as not true: its node may be away.
func (p place) await(ctx context.Context, id ids.Slice, long, limit time.Duration, holds func(sliceState) bool) (since time.Time, ok bool, err error) {
	return lasting(ctx, long, limit, func(ctx context.Context) bool {
		s, err := p.slice(ctx, id)
		return err == nil && holds(s)
	})
}

// awaitAll is await for all slices at once.
func (p place) awaitAll(ctx context.Context, long, limit time.Duration, holds func(sliceState) bool) (since time.Time, ok bool, err error) {
	return lasting(ctx, long, limit, func(ctx context.Context) bool {
		all, err := p.slices(ctx)
		return err == nil && !slices.ContainsFunc(all, func(s sliceState) bool { return !holds(s) })
	})
}

// lasting looks again and again, until what it looks for was true for as long as long
// says. It returns since when it is true, and false where limit passed before.
func lasting(ctx context.Context, long, limit time.Duration, holds func(context.Context) bool) (since time.Time, ok bool, err error) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		is := holds(ctx)
		switch {
		case ctx.Err() != nil:
			return since, false, ctx.Err()
		case !is:
			since = time.Time{}
		case since.IsZero():
			since = time.Now() // what is said now may have been so a little longer
		}
		if !since.IsZero() && time.Since(since) >= long {
			return since, true, nil
		}
		if err := sleep(ctx, slicePoll); err != nil {
			return since, false, err
		}
	}
	return since, false, nil
}

// hostOf is the name of the host with a node.
func (b *bed) hostOf(id ids.Node) (string, error) {
	for _, n := range b.Nodes() {
		if n.ID == id {
			return n.Host, nil
		}
	}
	return "", fault.E(fault.NotFound, "experiments.hostOf", string(id), "is no node of this lab")
}
