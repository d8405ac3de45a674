package cli

import (
	"fmt"
	"io"
	"os"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/wan"
	"cartwheel.dev/testbed/wan/calibration"
)

type calibrateCmd struct {
	Quick bool   `help:"Fewer delays and rates: about half a minute instead of three."`
	Seed  uint64 `help:"Draws jitter and loss." default:"1"`
}

// Help shows how it is called.
func (calibrateCmd) Help() string {
	return help("cartwheel-testbed calibrate --quick\n\nWhat was measured while the emulator was late is measured again, three times at the most. " +
		"It fails if anything is not as wanted, or if the emulator was late each time.")
}

// Run calibrates.
func (c calibrateCmd) Run(e *env) error {
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, "cli.calibrate", "", err)
	}
	o := calibration.Options{Prefix: lab.Prefix, Seed: c.Seed, Quick: c.Quick, Emulator: wan.Options{Emulator: []string{self, "emulate"}}}
	if !e.json {
		fmt.Fprintf(e.stdio.Out, "%-50s %10s %10s %10s .. %-9s\n", "WHAT", "WANTED", "MEASURED", "RIGHT FROM", "TO")
		o.Progress = func(r calibration.Row) { calibrationLine(e.stdio.Out, r) }
	}
	report, err := calibration.Run(e.ctx, o)
	if err != nil {
		return err
	}
	if err := e.print(report, func(w io.Writer) {
		if report.Void != "" {
			fmt.Fprintln(w, report.Void)
		}
	}); err != nil {
		return err
	}
	if report.Void != "" {
		return fault.E(fault.Overloaded, "cli.calibrate", "emulator", "was late, so that nothing measured now counts: give this machine less to do, and try again")
	}
	if !report.OK() {
		return fault.E(fault.Other, "cli.calibrate", "emulator", "does not do what it is asked for; the lines marked WRONG say where")
	}
	return nil
}

func calibrationLine(w io.Writer, r calibration.Row) {
	fmt.Fprintf(w, "%-50s %10.6g %10.6g %10.6g .. %-9.6g %-8s %s\n", r.Name, r.Wanted, r.Measured, r.Low, r.High, r.Unit, r.Verdict())
}
