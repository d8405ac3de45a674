package cli

import (
	"encoding/json"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/wan/emulator"
)

// emulateCmd is the emulator's process, which a network starts.
type emulateCmd struct{}

// Run passes packets until it is told to end.
func (emulateCmd) Run(e *env) error { return emulator.Run(e.ctx, e.stdio.Err) }

// enrolCmd is what a lab does inside a host.
type enrolCmd struct {
	Enrolment string `arg:""`
}

// Run does it.
func (c enrolCmd) Run(e *env) error {
	var what lab.Enrolment
	if err := json.Unmarshal([]byte(c.Enrolment), &what); err != nil {
		return fault.Wrap(fault.Usage, "cli.enrol", "", err)
	}
	return what.Run(e.ctx)
}
