package command

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
)

type umountCmd struct {
	Mountpoint string        `arg:"" help:"Where it is mounted."`
	Flush      bool          `help:"Wait until everything written is at the nodes, for as long as the mount sends; --no-flush leaves it to the mount's process." default:"true" negatable:""`
	Lazy       bool          `help:"Remove the mount point now; the mount ends when nothing is open any more."`
	Force      bool          `help:"Wait neither for open files nor for unsent data: it is lost unless the mount has a --cache-dir."`
	Timeout    time.Duration `help:"Stop waiting after this time; the mount continues (0: wait until it ends)." default:"0s"`
}

// Help shows how it is called.
func (*umountCmd) Help() string {
	return help(`cartwheel umount /mnt

The mount sends what is unsent while something gets through, and for its --flush-timeout more. If files are not saved
then, they are listed and the exit status is not 0: they are lost, or with --cache-dir kept for the next mount.`)
}

// Run unmounts and waits until the mount's process has sent everything and
// ended.
func (c *umountCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	point, err := placeOf(c.Mountpoint)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, c.Mountpoint, err)
	}
	if real, err := filepath.EvalSymlinks(point); err == nil {
		point = real // a mount whose process died cannot be looked at
	}
	switch kind := mountedAs(point); {
	case kind == "":
		return fault.E(fault.NotFound, op, c.Mountpoint, "nothing is mounted there")
	case kind != ourKind && kind != unknownKind:
		return fault.Errorf(fault.Invalid, op, c.Mountpoint, "what is mounted there is %s, not Cartwheel", kind)
	}
	r := e.findRecord(point)
	if err := unmount(point, c.Lazy, c.Force); err != nil {
		return err
	}
	if r == nil || c.Lazy || !c.Flush && !c.Force {
		return e.done(map[string]any{"unmounted": point}, "%s is unmounted", point)
	}
	defer r.file.Close()
	if c.Force {
		force(r.PID)
	}
	if err := c.await(e, r); err != nil {
		return err
	}
	if r.read(); r.Failed != "" {
		return fault.E(r.Kind, op, c.Mountpoint, "is unmounted, but: "+r.Failed)
	}
	return e.done(map[string]any{"unmounted": point}, "%s is unmounted", point)
}

const umountPoll = 20 * time.Millisecond

func (c *umountCmd) await(e *env, r *record) error {
	const op fault.Op = "command.await"
	var left atomic.Pointer[string] // nil: not known
	defer progressOf(e.stdio.Err, func() string {
		text := c.Mountpoint + " is unmounted; waiting for what is unsent"
		if more := left.Load(); more != nil {
			text += *more
		}
		return text
	})()
	var limit <-chan time.Time // nil: none
	if c.Timeout > 0 {
		timer := time.NewTimer(c.Timeout)
		defer timer.Stop()
		limit = timer.C
	}
	tick := time.NewTicker(umountPoll)
	defer tick.Stop()
	for !r.ended() {
		select {
		case <-e.ctx.Done():
			return fault.Wrap(fault.Canceled, op, c.Mountpoint, e.ctx.Err())
		case <-limit:
			return fault.Errorf(fault.TimedOut, op, c.Mountpoint,
				"its process %d still has %d files with %s to send after %v; it goes on while something gets through, and two signals end it", r.PID, r.Files, amount(r.Bytes), c.Timeout)
		case <-tick.C:
			if r.read() && r.Files > 0 {
				text := fmt.Sprintf(": %d files, %s", r.Files, amount(r.Bytes))
				left.Store(&text)
			}
		}
	}
	return nil
}

// force ends a mount's process as two signals do.
func force(pid int) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	for range 2 {
		_ = p.Signal(stopSignal) // it may have ended
		<-time.After(umountPoll) // two that come together are one
	}
}
