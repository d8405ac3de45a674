package drilling

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/where"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/drill"
)

const (
	dirMode, fileMode = 0o700, 0o600
	// recoverLook is how often a waiting Probe looks whether its streams go on.
	recoverLook = 20 * time.Millisecond
)

// Opener makes a client that stands at a site; empty: at none.
type Opener func(ctx context.Context, site ids.Site) (Files, error)

// Probe writes and reads small records from several sites at once, and measures for how
// long nothing was answered. Its methods are for one goroutine.
type Probe struct {
	id      string
	dir     string // where the tree has its directory
	name    string // of its directory there
	who     mount.Caller
	open    Opener
	now     func() time.Duration
	streams []*stream
	clients []Files

	stop context.CancelFunc // of the streams that run; nil: none do
	work sync.WaitGroup
}

// OpenProbe makes a directory below dir, in the same slice, with a file for each site. The
// caller closes the probe, whatever the error. Now is a clock that goes on in suspension.
func OpenProbe(ctx context.Context, open Opener, now func() time.Duration, id, dir string, sites []ids.Site) (*Probe, error) {
	p := &Probe{id: id, dir: dir, name: "drill-" + id, open: open, now: now}
	for i, site := range sites {
		s := &stream{id: id, number: i, site: site, path: path.Join(dir, p.name, string(site)), who: p.who, now: now}
		var err error
		if s.writer, err = p.client(ctx, site); err != nil {
			return p, err
		}
		if s.reader, err = p.client(ctx, site); err != nil {
			return p, err
		}
		if i == 0 {
			err = p.makeDir(ctx, s.writer)
		}
		if err == nil {
			err = p.makeFile(ctx, s)
		}
		if err != nil {
			return p, err
		}
		p.streams = append(p.streams, s)
	}
	return p, nil
}

// client opens a client that Close closes.
func (p *Probe) client(ctx context.Context, site ids.Site) (Files, error) {
	f, err := p.open(ctx, site)
	if err == nil {
		p.clients = append(p.clients, f)
	}
	return f, err
}

// makeDir makes the directory, in the slice of the one above it.
func (p *Probe) makeDir(ctx context.Context, f Files) error {
	above, err := find(ctx, f, p.who, path.Join(p.dir, cue.KeepTogether.String()))
	if err != nil {
		return err
	}
	defer f.Forget(above, 1)
	e, err := f.Mkdir(ctx, p.who, above, p.name, dirMode)
	if err != nil {
		return fault.Errorf(fault.KindOf(err), "drilling.makeDir", p.dir, "the probe cannot make its directory there: name one that the user of the contact file may write to: %v", err)
	}
	f.Forget(e.Node, 1)
	return nil
}

// makeFile makes the file of a stream.
func (p *Probe) makeFile(ctx context.Context, s *stream) error {
	dir, err := find(ctx, s.writer, p.who, path.Join(p.dir, p.name))
	if err != nil {
		return err
	}
	defer s.writer.Forget(dir, 1)
	e, o, err := s.writer.Create(ctx, p.who, dir, string(s.site), fileMode, mount.OpenWrite|mount.OpenExclusive)
	if err != nil {
		return err
	}
	s.node = e.Node // stays known until the client is closed
	err = s.writer.Fsync(ctx, p.who, e.Node, o.Handle, false)
	s.writer.Release(e.Node, o.Handle, 0, false)
	return err
}

// find looks up a path, which is there.
func find(ctx context.Context, f Files, who mount.Caller, name string) (mount.Inode, error) {
	e, err := f.Walk(ctx, who, mount.Root, name)
	if err == nil && e.Node == 0 {
		err = fault.E(fault.NotFound, "drilling.find", name, "there is no such path in the tree")
	}
	return e.Node, err
}

// Where returns where a path of the tree is.
func Where(ctx context.Context, f Files, name string) (where.View, error) {
	var who mount.Caller
	node, err := find(ctx, f, who, name)
	if err != nil {
		return where.View{}, err
	}
	defer f.Forget(node, 1)
	buf := make([]byte, 64<<10) // as long as a value may be
	n, err := f.GetXattr(ctx, who, node, where.Attribute, buf)
	if err != nil {
		return where.View{}, err
	}
	return where.Parse(name, buf[:n])
}

// Start begins to write and to read.
func (p *Probe) Start(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	for _, s := range p.streams {
		now := p.now()
		s.writes.last, s.reads.last = now, now
		p.work.Go(func() { s.write(ctx) })
		p.work.Go(func() { s.read(ctx) })
	}
}

// Mark begins the measurement of the drill.
func (p *Probe) Mark() {
	for _, s := range p.streams {
		s.mark(p.now())
	}
}

// Waits returns the longest time that a stream has waited up to now.
func (p *Probe) Waits() (longest time.Duration) {
	for _, s := range p.streams {
		longest = max(longest, s.waits(p.now()))
	}
	return longest
}

// Wrong returns the first error that is no pause.
func (p *Probe) Wrong() error {
	for _, s := range p.streams {
		if err := s.failed(); err != nil {
			return err
		}
	}
	return nil
}

// Recover waits until all streams were answered after now, or an error is no pause. It
// reports whether they were before ctx ended.
func (p *Probe) Recover(ctx context.Context) bool {
	began := p.now()
	for p.Wrong() == nil {
		left := 0
		for _, s := range p.streams {
			if !s.answeredSince(began) {
				left++
			}
		}
		if left == 0 {
			return true
		}
		if !contact.Pause(ctx, recoverLook) {
			return false
		}
	}
	return false
}

// Stop ends the streams and returns what they measured, in the order of the sites.
func (p *Probe) Stop() []drill.Stream {
	out := make([]drill.Stream, len(p.streams))
	for i, s := range p.streams {
		out[i] = s.result(p.now())
	}
	if p.stop != nil {
		p.stop()
		p.work.Wait()
	}
	for i, s := range p.streams { // what was acknowledged meanwhile counts, too
		out[i].Acknowledged = s.acked
	}
	return out
}

// Verify reads all that was acknowledged over a new connection, and puts into the results
// what is missing or wrong.
func (p *Probe) Verify(ctx context.Context, results []drill.Stream) error {
	f, err := p.client(ctx, "")
	if err != nil {
		return err
	}
	for i, s := range p.streams {
		if results[i].Lost, err = s.verify(ctx, f); err != nil {
			return fault.Errorf(fault.KindOf(err), "drilling.Verify", s.path, "what was acknowledged cannot be read back: %v", err)
		}
	}
	return nil
}

// Remove takes the probe's files away.
func (p *Probe) Remove(ctx context.Context) error {
	if len(p.clients) == 0 {
		return nil
	}
	f := p.clients[len(p.clients)-1]
	above, err := find(ctx, f, p.who, p.dir)
	if err != nil {
		return err
	}
	defer f.Forget(above, 1)
	dir, err := find(ctx, f, p.who, path.Join(p.dir, p.name))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Forget(dir, 1)
	var failed []error
	for _, s := range p.streams {
		failed = append(failed, f.Unlink(ctx, p.who, dir, string(s.site)))
	}
	if err := errors.Join(append(failed, f.Rmdir(ctx, p.who, above, p.name))...); err != nil {
		return fmt.Errorf("removing %s: %w", path.Join(p.dir, p.name), err)
	}
	return nil
}

// Close ends the probe and its clients. What they have not sent is lost to nobody: it was
// not acknowledged.
func (p *Probe) Close() error {
	if p.stop != nil {
		p.stop()
		p.work.Wait()
	}
	var failed []error
	for _, f := range p.clients {
		failed = append(failed, f.Close())
	}
	return errors.Join(failed...)
}
