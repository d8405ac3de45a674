package command

import (
	"io"

	"cartwheel.dev/geo-config/fault"
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
		return nil, fault.E(fault.Usage, "command.up", "--hosts", "is not negative, nor is --nodes")
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
	DryRun bool `help:"Check the topology and print it whole, as YAML; start nothing."`
}

// Help shows how it is called.
func (upCmd) Help() string { return help("cartwheel-testbed up emulab-5x3 --dry-run") }

// Run brings it up.
func (c upCmd) Run(e *env) error {
	t, err := c.find(c.Topology)
	if err != nil {
		return err
	}
	if c.DryRun {
		return e.print(dryView(t), func(w io.Writer) { _, _ = w.Write(t.YAML()) }) // whoever reads it has gone
	}
	return fault.E(fault.NotSupported, "command.up", c.Topology, "this version checks topologies only: --dry-run")
}
