package server

import (
	"context"
	"maps"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/failback"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/placement"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// maintainEvery is how often a node looks after what it is responsible for.
const maintainEvery = 250 * time.Millisecond

// maintained is what the maintenance goroutine remembers between two looks. No
// other goroutine touches it.
type maintained struct {
	// failedSince is when members were first seen failed.
	failedSince map[failedMember]time.Duration
	unsaved     fault.Kind // why the last checkpoint failed
}

// maintain looks after the node's part until ctx ends: checkpoints, its own row,
// the root slice of a new cluster, and missing members.
func (s *Server) maintain(ctx context.Context) {
	home := failback.New(failback.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Leading: s.leading, Row: s.directory.Slice, Node: s.directory.Node,
		Connected: func(id ids.Node) bool { return s.host.Connected(string(id), wire.Operation) },
		HandOver:  s.handOverTo, Clock: s.clock, Logger: s.log,
	})
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.store.NeedsCheckpoint() {
			s.checkpoint(ctx)
		}
		if _, ok := s.directory.Slice(ids.RootSlice); !ok && s.directory.Away().IsZero() {
			s.slices.MakeRoot(ctx)
		}
		home.Step(ctx)
		if n%4 == 0 {
			s.refill(ctx)
		}
		if n%40 == 0 {
			s.refreshRow(ctx)
		}
	}
}

// checkpoint saves the slices' states and trims the journal.
func (s *Server) checkpoint(ctx context.Context) {
	var states []replog.State
	var mark replog.Mark
	err := s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		s.loop.EachSlice(func(id ids.Slice) {
			st := replog.State{Slice: id}
			status, ok := core.Status(id)
			if !ok || status.Row == nil {
				return
			}
			st.Row = status.Row
			_, member := st.Row.Member(s.id)
			if c, incomplete := core.Incomplete(id); incomplete {
				st.Copying = &c
			} else if st.Gone = !member; member {
				st.Snapshot, st.Known = s.loop.Snapshot(id)
			}
			states = append(states, st)
		})
		mark = s.ledger.Mark()
	})
	if err == nil {
		err = s.ledger.Checkpoint(ctx, mark, states)
	}
	if err != nil && ctx.Err() == nil && fault.KindOf(err) != s.kept.unsaved {
		s.log.Error("a checkpoint failed: it is tried again", "error", err)
	}
	s.kept.unsaved = fault.KindOf(err)
}

// refreshRow tells the configuration store how full the node is.
func (s *Server) refreshRow(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.putNode(call); err != nil && ctx.Err() == nil {
		s.log.Debug("the node's row could not be refreshed", "error", err)
	}
}

// refill looks after the slices that this node leads: one that is full is
// closed, one that has fewer members than its policy says gets another where a
// node can take it, and a member that failed for too long is replaced.
func (s *Server) refill(ctx context.Context) {
	if !s.directory.Away().IsZero() {
		return
	}
	candidates := s.slices.Candidates()
	forgetFailures(s.kept.failedSince, s.id, s.directory.Slices())
	for _, row := range s.leading() {
		if ctx.Err() != nil {
			return
		}
		change, ok := s.wanted(row, candidates)
		if !ok {
			continue
		}
		s.loop.Do(func(core *replica.Node, now replica.Time) {
			if kind := core.Reconfigure(now, row.ID, change); kind != fault.None && kind != fault.Again {
				s.log.Debug("a slice could not be changed now", "slice", uint32(row.ID), "why", kind.String())
			}
		})
	}
}

// wanted says what to change in a slice's row, if anything.
func (s *Server) wanted(row geoconfig.SliceRow, candidates []placement.Candidate) (replica.Change, bool) {
	if !row.Closed && s.isFull(row.ID) {
		return replica.Change{Close: true}, true
	}
	if dead, ok := s.longFailed(row); ok {
		kept := row.Clone()
		kept.Members = slices.DeleteFunc(kept.Members, func(m geoconfig.Member) bool { return m.Node == dead })
		others := slices.DeleteFunc(slices.Clone(candidates), func(c placement.Candidate) bool { return c.Node == dead })
		if add, ok := s.missingMember(kept, others); ok {
			return replica.Change{Add: []geoconfig.Member{add}, Remove: []ids.Node{dead}}, true
		}
	}
	if add, ok := s.missingMember(row, candidates); ok {
		return replica.Change{Add: []geoconfig.Member{add}}, true
	}
	return replica.Change{}, false
}

// maxSliceBytes closes a slice to creation, as its number of objects does.
const maxSliceBytes = 64 << 30

func (s *Server) isFull(id ids.Slice) bool {
	state, err := tree.ReadState(operate.Committed(s.store.Meta(), id))
	return err == nil && id != ids.RootSlice && (state.Objects >= s.config.MaxSliceObjects || state.Stored >= maxSliceBytes)
}

// longFailed returns a member that has been failed for longer than the limit,
// as far as this process has seen.
func (s *Server) longFailed(row geoconfig.SliceRow) (ids.Node, bool) {
	now := s.clock()
	for _, m := range row.Members {
		key := failedMember{row.ID, m.Node}
		if m.State != geoconfig.Failed {
			delete(s.kept.failedSince, key)
			continue
		}
		since, seen := s.kept.failedSince[key]
		if !seen {
			s.kept.failedSince[key] = now
		} else if now-since > s.config.FailedAfter {
			return m.Node, true
		}
	}
	return "", false
}

// forgetFailures drops what was noted of members that are in no slice of this
// node's any more. A slice that the node only does not lead at this moment stays.
func forgetFailures(since map[failedMember]time.Duration, self ids.Node, rows []geoconfig.SliceRow) {
	listed := map[failedMember]bool{}
	for i := range rows {
		for _, m := range rows[i].Members {
			listed[failedMember{rows[i].ID, m.Node}] = rows[i].Active == self
		}
	}
	maps.DeleteFunc(since, func(m failedMember, _ time.Duration) bool { return !listed[m] })
}

// failedMember names a member of a slice.
type failedMember struct {
	slice ids.Slice
	node  ids.Node
}

// missingMember picks the member that a slice lacks.
func (s *Server) missingMember(row geoconfig.SliceRow, candidates []placement.Candidate) (geoconfig.Member, bool) {
	if len(row.Members) >= row.Policy.Level {
		return geoconfig.Member{}, false
	}
	var members []ids.Node
	for _, m := range row.Members {
		members = append(members, m.Node)
	}
	policy := row.Policy
	policy.Level = len(members) + 1
	wanted := placement.Extend(policy, candidates, members, row.Active, s.survey.Distance)
	if len(wanted) == len(members) {
		return geoconfig.Member{}, false
	}
	node, ok := s.directory.Node(wanted[len(wanted)-1])
	return geoconfig.Member{Node: node.ID, State: geoconfig.Migrating, Incarnation: node.Incarnation}, ok
}
