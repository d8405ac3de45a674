// Package lab runs Cartwheel on an emulated wide area: the network of a
// topology, a cartwheeld in each host that has a node, the geo-config server in
// one of them, and real mounts in the hosts that have one; all are processes of
// the real programs, started and watched here. A lab has a name, by which other
// processes steer it, and a folder with its topology, data, mounts and logs.
// Everything dies with the process that brought it up, or is removed by Clean.
// A Lab may be used by several goroutines.
package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

// Prefix is what the names of all labs' namespaces begin with.
const Prefix = "cw"

// DefaultName is the lab that commands mean that name none.
const DefaultName = "lab"

// Programs are the commands that a lab runs.
type Programs struct {
	Cartwheel, Cartwheeld string
	// Testbed is cartwheel-testbed, which becomes the emulator and registers
	// the nodes from inside.
	Testbed string
}

// Beside returns the programs in one folder, such as that of this program.
func Beside(dir string) Programs {
	return Programs{
		Cartwheel: filepath.Join(dir, "cartwheel"), Cartwheeld: filepath.Join(dir, "cartwheeld"),
		Testbed: filepath.Join(dir, "cartwheel-testbed"),
	}
}

// Options say what to bring up.
type Options struct {
	// Name tells labs on one machine apart: 1 to 8 of a-z and 0-9.
	Name     string
	Topology *topology.Topology
	// Dir is the lab's folder; it is made, and may be there.
	Dir      string
	Programs Programs
	// NodeFlags and MountFlags are added to the words of every cartwheeld and
	// every mount.
	NodeFlags, MountFlags []string
	// Version of the programs, for the record.
	Version string
	// Environ is added to the environment of every process.
	Environ []string
	// KeepData leaves the nodes' data in Dir when the lab goes down.
	KeepData bool
	// Say takes a line now and then on what goes on; nil: nobody listens.
	Say func(format string, args ...any)
	// Force, when it closes, ends an orderly stop: what still runs is killed.
	Force <-chan struct{}
}

// Lab is one that is up.
type Lab struct {
	opt     Options
	state   *state
	network *wan.Network
	family  *supervisor.Family
	control *control
	events  *events
	gone    chan *supervisor.Child
	asked   chan struct{} // closed when another process asked the lab to go down
	once    sync.Once
	done    sync.WaitGroup
	end     context.CancelFunc
	started time.Time

	cluster    ids.Cluster
	geoAddress string
	hosts      []*host // in the topology's order
	geo        *host   // where geo-config runs

	closing sync.Once
	closed  error
}

// Topology is what the lab was made from; faults do not change it.
func (l *Lab) Topology() *topology.Topology { return l.opt.Topology }

// Name is the lab's name.
func (l *Lab) Name() string { return l.opt.Name }

// Dir is the lab's folder.
func (l *Lab) Dir() string { return l.opt.Dir }

// Contact is the contact file, of use to programs inside the hosts.
func (l *Lab) Contact() string { return filepath.Join(l.opt.Dir, "contact.json") }

// AdminFile is the administrator's file, of use to programs inside the hosts.
func (l *Lab) AdminFile() string { return filepath.Join(l.opt.Dir, bootstrap.AdminName) }

// DataFolder is where the node of a host keeps its data while the lab is up.
func (l *Lab) DataFolder(host string) string { return l.path("data", host) }

// Network is the wide area, for what Do has no word for and for its Stats.
func (l *Lab) Network() *wan.Network { return l.network }

// AskedDown closes when another process asked the lab to go down; whoever
// brought it up then closes it.
func (l *Lab) AskedDown() <-chan struct{} { return l.asked }

// Node is one host's cartwheeld.
type Node struct {
	Host    string
	Site    string
	ID      ids.Node
	Address string // multiaddress, with the ID
	PID     int    // 0: it does not run
	Log     string
}

// Nodes lists the nodes, in the topology's order.
func (l *Lab) Nodes() []Node {
	var out []Node
	for _, h := range l.hosts {
		if h.Node {
			out = append(out, Node{Host: h.Name, Site: h.Site, ID: h.id, Address: h.peer(), PID: h.pid(NodeProcess), Log: h.log(NodeProcess)})
		}
	}
	return out
}

// Mounts lists the hosts that have a mount.
func (l *Lab) Mounts() []string {
	var out []string
	for _, h := range l.hosts {
		if h.Mount {
			out = append(out, h.Name)
		}
	}
	return out
}

