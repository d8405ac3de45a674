package wan

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
)

// Options says how the emulator's process is run.
type Options struct {
	// Emulator is the command that becomes the emulator: one that calls
	// emulator.Run at once. It is this program with the word "emulate" if empty.
	Emulator []string
	// Env is added to its environment.
	Env []string
	// Stderr takes its warnings; nil discards them.
	Stderr *os.File
	// Detach lets it live on when this process ends. Otherwise it ends with it,
	// and only namespaces are left to Clean.
	Detach bool
}

// grace is how long processes inside are given to end when asked to.
const grace = 5 * time.Second

// Network is a running wide area. The zero value is not usable: Start makes
// one, and Attach finds one that another process started.
type Network struct {
	run    netns.Run
	hosts  map[string]string // names of namespaces by host
	sites  map[string]string // by site
	config Config            // as started: names, addresses
	cmd    *exec.Cmd         // nil if attached
	life   io.Closer         // the emulator ends when it is closed; nil if attached or detached
	gone   chan struct{}     // closed when the emulator that this process started has ended
	once   sync.Once
	closed error
}

// socket is where the emulator of a run is spoken to.
func socket(run netns.Run) string {
	return filepath.Join("/run/cartwheel-wan", run.String()+".sock")
}

// Start makes the namespaces, joins the hosts of each site and starts the
// emulator. When it fails it leaves nothing behind.
func Start(ctx context.Context, c Config, o Options) (*Network, error) {
	const op fault.Op = "wan.Start"
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	if err := able(op); err != nil {
		return nil, err
	}
	n := describe(c)
	if left, err := netns.List(n.run.Prefix, n.run.ID); err != nil || len(left) > 0 {
		if err == nil {
			err = fault.Errorf(fault.Exists, op, left[0], "a namespace of another run is there: bring it down, or give this run another ID")
		}
		return nil, err
	}
	err = n.plumb()
	if err == nil {
		err = n.startEmulator(ctx, o)
	}
	if err == nil {
		err = n.plumbGateways()
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.IO, op, n.run.String(), err), n.Close())
	}
	return n, nil
}

// able says what this process lacks for emulating a network, if anything.
func able(op fault.Op) error {
	if os.Geteuid() != 0 {
		return fault.E(fault.Permission, op, "", "network namespaces need root: run it with sudo")
	}
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fault.E(fault.NoDevice, op, "/dev/net/tun", "no TUN device: load the kernel module tun (modprobe tun), and in a container pass the device in")
	}
	f.Close()
	if _, err := exec.LookPath("nsenter"); err != nil {
		return fault.E(fault.NotFound, op, "nsenter", "the program is missing: install util-linux")
	}
	return nil
}

func describe(c Config) *Network {
	n := &Network{
		run: netns.Run{Prefix: c.Prefix, ID: c.Run}, config: c, hosts: map[string]string{}, sites: map[string]string{},
		gone: make(chan struct{}),
	}
	for _, s := range c.Sites {
		n.sites[s.Name] = n.run.Name("s." + s.Name)
		for _, h := range s.Hosts {
			n.hosts[h.Name] = n.run.Name("h." + h.Name)
		}
	}
	return n
}

// SiteNamespace returns the name of the namespace of a site's bridge and
// gateway, for a run's emulator.
func SiteNamespace(c Config, site string) string {
	return netns.Run{Prefix: c.Prefix, ID: c.Run}.Name("s." + site)
}

// Attach finds a network that another process started, by its prefix and run.
func Attach(ctx context.Context, prefix, id string) (*Network, error) {
	run := netns.Run{Prefix: prefix, ID: id}
	reply, err := call(ctx, run, Request{Do: AskConfig})
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, "wan.Attach", run.String(), err)
	}
	return describe(*reply.Config), nil
}

func (n *Network) startEmulator(ctx context.Context, o Options) error {
	argv := o.Emulator
	if len(argv) == 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		argv = []string{self, "emulate"}
	}
	path := socket(n.run)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	os.Remove(path) // of a run of that name that crashed; there is no namespace of it
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := netns.Command(context.WithoutCancel(ctx), n.run.Name("wan"), argv...)
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.ExtraFiles = []*os.File{file}
	if o.Stderr != nil {
		cmd.Stderr = o.Stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !o.Detach {
		if n.life, err = cmd.StdinPipe(); err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, LifelineEnv+"=1")
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd = cmd
	go func() {
		_ = cmd.Wait() // how it ended is told by what it wrote
		close(n.gone)
	}()
	_, err = n.call(ctx, Request{Do: AskStart, Config: &n.config})
	return err
}

// Run returns the run's prefix and ID.
func (n *Network) Run() netns.Run { return n.run }

// Gone is closed when the emulator that this process started has ended, be it
// by Close or because it broke. A network that was attached to never says so.
func (n *Network) Gone() <-chan struct{} { return n.gone }

// Namespace returns the name of a host's namespace, or "".
func (n *Network) Namespace(host string) string { return n.hosts[host] }

// Command prepares a command inside a host. Its mounts are those of everybody.
// Where there is no such host the command fails when it is started.
func (n *Network) Command(ctx context.Context, host string, argv ...string) *exec.Cmd {
	cmd := netns.Command(ctx, n.hosts[host], argv...)
	if n.hosts[host] == "" {
		cmd.Err = fault.E(fault.NotFound, "wan.Command", host, "the network has no such host")
	}
	return cmd
}

// Do calls fn on a thread that is inside the host: sockets that it opens there
// belong to the host.
func (n *Network) Do(host string, fn func() error) error {
	if n.hosts[host] == "" {
		return fault.E(fault.NotFound, "wan.Do", host, "the network has no such host")
	}
	return netns.Do(n.hosts[host], fn)
}

// Close ends every process in the hosts and the emulator, and removes the
// namespaces. It may be called twice, and by a process that attached.
func (n *Network) Close() error {
	n.once.Do(func() {
		if n.life != nil {
			n.life.Close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*grace)
		defer cancel()
		_, n.closed = clean(ctx, n.run)
		if n.cmd != nil {
			select {
			case <-n.gone:
			case <-ctx.Done():
			}
		}
	})
	return n.closed
}

// Clean ends the processes and removes the namespaces of a prefix's runs, of
// every run if id is empty, whoever left them. It returns the runs that it
// found and how many processes it ended.
func Clean(ctx context.Context, prefix, id string) (runs []netns.Run, ended int, err error) {
	all, err := netns.Runs(prefix)
	if err != nil {
		return nil, 0, err
	}
	for _, run := range all {
		if id != "" && run.ID != id {
			continue
		}
		runs = append(runs, run)
		some, cerr := clean(ctx, run)
		ended, err = ended+some, errors.Join(err, cerr)
	}
	return runs, ended, err
}

func clean(ctx context.Context, run netns.Run) (ended int, err error) {
	names, err := netns.List(run.Prefix, run.ID)
	if err != nil {
		return 0, err
	}
	// The emulator last, so that what runs in the hosts can say goodbye.
	last := run.Name("wan")
	var first []string
	for _, name := range names {
		if name != last {
			first = append(first, name)
		}
	}
	ended, err = netns.Delete(ctx, grace, first...)
	if len(first) < len(names) {
		_, lerr := netns.Delete(ctx, grace, last)
		err = errors.Join(err, lerr)
	}
	os.Remove(socket(run))
	return ended, err
}
