package experiments

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// end writes an experiment's report, which says how the run went. Then it returns wrong,
// the error about what the experiment showed to be broken; nil: nothing was.
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
