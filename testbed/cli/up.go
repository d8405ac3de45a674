package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/topology"
)

// topologyWords name a topology.
type topologyWords struct {
	Hosts int    `help:"Draw so many hosts of a matrix." placeholder:"N"`
	Nodes int    `help:"Nodes at each place of a matrix." default:"1"`
	Seed  uint64 `help:"Draws the hosts, the jitter and what is lost." default:"1"`
}

func (w topologyWords) find(name string) (*topology.Topology, error) {
	if w.Hosts < 0 || w.Nodes < 0 {
		return nil, fault.E(fault.Usage, "cli.up", "--hosts", "is not negative, nor is --nodes")
	}
	t, err := topology.Find(name, topology.Draw{Hosts: w.Hosts, Nodes: w.Nodes, Seed: w.Seed})
	if err == nil && t.Seed == 0 {
		t.Seed = w.Seed
	}
	return t, err
}

type upCmd struct {
	Topology string `arg:"" help:"One of list, a YAML file, a matrix of RTTs, or cities:NAME,NAME,..."`
	topologyWords
	nameFlag
	Dir      string   `help:"The lab's directory: topology, logs, mounts, data (default: ./cartwheel-testbed/NAME)." type:"path" placeholder:"DIR"`
	Bin      string   `help:"Directory of the programs (default: this command's)." type:"path" placeholder:"DIR"`
	KeepData bool     `help:"Leave the nodes' data in the directory when the lab goes down."`
	Detach   bool     `help:"Return when it is up; down ends it."`
	DryRun   bool     `help:"Check the topology and print it whole, as YAML; start nothing."`
	Node     []string `name:"node-flag" help:"One more word on the command line of every cartwheeld." sep:"none" placeholder:"WORD"`
	Mount    []string `name:"mount-flag" help:"One more word on the command line of every mount." sep:"none" placeholder:"WORD"`
	Child    bool     `name:"in-background" hidden:"" help:"This is the process that --detach started."`
}

// nameFlag names a lab.
type nameFlag struct {
	Name string `help:"Name of the lab, where there are several: 1 to 8 of a-z and 0-9." default:"lab" env:"CARTWHEEL_LAB"`
}

// Help shows how it is called.
func (upCmd) Help() string {
	return help("cartwheel-testbed up emulab-5x3 --detach\n\nWithout --detach it serves until Ctrl-C, which unmounts and stops everything in order; a second Ctrl-C does not wait.")
}

// Run brings it up.
func (c upCmd) Run(e *env) error {
	t, err := c.find(c.Topology)
	if err != nil {
		return err
	}
	if c.DryRun {
		return e.print(dryView(t), func(w io.Writer) { _, _ = w.Write(t.YAML()) }) // whoever reads it has gone
	}
	if err := lab.CheckName(c.Name); err != nil {
		return err
	}
	if c.Dir == "" {
		c.Dir = filepath.Join(runsFolder, c.Name)
	}
	if c.Detach && !c.Child {
		return e.detach(filepath.Join(c.Dir, "logs", "lab.log"))
	}
	programs, err := programsIn(c.Bin)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := lab.Up(e.ctx, lab.Options{
		Name: c.Name, Topology: t, Dir: c.Dir, Programs: programs, NodeFlags: append(smallNodes(), c.Node...), MountFlags: c.Mount,
		KeepData: c.KeepData, Version: e.stdio.Version, Say: e.say, Force: e.stdio.Again,
	})
	if err != nil {
		return err
	}
	if err := e.welcome(l, c.Child, time.Since(began)); err != nil {
		return errors.Join(err, l.Close())
	}
	select {
	case <-e.ctx.Done():
	case <-l.AskedDown():
	}
	e.say("stopping")
	err = l.Close()
	e.say("everything has stopped; logs are in %s", filepath.Join(l.Dir(), "logs"))
	return err
}

// runsFolder is where labs and runs have their folders, below the current one.
const runsFolder = "cartwheel-testbed"

// smallNodes makes a node fit beside fifteen others on one machine.
func smallNodes() []string { return []string{fmt.Sprintf("--memory-bytes=%d", 128<<20)} }

// programsIn finds the programs: in the folder named, else beside this one.
func programsIn(bin string) (lab.Programs, error) {
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return lab.Programs{}, fault.Wrap(fault.IO, "cli.up", "", err)
		}
		bin = filepath.Dir(self)
	}
	return lab.Beside(bin), nil
}

type upView struct {
	Ready    bool           `json:"ready"`
	Name     string         `json:"name"`
	Topology string         `json:"topology"`
	Dir      string         `json:"dir"`
	Contact  string         `json:"contact"`
	Mounts   map[string]any `json:"mounts"`
	Nodes    int            `json:"nodes"`
	TookMS   int64          `json:"took_ms"`
}

// welcome says what is up, and what to try.
func (e *env) welcome(l *lab.Lab, child bool, took time.Duration) error {
	v := upView{
		Ready: true, Name: l.Name(), Topology: l.Topology().Name, Dir: l.Dir(), Contact: l.Contact(), Mounts: map[string]any{},
		Nodes: len(l.Nodes()), TookMS: took.Milliseconds(),
	}
	for _, h := range l.Mounts() {
		v.Mounts[h], _ = l.Mount(h) // it has one
	}
	if child || e.json {
		return json.NewEncoder(e.stdio.Out).Encode(v) // one line, for whoever waits for it
	}
	return e.print(v, v.text)
}

func (v upView) text(w io.Writer) {
	name := ""
	if v.Name != lab.DefaultName {
		name = " --name " + v.Name
	}
	fmt.Fprintf(w, "%s is up after %.1f s: %d nodes, %d mounts below %s\n\n", v.Topology, float64(v.TookMS)/1000, v.Nodes, len(v.Mounts), filepath.Join(v.Dir, "mnt"))
	fmt.Fprintf(w, "Try, in another terminal:\n  cartwheel-testbed status%s\n  cartwheel-testbed shell HOST%s        (a shell in its network, at its mount)\n", name, name)
	fmt.Fprintf(w, "  cartwheel-testbed fault cut SITE SITE%s, then fault heal%s\n  cartwheel-testbed down%s\n\nready\n", name, name, name)
}
