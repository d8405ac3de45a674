package cartwheel

import (
	"context"
	"runtime"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// readLate is how much later a clock may be read than the rest of a lease: two ends
// of one lease that are computed so are taken to be the same.
const readLate = time.Millisecond

// asksAgain reports whether a kernel is at work here that looks the names up anew
// and asks once more where a rename answers ESTALE. Linux does, once.
func (c *Client) asksAgain() bool { return runtime.GOOS == "linux" && c.kernel.IsMounted() }

// renameShown renames what the kernel was shown. Where the names mean something
// else by now, it has the kernel look them up again and ask once more; where that
// was in vain too, whatever they mean is renamed, and the kernel, which moves
// what it was shown, looks them up afterwards. Only a directory is never replaced
// so: the kernel would let nobody make a name in the one that it was shown.
func (c *Client) renameShown(ctx context.Context, who mount.Caller, from, to inodes.Name, r renaming) error {
	run := func() error {
		return calls.AsCaller(who, func(p *pb.Principal) error {
			r.p = p
			return c.rename(ctx, r)
		})
	}
	if !c.asksAgain() {
		return run()
	}
	this := inodes.Rename{Name: r.name, NewName: r.newName}
	refused := c.meant.WasRefused(who.PID, this)
	exchange := r.flags&mount.RenameExchange != 0
	source, target := c.meant.Pair(from, to)
	r.source, r.target = c.nodes.ObjectAt(source.Child), c.nodes.ObjectAt(target.Child)
	err := run()
	if fault.Is(err, fault.Stale) && !calls.IsUnknown(err) && (r.source != 0 || r.target != 0) {
		defer c.lookAnew([]inodes.Name{from, to}, []mount.Inode{source.Child, target.Child})
		if !refused {
			c.meant.Refuse(who.PID, this)
			return err
		}
		if r.source = 0; exchange || !c.nodes.IsDir(target.Child) {
			r.target = 0
		}
		err = run()
	}
	if err == nil {
		c.meant.Move(from, to, exchange)
		c.follow(to, source, r.to, r.newName)
		if exchange {
			c.follow(from, target, r.dir, r.name)
		}
	}
	return err
}

// follow notes that the kernel believes a name that it moved for as long as it
// believed the old one. Where no lease covers the new one for so long, it is to
// ask instead.
func (c *Client) follow(at inodes.Name, means inodes.Meaning, dir ids.Object, name string) {
	left := c.names.Means(dir, name, c.nodes.ObjectAt(means.Child))
	now := c.opt.BootTime()
	if means.Child == 0 || means.Until <= now {
		return
	}
	if now+left+readLate < means.Until || !c.nodes.MayCache(at.Dir, at.Name, means.Child, now, means.Until) {
		c.lookAnew([]inodes.Name{at}, []mount.Inode{means.Child})
	}
}

// lookAnew has the kernel look names up that may mean something else than it was
// shown. An open of what it was shown is refused until it has heard of it.
func (c *Client) lookAnew(names []inodes.Name, children []mount.Inode) {
	out := c.nodes.LookAnew(names, children)
	c.kernel.Tell(&out, true, nil) // it has the directories locked until it is answered
}