// Mount is the path of a host's mount, which every process of this machine
// sees: what is read and written there crosses the network from that host.
func (l *Lab) Mount(name string) (string, error) {
	h, err := l.find(name)
	if err != nil {
		return "", err
	}
	if !h.Mount {
		return "", fault.E(fault.NotFound, "lab.Mount", name, "this host has no mount: the topology says who has")
	}
	return h.point, nil
}

// PID is the number of one of a host's processes, 0 if it does not run.
func (l *Lab) PID(name string, p Process) int {
	h, err := l.find(name)
	if err != nil {
		return 0
	}
	return h.pid(p)
}

// Command prepares a command inside a host, with what the programs of
// Cartwheel need to find the cluster in its environment. The caller bounds its
// life by ctx; it ends at the latest when the lab goes down.
func (l *Lab) Command(ctx context.Context, name string, argv ...string) *exec.Cmd {
	h, err := l.find(name)
	if err != nil {
		cmd := exec.CommandContext(ctx, "false")
		cmd.Err = err
		return cmd
	}
	cmd := l.network.Command(ctx, h.Name, argv...)
	cmd.Env = append(os.Environ(), l.environ(h)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// Run runs a command inside a host and returns what it wrote to standard
// output; what it wrote to standard error is in the error.
func (l *Lab) Run(ctx context.Context, name string, argv ...string) ([]byte, error) {
	cmd := l.Command(ctx, name, argv...)
	out, err := cmd.Output()
	if err != nil {
		text := ""
		if failed, ok := asExit(err); ok {
			text = string(failed.Stderr)
		}
		return out, fault.Errorf(fault.Other, "lab.Run", name, "%q failed: %v: %s", argv, err, text)
	}
	return out, nil
}

// environ is what programs inside a host find.
func (l *Lab) environ(h *host) []string {
	return append([]string{
		"CARTWHEEL_CONTACT=" + l.Contact(), "CARTWHEEL_ADMIN=" + l.AdminFile(), "CARTWHEEL_SITE=" + h.Site, "CARTWHEEL_RUN_DIR=" + filepath.Join(l.opt.Dir, "run"),
		"CARTWHEEL_HOST=" + h.Name, "PATH=" + filepath.Dir(l.opt.Programs.Cartwheel) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}, l.opt.Environ...)
}

// find returns a host by its name, or its site's name where it is alone.
func (l *Lab) find(name string) (*host, error) {
	if t, ok := l.opt.Topology.Host(name); ok {
		for _, h := range l.hosts {
			if h.Name == t.Name {
				return h, nil
			}
		}
	}
	return nil, unknownHost(l.opt.Topology, name)
}

func unknownHost(t *topology.Topology, name string) error {
	var names []string
	for _, h := range t.Hosts {
		names = append(names, h.Name)
	}
	return fault.E(fault.NotFound, "lab.find", name, "is no host of this lab"+topology.SuggestOf(name, names))
}

func (l *Lab) say(format string, args ...any) {
	if l.opt.Say != nil {
		l.opt.Say(format, args...)
	}
}

func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.opt.Dir}, parts...)...)
}

func asExit(err error) (*exec.ExitError, bool) {
	var e *exec.ExitError
	ok := errors.As(err, &e)
	return e, ok
}

// Note adds a line of the caller's to the lab's events.
func (l *Lab) Note(text string) { l.events.add("note", "", text) }

// Events returns the newest events, the oldest first.
func (l *Lab) Events() []Event { return l.events.recent() }

// record is lab.json.
func (l *Lab) record(ready bool) Record {
	r := Record{
		Name: l.opt.Name, PID: os.Getpid(), Dir: l.opt.Dir, Topology: l.opt.Topology.Name, Contact: l.Contact(), Started: l.started.UTC(),
		Ready: ready, KeepData: l.opt.KeepData, Seed: l.opt.Topology.Seed, Version: l.opt.Version,
	}
	run := netns.Run{Prefix: Prefix, ID: l.opt.Name}
	for _, h := range l.hosts {
		r.Hosts = append(r.Hosts, HostRecord{
			Name: h.Name, Site: h.Site, Address: h.Address, Namespace: run.Name("h." + h.Name), NodeID: string(h.id), Mount: h.point,
			Environ: l.environ(h),
		})
	}
	return r
}
