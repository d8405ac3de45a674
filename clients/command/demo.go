package command

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/clients/demo"
	"cartwheel.dev/geo-config/fault"
)

type demoCmd struct {
	Run_ demoRunCmd  `cmd:"" name:"run" default:"withargs" help:"Start the demo; Ctrl-C ends it."`
	Fail demoFailCmd `cmd:"" help:"Kill a site's node (or geo-config) at once, as a loss of power would."`
	Heal demoHealCmd `cmd:"" help:"Start it again."`
}

type demoRunCmd struct {
	Dir      string        `help:"Directory of the mounts." default:"cartwheel-demo" type:"path"`
	Sites    string        `help:"Names of the sites, joined by commas." default:"tokyo,boston,paris"`
	NoMounts bool          `help:"Run the nodes only: needs neither root nor FUSE."`
	Keep     bool          `help:"Keep the data for the next start."`
	Lease    time.Duration `help:"How long an answered beacon binds a standby." default:"3s"`
}

// Help shows how it is called.
func (*demoRunCmd) Help() string {
	return help("cartwheel demo --sites tokyo,boston,paris\n\nCtrl-C unmounts and stops everything in order; a second one does not wait.")
}

// Run runs the demo until the context ends.
func (c *demoRunCmd) Run(e *env) error {
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, "command.demo", "", err)
	}
	node := filepath.Join(filepath.Dir(self), "cartwheeld")
	if _, err := os.Stat(node); err != nil {
		return fault.E(fault.NotFound, "command.demo", node, "is not there: it belongs beside the cartwheel command; scripts/build makes both")
	}
	if !c.NoMounts {
		if err := canMount(); err != nil {
			return err
		}
	}
	return demo.Run(e.ctx, demo.Options{
		Dir: c.Dir, Sites: strings.Split(c.Sites, ","), Mounts: !c.NoMounts, Keep: c.Keep, Lease: c.Lease,
		Cartwheeld: node, Cartwheel: self, Out: e.stdio.Out, Force: e.stdio.Again,
	})
}

// canMount says what is missing before anything is started.
func canMount() error {
	for _, c := range checks() {
		if c.Needed && !c.OK {
			return fault.E(fault.NotSupported, "command.demo", c.Name, c.Detail+"; what works without: `cartwheel demo --no-mounts` runs the nodes")
		}
	}
	return nil
}

type demoFailCmd struct {
	Site string `arg:"" help:"Site, or geo-config."`
	Dir  string `help:"The demo's directory." default:"cartwheel-demo" type:"path"`
}

// Help shows how it is called.
func (*demoFailCmd) Help() string { return help("cartwheel demo fail tokyo") }

// Run kills.
func (c *demoFailCmd) Run(e *env) error { return ask(e, c.Dir, "fail", c.Site) }

type demoHealCmd struct {
	Site string `arg:"" help:"Site, or geo-config."`
	Dir  string `help:"The demo's directory." default:"cartwheel-demo" type:"path"`
}

// Help shows how it is called.
func (*demoHealCmd) Help() string { return help("cartwheel demo heal tokyo") }

// Run starts again.
func (c *demoHealCmd) Run(e *env) error { return ask(e, c.Dir, "heal", c.Site) }

func ask(e *env, dir, do, name string) error {
	doing := map[string]string{"fail": "killing", "heal": "starting"}
	past := map[string]string{"fail": "was killed", "heal": "runs again"}
	said := e.progress("%s %s", doing[do], name)
	err := demo.Ask(e.ctx, dir, do, name)
	said()
	if err != nil {
		return err
	}
	return e.done(map[string]any{"name": name, "runs": do == "heal"}, "%s %s", name, past[do])
}
