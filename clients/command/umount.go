package command

import (
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
)

type umountCmd struct {
	Mountpoint string        `arg:"" help:"Where it is mounted."`
	Flush      bool          `help:"Wait until everything written is at the nodes." default:"true" negatable:""`
	Lazy       bool          `help:"Take the name away now; the mount ends when nothing is open any more."`
	Force      bool          `help:"Wait neither for what is open nor for what is unsent: it is lost unless the mount has a --cache-dir."`
	Timeout    time.Duration `help:"How long to wait for the mount to end." default:"60s"`
}

// Help shows how it is called.
func (*umountCmd) Help() string { return help("cartwheel umount /mnt") }

// Run unmounts and waits until the mount's process has sent everything and
// ended.
func (c *umountCmd) Run(e *env) error {
	const op fault.Op = "command.umount"
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
	return e.done(map[string]any{"unmounted": point}, "%s is unmounted", point)
}

const umountPoll = 20 * time.Millisecond

func (c *umountCmd) await(e *env, r *record) error {
	const op fault.Op = "command.umount"
	defer e.progress("%s is unmounted; waiting for what is unsent", r.Mountpoint)()
	limit := time.NewTimer(c.Timeout)
	defer limit.Stop()
	tick := time.NewTicker(umountPoll)
	defer tick.Stop()
	for !r.ended() {
		select {
		case <-e.ctx.Done():
			return fault.Wrap(fault.Canceled, op, c.Mountpoint, e.ctx.Err())
		case <-limit.C:
			return fault.Errorf(fault.TimedOut, op, c.Mountpoint,
				"its process %d still has unsent data after %v: they need a node that answers; it goes on trying, and --force gives up", r.PID, c.Timeout)
		case <-tick.C:
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
