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
	Fail demoFailCmd `cmd:"" help:"Kill a site's node (or geo-config, or the console's gateway) at once, as a loss of power would."`
	Heal demoHealCmd `cmd:"" help:"Start it again."`
}

type demoRunCmd struct {
	Dir       string        `help:"Directory of the mounts." default:"cartwheel-demo" type:"path"`
	Sites     string        `help:"Names of the sites, joined by commas." default:"tokyo,boston,paris"`
	NoMounts  bool          `help:"Run the nodes only: needs neither root nor FUSE."`
	Keep      bool          `help:"Keep the data for the next start."`
	Console   string        `help:"Folder of the built console (default: the one beside the program)." type:"path" placeholder:"DIR"`
	NoConsole bool          `help:"Do not serve the console."`
	Lease     time.Duration `help:"How long an answered beacon binds a standby." default:"3s"`
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
	console, err := c.console(self)
	if err != nil {
		return err
	}
	return demo.Run(e.ctx, demo.Options{
		Console: console,
		Dir:     c.Dir, Sites: strings.Split(c.Sites, ","), Mounts: !c.NoMounts, Keep: c.Keep, Lease: c.Lease,
		Cartwheeld: node, Cartwheel: self, Out: e.stdio.Out, Force: e.stdio.Again,
	})
}

// console finds the gateway's program and the built console. Where one is missing
// and was not named, the demo runs without.
func (c *demoRunCmd) console(self string) (demo.Console, error) {
	const op fault.Op = "command.console"
	if c.NoConsole {
		return demo.Console{}, nil
	}
	dir := filepath.Dir(self)
	gateway := filepath.Join(dir, "cartwheel-gateway")
	if _, err := os.Stat(gateway); err != nil {
		if c.Console != "" {
			return demo.Console{}, fault.E(fault.NotFound, op, gateway, "is not there: it serves the console, and belongs beside the cartwheel command; scripts/build makes both")
		}
		return demo.Console{Missing: gateway + " is not there; scripts/build makes it"}, nil
	}
	tried := []string{filepath.Join(dir, "..", "console", "dist"), filepath.Join(dir, "..", "share", "cartwheel", "console")}
	if c.Console != "" {
		tried = []string{c.Console}
	}
	for _, folder := range tried {
		if _, err := os.Stat(filepath.Join(folder, "index.html")); err == nil {
			return demo.Console{Gateway: gateway, Dir: folder, Folder: "public"}, nil
		}
	}
	if c.Console != "" {
		return demo.Console{}, fault.E(fault.NotFound, op, c.Console, "has no index.html, so it is no built console; scripts/console builds one into console/dist")
	}
	return demo.Console{Missing: "neither " + strings.Join(tried, " nor ") + " has a built console; scripts/console builds it (needs npm), and --console DIR names another folder"}, nil
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
	Site string `arg:"" help:"Site, geo-config or console."`
	Dir  string `help:"The demo's directory." default:"cartwheel-demo" type:"path"`
}

// Help shows how it is called.
func (*demoFailCmd) Help() string { return help("cartwheel demo fail tokyo") }

// Run kills.
func (c *demoFailCmd) Run(e *env) error { return ask(e, c.Dir, "fail", c.Site) }

type demoHealCmd struct {
	Site string `arg:"" help:"Site, geo-config or console."`
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
