package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// settle waits until everything is whole again, and has every client write and
// read everything once more.
func (w *world) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), wholeBound)
	defer cancel()
	if err := await(ctx, "all copies to be normal and equal", func() error { return w.whole(ctx) }); err != nil {
		w.problem("CONV: %v; %s", err, w.standings())
		return
	}
	w.trace.say("world", "is whole")
	if err := await(ctx, "all clients to have sent what crashes left", w.sent); err != nil {
		w.problem("REPLAY: %v", err)
		return
	}
	var last sync.WaitGroup
	for _, c := range w.clients {
		last.Go(func() { w.load.Rewrite(ctx, c.actor) })
	}
	last.Wait()
	for _, c := range w.clients {
		last.Go(func() { w.load.Everything(ctx, c.actor) })
	}
	last.Wait()
	for i, c := range w.clients[:2] {
		last.Go(func() { w.burst.look(ctx, w.burst.worker(c, fmt.Sprint("look", i), w.chance)) })
	}
	last.Wait()
}

// standings tells how every copy stands.
func (w *world) standings() string {
	var out []string
	for _, row := range w.config.rows() {
		for _, m := range w.machines() {
			if s := m.now(); s != nil {
				if st, ok, err := m.stand(s, row.ID); ok || err != nil {
					st.Row = nil
					out = append(out, fmt.Sprintf("slice %d at %s: %+v %v", row.ID, m.name, st, err))
				}
			}
		}
	}
	return strings.Join(out, "; ")
}

// whole answers what keeps the copies from being normal and equal.
func (w *world) whole(ctx context.Context) error {
	rows, err := w.config.store.Read(ctx, geoconfig.Query{Slices: 1000})
	if err != nil {
		return err
	}
	for _, row := range rows.Slices {
		if n := len(row.Normals()); n != len(row.Members) || n < min(row.Policy.Level, len(w.machines())) {
			return fmt.Errorf("slice %d: %d normal members of %d, want %d: %+v", row.ID, n, len(row.Members), row.Policy.Level, row)
		}
		if err := w.equal(row); err != nil {
			return err
		}
	}
	return nil
}

// equal compares the members' copies.
func (w *world) equal(row geoconfig.SliceRow) error {
	first, serial := "", ids.Serial(0)
	for _, m := range w.machines() {
		s := m.now()
		if _, member := row.Member(m.id()); !member {
			continue
		}
		if s == nil {
			return fmt.Errorf("%s is not there", m.name)
		}
		at, sum, err := s.CopySum(row.ID)
		switch {
		case err != nil:
			return err
		case first == "":
			first, serial = sum, at
		case at != serial || sum != first:
			return fmt.Errorf("slice %d: %s has %s at serial %d, another %s at %d", row.ID, m.name, sum, at, first, serial)
		}
	}
	return nil
}

// sent answers what keeps a client from having sent everything.
func (w *world) sent() error {
	for _, c := range w.clients {
		mounted, _ := c.now()
		if mounted == nil {
			return fmt.Errorf("%s is not there", c.name)
		}
		if files, bytes := mounted.Unsent(); files > 0 {
			return fmt.Errorf("%s has %d files with %d bytes to send", c.name, files, bytes)
		}
	}
	for _, c := range w.clients {
		if mounted, _ := c.now(); mounted != nil && c.lives > 1 && !c.restarted() {
			return fmt.Errorf("%s is not used yet", c.name)
		}
	}
	return nil
}
