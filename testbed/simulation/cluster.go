package simulation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// cluster is the nodes of a run, and what every client must know of them.
type cluster struct {
	*run
	user   wire.Key
	joined atomic.Pointer[[]*machine] // what machines returns
}

// add makes one more node; it does not start it.
func (c *cluster) add(i int) (*machine, error) {
	m := &machine{run: c.run, index: i, name: fmt.Sprint("n", i), site: string(rune('a' + i)), dir: filepath.Join(c.o.Dir, fmt.Sprint("n", i)),
		clock: newClock(drift(c.chance, 0.05)), wall: &wall{}, disk: newStorage(),
		chance: rand.New(rand.NewPCG(c.o.Seed, uint64(100+i)))}
	m.wall.set(time.Duration(c.chance.Int64N(int64(300 * time.Millisecond))))
	m.host = c.net.host(m.name)
	var err error
	if m.key, err = c.drawnKey(); err != nil {
		return nil, err
	}
	all := append(slices.Clone(c.machines()), m)
	c.joined.Store(&all)
	return m, nil
}

// machines returns those that are there by now; one that joins is not in it. The
// result must not be changed. The checks call it while a fault adds a machine.
func (c *cluster) machines() []*machine {
	if all := c.joined.Load(); all != nil {
		return *all
	}
	return nil
}

// sites names the sites of the nodes.
func (c *cluster) sites() []string {
	var out []string
	for _, m := range c.machines() {
		out = append(out, m.site)
	}
	return out
}

// rooted answers what keeps the cluster from having a root.
func (c *cluster) rooted() error {
	for _, m := range c.machines() {
		if s := m.now(); s != nil && s.CheckRoot() == nil {
			return nil
		}
	}
	return fmt.Errorf("no node leads it")
}

// contact is what every client knows at its start.
func (c *cluster) contact() (contact.File, error) {
	path := filepath.Join(c.o.Dir, "user.key")
	encoded, err := c.user.Marshal()
	if err == nil {
		err = os.WriteFile(path, encoded, 0o600)
	}
	file := contact.File{Cluster: clusterID, UserKey: path}
	for _, m := range c.machines() {
		file.Nodes = append(file.Nodes, m.host.address()+"/p2p/"+string(m.id()))
	}
	return file, err
}

// machineOf returns the machine of a node; nil: there is none.
func (c *cluster) machineOf(id ids.Node) *machine {
	for _, m := range c.machines() {
		if m.id() == id {
			return m
		}
	}
	return nil
}

// nameOf names a node for people.
func (c *cluster) nameOf(id ids.Node) string {
	if m := c.machineOf(id); m != nil {
		return m.name
	}
	return string(id)
}
