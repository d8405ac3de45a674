package operate

import (
	"bytes"
	"log/slog"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// hold tells the core that an entry's chunks are here, or has them fetched.
func (l *Loop) hold(e *replica.Entry) {
	if s := l.slices[e.Slice]; s != nil && s.proposed[e.Serial] != nil {
		return // proposed here: looked for before
	}
	missing := l.inline.missing(e.Slice, e.Chunks)
	if len(missing) == 0 {
		l.in.put(event{kind: eventHeld, slice: e.Slice, serial: e.Serial, epoch: e.Epoch})
		return
	}
	l.o.Helpers.Fetch(e.Slice, e.Serial, e.Epoch, missing)
}

// held passes on that an entry's chunks are here now.
func (l *Loop) held(id ids.Slice, e replica.EntryID) {
	l.o.Core.Held(l.now, id, e.Serial, e.Epoch)
	s := l.slices[id]
	if s == nil {
		return
	}
	if _, noted := s.unheld[e]; !noted {
		return
	}
	delete(s.unheld, e)
	b := l.o.Meta.NewBatch()
	err := replog.DropUnheld(b, id, e.Serial)
	if err == nil {
		err = b.Commit()
	} else {
		b.Abandon()
	}
	if err != nil {
		l.fail(err)
	}
}

// noteUnheld notes an entry that is applied before its chunks are here, as a
// member does whom the others do not wait for. The core remembers it while this
// node runs; another life learns it from the note, and has the chunks fetched
// before it counts as one that has them.
func (l *Loop) noteUnheld(b *meta.Batch, s *slice, e *replica.Entry) error {
	if len(e.Chunks) == 0 || !l.o.Core.Awaits(s.id, e.Serial, e.Epoch) {
		return nil
	}
	s.unheld[replica.EntryID{Serial: e.Serial, Epoch: e.Epoch}] = struct{}{}
	return replog.SaveUnheld(b, e)
}

// Restored tells what a start found of a slice, and has the chunks fetched that
// this node lacks: of entries in the journal that it has not applied, and of
// those that it applied without. Before Run.
func (l *Loop) Restored(r *replica.Restored) error {
	s := l.slice(r.Row.ID)
	s.applied, s.taken = r.Applied, r.Applied
	s.pub.Applied.Store(uint64(s.applied))
	if !r.Incomplete {
		err := replog.EachUnheld(l.o.Meta, s.id, func(e replica.EntryID, addresses []byte) {
			s.unheld[e] = struct{}{}
			l.hold(&replica.Entry{Slice: s.id, Serial: e.Serial, Epoch: e.Epoch, Chunks: bytes.Clone(addresses)})
		})
		if err != nil {
			return err
		}
	}
	for _, e := range r.Entries {
		if e.Serial > r.Applied && len(e.Chunks) > 0 {
			l.hold(e)
		}
	}
	return nil
}

// sayLacking logs of how many writes a node lacks content that leads a slice, when it
// takes the lead and when a node leaves the slice that may have had the content. This
// happens only where the slice has a time to coherence. before is the row until now.
func sayLacking(logger *slog.Logger, writes int, was replica.RoleKind, before, row *geoconfig.SliceRow) {
	if writes == 0 {
		return
	}
	if was != replica.RoleLeading {
		for _, m := range row.Members {
			if m.State == geoconfig.Failed {
				logger.Warn("content is away with a failed node, and its files answer ESTALE: bring the node back",
					logattr.Slice(row.ID), logattr.Node(m.Node), slog.Int("writes", writes))
			}
		}
	}
	if before == nil {
		return
	}
	for _, m := range before.Members {
		if _, stays := row.Member(m.Node); !stays {
			logger.Error("a node left the slice that may have had the only copy of content: its files answer ESTALE until they are written again",
				logattr.Slice(row.ID), logattr.Node(m.Node), slog.Int("writes", writes))
		}
	}
}

// takeNotes has the chunks fetched that the source of a copy lacks too, by its notes
// among the rows. On the loop's goroutine.
func (l *Loop) takeNotes(s *slice) error {
	var lacking []replica.EntryID
	var entries []*replica.Entry
	err := replog.EachUnheld(l.o.Meta, s.id, func(e replica.EntryID, addresses []byte) {
		if _, noted := s.unheld[e]; noted {
			return
		}
		s.unheld[e] = struct{}{}
		lacking = append(lacking, e)
		entries = append(entries, &replica.Entry{Slice: s.id, Serial: e.Serial, Epoch: e.Epoch, Chunks: bytes.Clone(addresses)})
	})
	if err != nil {
		return err
	}
	l.o.Core.Lacks(s.id, lacking)
	for _, e := range entries {
		l.hold(e)
	}
	return nil
}
