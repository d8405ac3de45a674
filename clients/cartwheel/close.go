package cartwheel

import (
	"errors"
	"path"

	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Unsaved lists the files with writes, or with names, that are not at the nodes,
// and those of which writes were lost without a program having been told.
func (c *Client) Unsaved() []Unsaved {
	var out []Unsaved
	seen := map[ids.Object]bool{}
	add := func(u Unsaved) {
		if !seen[u.Object] {
			seen[u.Object] = true
			out = append(out, u)
		}
	}
	for _, u := range c.engine.Unsaved() {
		add(Unsaved{Object: u.Object, Bytes: u.Bytes, Name: u.Name, Err: u.Err})
	}
	for _, f := range c.deferred.Which(deferred.Every) {
		b := inodes.Opening{Object: f.Object, Dir: f.Dir, Name: f.Name}
		add(Unsaved{Object: f.Object, Name: func() string { return c.opens.Path(&b) }})
	}
	for _, op := range c.alone.Waiting() {
		add(Unsaved{Object: op.Touches[len(op.Touches)-1], Name: func() string { return path.Join(c.names.Path(op.Dir), op.Name) }})
	}
	for _, o := range c.recovery.Waiting() {
		add(Unsaved{Object: o})
	}
	return out
}

// Pending is how many operations were done here that their actives have not heard
// of.
func (c *Client) Pending() int { return c.deferred.Len() + c.alone.Len() }

// Unsent is how many files have writes that are still sent, and how many bytes.
func (c *Client) Unsent() (files int, bytes uint64) {
	for _, u := range c.Unsaved() {
		if u.Err == nil || u.Bytes > 0 {
			files++
			bytes += u.Bytes
		}
	}
	return files, bytes
}

// Close commits what was written, gives up sessions and with them leases and
// locks, and joins all goroutines. It goes on while something gets to the nodes,
// and for FlushTimeout more. The error lists the files that were not saved. It is
// idempotent.
func (c *Client) Close() error {
	c.life.closing.Do(func() {
		ctx, cancel := c.limits.WhileProgress(c.opt.FlushTimeout)
		_ = c.engine.FlushAll(ctx)            // what is left is listed
		_ = c.deferred.PublishEverything(ctx) // likewise
		_ = c.engine.FlushAll(ctx)            // likewise: of files that were told just now
		lost := c.lost(c.Unsaved())
		cancel()
		c.life.stop()
		_ = c.engine.Close(c.life.ctx) // likewise
		c.life.closed = errors.Join(lost, c.end())
	})
	return c.life.closed
}

// Abort ends the Client as the death of its process would: nothing more is sent,
// and what the write journal has stays in it. It joins all goroutines.
func (c *Client) Abort() {
	c.life.closing.Do(func() {
		c.life.stop()
		_ = c.engine.Close(c.life.ctx) // what is left is in the journal, or lost
		c.life.closed = c.end()
	})
}

// abandon ends a Client that never opened. What a crash left behind stays in the
// journal.
func (c *Client) abandon() {
	c.life.stop()
	if c.engine != nil {
		_ = c.engine.Close(c.life.ctx) // nothing was written
	}
	_ = c.end() // the caller hears why it did not open
}

// Abandoned is the error of a process that ends without waiting for Close.
func (c *Client) Abandoned() error {
	if err := c.lost(c.Unsaved()); err != nil {
		return err
	}
	return fault.E(fault.Interrupted, "cartwheel.Abandoned", "", "ended before everything was sent")
}

// lost is the error that says what was not saved, and what becomes of it.
func (c *Client) lost(list []Unsaved) error {
	for i := range list {
		if u := &list[i]; u.Name == nil {
			u.Name = func() string { return c.names.Path(u.Object) }
		}
	}
	keptIn := ""
	if c.engine.Journals() {
		keptIn = c.opt.CacheDir
	}
	return unsavedError(list, keptIn)
}

// end joins all goroutines and closes what Open opened.
func (c *Client) end() error {
	c.kernel.Unmount()
	c.life.join()
	c.sessions.Close()
	c.router.Close()
	err := c.cluster.Close()
	if c.recovery != nil {
		err = errors.Join(err, c.recovery.Close())
	}
	return err
}
