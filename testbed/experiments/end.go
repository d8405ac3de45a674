package experiments

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// end keeps the report of an experiment with how that went, and then returns wrong: what
// the experiment found that must not be, nil where it found nothing.
func (o outcome) end(f *report.Folder, env *experiment.Env, r report.Result, wrong error) error {
	o.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	return wrong
}

// lost is an error with the first acknowledged change that a run lost; nil where none was.
// of gives a run's name and what was found of its changes.
func lost[Run any](runs []Run, of func(Run) (string, load.Verdict)) error {
	for _, run := range runs {
		if name, v := of(run); len(v.Lost) > 0 {
			return fault.Errorf(fault.Corrupt, "experiments.lost", name, "%d acknowledged changes were lost: %s", len(v.Lost), v.Lost[0])
		}
	}
	return nil
}
