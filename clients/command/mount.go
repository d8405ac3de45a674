package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/native"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/collector"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/telemetry"
)

type mountCmd struct {
	Cluster    string `arg:"" help:"Contact file, or a node's address (/ip4/…/tcp/…/p2p/ID)."`
	Mountpoint string `arg:"" help:"An empty directory; on Windows a drive letter, or a directory that is not there yet."`
	clusterFlags
	Limits limitFlags `embed:""`
	kernelFlags
	daemonFlags
	bootFlags
	traceFlags
	NoReadhead bool     `name:"no-read-ahead" help:"For measurements: read only what is asked for."`
	NoRangeMap bool     `name:"no-range-map" help:"For measurements: look up every range again."`
	Debug      bool     `help:"Log every request of the kernel."`
	Options    []string `short:"o" help:"Options as mount(8) gives them: a_b=c is --a-b=c, env.A=b sets a variable." sep:"none"`
	Ready      bool     `name:"report-ready" hidden:"" help:"Print a line of JSON once the mount answers."`
	Child      bool     `name:"in-background" hidden:"" help:"This is the process that --daemon started."`
}

// Help shows how it is called.
func (*mountCmd) Help() string {
	return help(`cartwheel mount cartwheel-demo/contact.json /mnt --site tokyo --daemon

The mount sends what a program has written until the nodes take it, however long they do not answer, while there is room for
more (--dirty-bytes). A close or fsync fails when nothing gets through for --op-timeout; the mount keeps the data and sends it
all the same. Only --soft gives it up then.

Ctrl-C or SIGTERM unmounts and sends unsent data, for as long as something gets through and --flush-timeout more. If files are
not saved then, the mount lists them, and the exit status is not 0. A second signal does not wait. SIGHUP drops the caches.
As /sbin/mount.cartwheel the program is mount(8)'s helper: mount -t cartwheel CONTACT /mnt -o site=tokyo,cache_dir=/var/cache/cartwheel`)
}

// Run mounts and serves until a signal or an unmount; in the background with
// --daemon.
func (c *mountCmd) Run(e *env) (err error) {
	if c.Mountpoint, err = placeOf(c.Mountpoint); err != nil {
		return fault.Wrap(fault.Invalid, "command.mount", c.Mountpoint, err)
	}
	if c.Cluster, err = wholeTree(c.Cluster); err != nil {
		return err
	}
	if e.flags.Contact != "" {
		c.Cluster = e.flags.Contact
	}
	if c.PrintUnit {
		return c.printUnit(e)
	}
	if err := errors.Join(c.Limits.check(), checkPlace(c.Mountpoint), c.checkFolders()); err != nil {
		return err
	}
	file, err := c.file()
	if err != nil {
		return err
	}
	if c.Fstab && !c.Child {
		if err := c.updateFstab(e); err != nil {
			return err
		}
	}
	if c.Daemon && !c.Child {
		return c.daemon(e)
	}
	return c.serve(e, file)
}

// wholeTree takes the path off CLUSTER:/path. Only the whole tree can be
// mounted.
func wholeTree(cluster string) (string, error) {
	at := strings.LastIndex(cluster, ":/")
	if at <= 1 { // 1: a drive of Windows
		return cluster, nil
	}
	if cluster[at:] != ":/" {
		return "", fault.E(fault.NotSupported, "command.mount", cluster, "the whole tree is mounted; leave the path out and use a bind mount of the part")
	}
	return cluster[:at], nil
}

// file reads the contact file, or makes one of a node's address.
func (c *mountCmd) file() (contact.File, error) {
	const op fault.Op = "command.file"
	if !strings.HasPrefix(c.Cluster, "/ip") && !strings.HasPrefix(c.Cluster, "/dns") && !strings.Contains(c.Cluster, "/p2p/") {
		f, err := contact.Load(c.Cluster)
		if c.UserKey != "" {
			f.UserKey = c.UserKey
		}
		return f, err
	}
	if _, _, err := contact.SplitAddress(c.Cluster); err != nil {
		return contact.File{}, err
	}
	key := c.UserKey
	if key == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return contact.File{}, fault.E(fault.Usage, op, "--user-key", "is needed: there is no HOME to find a key in")
		}
		key = filepath.Join(dir, "cartwheel", "user.key")
	}
	if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
		return contact.File{}, fault.FromOS(op, key, err)
	}
	return contact.File{Nodes: []string{c.Cluster}, UserKey: key}, nil
}

// open reaches the cluster.
func (c *mountCmd) open(e *env, file contact.File, logger *slog.Logger, follows *telemetry.Telemetry) (*cartwheel.Client, error) {
	ctx, cancel := context.WithTimeout(e.ctx, c.DaemonWait)
	defer cancel()
	defer e.progress("looking for a node that answers")()
	o := cartwheel.Options{
		Contact: file, Site: ids.Site(c.Site), Name: c.name(), CacheDir: c.CacheDir, CacheBytes: c.CacheSize, Memory: c.Memory,
		OpTimeout: c.OpTimeout, Soft: c.Soft, FlushTimeout: c.FlushWait, Logger: logger, Telemetry: follows,
		Measured: cartwheel.Measured{NoReadAhead: c.NoReadhead, NoRangeMap: c.NoRangeMap},
	}
	c.Limits.apply(&o)
	return cartwheel.Open(ctx, o)
}

