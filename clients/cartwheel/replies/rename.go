package replies

import (
	"runtime"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// readLate is how much later a clock may be read than the rest of a lease: two ends
// of one lease that are computed so are taken to be the same.
const readLate = time.Millisecond

// Rename is a rename that a kernel asks for.
type Rename struct {
	PID         uint32
	From, To    inodes.Name
	Dir, NewDir ids.Object // of From and To
	Exchange    bool
}

// asksAgain reports whether a kernel is at work here that looks the names up anew
// and asks once more where a rename answers ESTALE. Linux does, once.
func (b *Builder) asksAgain() bool { return runtime.GOOS == "linux" && b.opt.Kernel.IsMounted() }

// Rename renames what the kernel was shown. run does it, if the names mean source
// and target; 0: whatever they mean. Where the names mean something else by now,
// Rename has the kernel look them up again and ask once more; where that was in vain
// too, whatever they mean is renamed, and the kernel, which moves what it was shown,
// looks them up afterwards. Only a directory is never replaced so: the kernel would
// let no process make a name in the one that it was shown.
func (b *Builder) Rename(r Rename, run func(source, target ids.Object) error) error {
	if !b.asksAgain() {
		return run(0, 0)
	}
	this := inodes.Rename{Name: r.From.Name, NewName: r.To.Name}
	refused := b.shown.WasRefused(r.PID, this)
	source, target := b.shown.Pair(r.From, r.To)
	isSource, isTarget := b.opt.Nodes.ObjectAt(source.Child), b.opt.Nodes.ObjectAt(target.Child)
	err := run(isSource, isTarget)
	if fault.Is(err, fault.Stale) && !calls.IsUnknown(err) && (isSource != 0 || isTarget != 0) {
		defer b.lookAnew([]inodes.Name{r.From, r.To}, []mount.Inode{source.Child, target.Child})
		if !refused {
			b.shown.Refuse(r.PID, this)
			return err
		}
		if r.Exchange || !b.opt.Nodes.IsDir(target.Child) {
			isTarget = 0
		}
		err = run(0, isTarget)
	}
	if err == nil {
		b.shown.Move(r.From, r.To, r.Exchange)
		b.follow(r.To, source, r.NewDir)
		if r.Exchange {
			b.follow(r.From, target, r.Dir)
		}
	}
	return err
}

// follow notes that the kernel believes a name that it moved for as long as it
// believed the old one. Where no lease covers the new one for so long, it is to
// ask instead.
func (b *Builder) follow(at inodes.Name, means inodes.Meaning, dir ids.Object) {
	left := b.opt.Names.Means(dir, at.Name, b.opt.Nodes.ObjectAt(means.Child))
	now := b.opt.Clock()
	if means.Child == 0 || means.Until <= now {
		return
	}
	if now+left+readLate < means.Until || !b.opt.Nodes.MayCache(at.Dir, at.Name, means.Child, now, means.Until) {
		b.lookAnew([]inodes.Name{at}, []mount.Inode{means.Child})
	}
}

// lookAnew has the kernel look names up that may mean something else than it was
// shown. An open of what it was shown is refused until it has heard of it.
func (b *Builder) lookAnew(names []inodes.Name, children []mount.Inode) {
	out := b.opt.Nodes.LookAnew(names, children)
	b.opt.Kernel.Tell(&out, true, nil) // it has the directories locked until it is answered
}
