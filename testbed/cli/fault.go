package cli

import (
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
)

type faultCmd struct {
	nameFlag
	Cut      faultCutCmd      `cmd:"" help:"Let nothing pass between two sites."`
	Off      faultOffCmd      `cmd:"" help:"Cut a site off from all others."`
	Heal     faultHealCmd     `cmd:"" help:"Restore the network as the topology has it: all of it, at one site, or between two."`
	Blackout faultBlackoutCmd `cmd:"" help:"Cut a site off again and again."`
	Set      faultSetCmd      `cmd:"" help:"Change what lies between two sites."`
	Unplug   faultUnplugCmd   `cmd:"" help:"Take a host's cable out."`
	Plug     faultPlugCmd     `cmd:"" help:"Put a host's cable in again."`
	Kill     faultKillCmd     `cmd:"" help:"Kill a host's node (or mount, or geo-config), as a loss of power would."`
	Stop     faultStopCmd     `cmd:"" help:"End a host's node (or mount, or geo-config) in order, as when a machine is shut down."`
	Pause    faultPauseCmd    `cmd:"" help:"Halt a host's node (or mount, or geo-config) without ending it, as a machine that hangs would."`
	Start    faultStartCmd    `cmd:"" help:"Resume what is paused at a host, and start what does not run."`
}

// ask has the lab do it.
func (e *env) ask(f lab.Fault) error {
	end := e.progress("%v", f)
	_, err := lab.Ask(e.ctx, e.lab, lab.Request{Do: lab.AskFault, Fault: &f})
	end()
	if err != nil {
		return err
	}
	return e.done(f, "done: %v", f)
}

type sitesArgs struct {
	A string `arg:"" help:"Site."`
	B string `arg:"" help:"The other site."`
}

type oneWayFlag struct {
	OneWay bool `help:"Only from the first to the second."`
}

type faultCutCmd struct {
	sitesArgs
	oneWayFlag
}

// Help shows how it is called.
func (faultCutCmd) Help() string { return help("cartwheel-testbed fault cut s1 s2 --one-way") }

// Run cuts.
func (c faultCutCmd) Run(e *env) error {
	return e.ask(lab.Fault{Do: lab.Cut, A: c.A, B: c.B, OneWay: c.OneWay})
}

type faultOffCmd struct {
	Site string `arg:"" help:"Site."`
}

// Help shows how it is called.
func (faultOffCmd) Help() string { return help("cartwheel-testbed fault off s1") }

// Run cuts it off.
func (c faultOffCmd) Run(e *env) error { return e.ask(lab.Fault{Do: lab.Off, A: c.Site}) }

type faultHealCmd struct {
	A string `arg:"" optional:"" help:"Site; none: everything."`
	B string `arg:"" optional:"" help:"The other site, for what lies between."`
}

// Help shows how it is called.
func (faultHealCmd) Help() string { return help("cartwheel-testbed fault heal") }

// Run heals.
func (c faultHealCmd) Run(e *env) error { return e.ask(lab.Fault{Do: lab.Heal, A: c.A, B: c.B}) }

type faultBlackoutCmd struct {
	Site  string        `arg:"" help:"Site."`
	Down  time.Duration `help:"How long it is off each time." default:"30s"`
	Every time.Duration `help:"How often." default:"60s"`
}

// Help shows how it is called.
func (faultBlackoutCmd) Help() string {
	return help("cartwheel-testbed fault blackout s1 --down 30s --every 60s")
}

// Run sets the schedule.
func (c faultBlackoutCmd) Run(e *env) error {
	return e.ask(lab.Fault{Do: lab.Blackout, A: c.Site, Down: c.Down, Every: c.Every})
}