func (c *mountCmd) serve(e *env, file contact.File) error {
	const op fault.Op = "command.serve"
	logger := slog.New(slog.NewTextHandler(e.stdio.Err, nil))
	if e.getenv("GOMEMLIMIT") == "" {
		defer collector.Start(collectorAim(c.Memory))()
	}
	follows, flush, err := c.follow(c.name(), c.Site, logger)
	if err != nil {
		return err
	}
	defer flush()
	fs, err := c.open(e, file, logger, follows)
	if err != nil {
		return fault.Wrap(fault.Unreachable, op, c.Cluster, err)
	}
	m, err := native.Mount(fs.FileSystem(), mount.Options{
		Point: c.Mountpoint, FSName: c.FSName, Subtype: "cartwheel", AllowOther: c.AllowOther || os.Geteuid() == 0, ReadOnly: c.ReadOnly,
		SetID: c.Suid, Devices: c.Dev, NoExecute: c.NoExec, MaxBackground: c.Background, ReadAhead: c.Ahead, Debug: c.Debug, Logger: logger,
	})
	if err != nil {
		return errors.Join(err, fs.Close())
	}
	r, err := e.record(c)
	if err != nil {
		logger.Warn("umount cannot wait for this mount", logattr.Err(err))
	}
	defer r.remove()
	if c.Ready || c.Child {
		if err := json.NewEncoder(e.stdio.Out).Encode(map[string]any{"ready": true, "mountpoint": c.Mountpoint}); err != nil {
			logger.Warn("nobody reads the line that says the mount is ready", logattr.Err(err))
		}
	}
	notifyReady(e)
	c.wait(e, m, fs)
	return fault.Wrap(fault.IO, op, c.Mountpoint, c.end(e, m, fs, r))
}

// wait serves until the mount is gone or a signal says stop.
func (c *mountCmd) wait(e *env, m mount.Mounted, fs *cartwheel.Client) {
	hup := make(chan os.Signal, 1)
	if len(hangup) > 0 {
		signal.Notify(hup, hangup...)
		defer signal.Stop(hup)
	}
	for {
		select {
		case <-hup:
			fs.DropCaches(e.ctx)
		case <-m.Done():
			return
		case <-e.ctx.Done():
			return
		}
	}
}

// end takes the mount away and sends what is unsent, saying how much is left, here
// and in the record that umount reads. After a second signal it waits for
// neither.
func (c *mountCmd) end(e *env, m mount.Mounted, fs *cartwheel.Client, r *record) error {
	unsent := func() string {
		files, bytes := fs.Unsent()
		return fmt.Sprintf("sending what is unsent: %d files, %s", files, amount(bytes))
	}
	defer progressOf(e.stdio.Err, unsent)()
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(m.Unmount(mount.UnmountLimit), fs.Close()) }()
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	said := fs.Progress()
	for {
		select {
		case err := <-ended:
			r.end(err)
			return err
		case <-tick.C:
			r.Files, r.Bytes = fs.Unsent()
			_ = r.write() // umount then does not know how much is left
			if now := fs.Progress(); c.Ready && now != said {
				said = now
				_ = json.NewEncoder(e.stdio.Out).Encode(map[string]any{"unsent_bytes": r.Bytes}) // nobody may wait for the end
			}
		case <-e.stdio.Again:
			err := errors.Join(m.Unmount(0), fs.Abandoned())
			r.end(err)
			return err
		}
	}
}

// recordEvery is how often a mount that ends writes down what is left.
const recordEvery = 200 * time.Millisecond

// amount shows a number of bytes.
func amount(n uint64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func (c *mountCmd) name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + c.Mountpoint
}

// daemon starts the same mount in a process of its own, and returns when it
// answers.
func (c *mountCmd) daemon(e *env) error {
	const op fault.Op = "command.daemon"
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	log := c.LogFile
	if log == "" {
		dir, err := e.recordDir()
		if err != nil {
			return fault.Wrap(fault.IO, op, "--log-file", err)
		}
		log = filepath.Join(dir, recordName(c.Mountpoint)+".log")
	}
	defer e.progress("waiting for the mount to answer")()
	err = startDetached(e.ctx, self, append(e.words, "--in-background"), log, c.DaemonWait+daemonGrace)
	if err != nil && c.LogFile == "" && !fault.Is(err, fault.TimedOut) {
		_ = os.Remove(log) // it has been quoted
	}
	return err
}

// daemonGrace is what a mount in the background may take beyond the first
// answer of a node.
const daemonGrace = 10 * time.Second
