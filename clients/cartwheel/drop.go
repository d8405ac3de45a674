package cartwheel

import (
	"context"
	"os"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/node/logattr"
)

// mayDropCaches reports whether a caller may empty the caches of the whole mount:
// root and the user whose process serves it.
func mayDropCaches(who mount.Caller) bool {
	own := os.Geteuid()
	return who.UID == 0 || own < 0 || who.UID == uint32(own) // below 0: this system has no such numbers
}

// DropCaches forgets everything that can be asked for again. What is dirty is
// committed first, as far as that goes until the caller has enough.
func (c *Client) DropCaches(caller context.Context) {
	ctx, cancel := context.WithTimeout(trace.Carry(c.life.ctx, caller), c.opt.OpTimeout)
	defer cancel()
	defer context.AfterFunc(caller, cancel)()
	if err := c.engine.FlushAll(ctx); err != nil {
		c.opt.Logger.Warn("not everything could be committed before the caches were dropped", logattr.Err(err))
	}
	_ = c.deferred.PublishEverything(ctx) // their closes tell
	c.names.Clear()
	c.resolver.Dropped()
	c.engine.DropCaches()
	c.revocation.DropAll(c.opt.Clock())
}