type faultSetCmd struct {
	sitesArgs
	oneWayFlag
	Delay     *string `help:"Time from one to the other: half the round trip." placeholder:"TIME"`
	Jitter    *string `help:"Up to so much more or less." placeholder:"TIME"`
	Rate      *string `help:"Such as 6Mbps; none: no limit." placeholder:"RATE"`
	Queue     *string `help:"Bytes that wait for the rate." placeholder:"SIZE"`
	Loss      *string `help:"Share of packets lost, such as 0.1%." placeholder:"SHARE"`
	Burst     *string `help:"Packets lost in a row, on average." placeholder:"N"`
	Duplicate *string `help:"Share that arrives twice." placeholder:"SHARE"`
	Reorder   *string `help:"Share that is held back." placeholder:"SHARE"`
	Corrupt   *string `help:"Share that has a bit flipped." placeholder:"SHARE"`
}

// Help shows how it is called.
func (faultSetCmd) Help() string {
	return help("cartwheel-testbed fault set s1 s2 --delay 50ms --loss 0.1%")
}

// Run changes the path.
func (c faultSetCmd) Run(e *env) error {
	change, err := c.change()
	if err != nil {
		return err
	}
	return e.ask(lab.Fault{Do: lab.Set, A: c.A, B: c.B, OneWay: c.OneWay, Change: change})
}

func (c faultSetCmd) change() (lab.Change, error) {
	given := map[string]string{}
	for name, text := range map[string]*string{
		"delay": c.Delay, "jitter": c.Jitter, "rate": c.Rate, "queue": c.Queue, "loss": c.Loss, "burst": c.Burst,
		"duplicate": c.Duplicate, "reorder": c.Reorder, "corrupt": c.Corrupt,
	} {
		if text != nil {
			given[name] = *text
		}
	}
	change, err := lab.ParseChange(given)
	return change, fault.Wrap(fault.Usage, "cli.fault", "", err)
}

type hostArg struct {
	Host string `arg:"" help:"Host, or a site that has one."`
}

type whichFlag struct {
	hostArg
	What []string `help:"Processes: node, mount, geo-config (default: the node, or the mount where there is no node)." enum:"node,mount,geo-config" placeholder:"WHAT"`
}

func (w whichFlag) fault(do lab.Verb) lab.Fault {
	f := lab.Fault{Do: do, A: w.Host}
	for _, p := range w.What {
		f.Which = append(f.Which, lab.Process(p))
	}
	return f
}

type faultUnplugCmd struct{ hostArg }

// Help shows how it is called.
func (faultUnplugCmd) Help() string { return help("cartwheel-testbed fault unplug s1-1") }

// Run unplugs.
func (c faultUnplugCmd) Run(e *env) error { return e.ask(lab.Fault{Do: lab.Unplug, A: c.Host}) }

type faultPlugCmd struct{ hostArg }

// Help shows how it is called.
func (faultPlugCmd) Help() string { return help("cartwheel-testbed fault plug s1-1") }

// Run plugs.
func (c faultPlugCmd) Run(e *env) error { return e.ask(lab.Fault{Do: lab.Plug, A: c.Host}) }

type faultKillCmd struct{ whichFlag }

// Help shows how it is called.
func (faultKillCmd) Help() string { return help("cartwheel-testbed fault kill s1-1 --what node,mount") }

// Run kills.
func (c faultKillCmd) Run(e *env) error { return e.ask(c.fault(lab.Kill)) }

type faultStopCmd struct{ whichFlag }

// Help shows how it is called.
func (faultStopCmd) Help() string { return help("cartwheel-testbed fault stop s1-1") }

// Run stops.
func (c faultStopCmd) Run(e *env) error { return e.ask(c.fault(lab.Stop)) }

type faultPauseCmd struct{ whichFlag }

// Help shows how it is called.
func (faultPauseCmd) Help() string { return help("cartwheel-testbed fault pause s1-1") }

// Run pauses.
func (c faultPauseCmd) Run(e *env) error { return e.ask(c.fault(lab.Pause)) }

type faultStartCmd struct{ whichFlag }

// Help shows how it is called.
func (faultStartCmd) Help() string { return help("cartwheel-testbed fault start s1-1") }

// Run starts.
func (c faultStartCmd) Run(e *env) error { return e.ask(c.fault(lab.Start)) }
