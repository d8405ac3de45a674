package command

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

type snapshotScheduleCmd struct {
	Name   string `arg:"" help:"The schedule's name, with which the names of its snapshots begin."`
	Every  string `required:"" placeholder:"AGE" help:"Make one so often, such as 15m, 1h or 1d: at whole multiples in UTC."`
	Keep   string `required:"" placeholder:"AGE" help:"Delete each after so long, such as 48h, 30d or 8w."`
	DryRun bool   `help:"Only check whether it can be made."`
}

// Help shows how it is called.
func (snapshotScheduleCmd) Help() string {
	return help(`cartwheel snapshot schedule hourly --every 1h --keep 48h

The nodes make hourly-20261122T1000Z and so on. Several schedules keep the past the thinner the older it is: one of 1h for 48h, one of 1d for 30d. Deleting the schedule's name ends it; what it made stays until it expires.`)
}

// Run has a node make it.
func (c snapshotScheduleCmd) Run(e *env) error {
	every, err := parseKeep(c.Every)
	if err != nil {
		return err
	}
	keep, err := parseKeep(c.Keep)
	if err != nil {
		return err
	}
	if every <= 0 || keep <= 0 {
		return fault.E(fault.Usage, "command.Run", c.Name, "needs times above 0 as --every and --keep")
	}
	v, err := e.orderSnapshot(&pb.SnapshotRequest{Schedule: c.Name, KeepNs: int64(keep), EveryNs: int64(every), DryRun: c.DryRun})
	if err != nil {
		return err
	}
	verb := "is made"
	if c.DryRun {
		verb = "would be made"
	}
	return e.done(scheduleView{c.Name, v.By, every.Seconds(), keep.Seconds()}, "a snapshot %s every %v, and kept for %v: %s-...", verb, every, keep, c.Name)
}

// scheduleView is one schedule as the commands print it.
type scheduleView struct {
	Name         string  `json:"name"`
	By           string  `json:"by"`
	EverySeconds float64 `json:"every_seconds"`
	KeepSeconds  float64 `json:"keep_seconds"`
}

func viewSchedule(s *pb.Schedule) scheduleView {
	return scheduleView{s.GetName(), s.GetBy(), time.Duration(s.GetEveryNs()).Seconds(), time.Duration(s.GetKeepNs()).Seconds()}
}

// schedulesText prints schedules for people.
func schedulesText(w io.Writer, list []scheduleView) {
	if len(list) == 0 {
		return
	}
	duration := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SCHEDULE\tEVERY\tKEEPS FOR\tMADE BY")
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%v\t%v\t%s\n", s.Name, duration(s.EverySeconds), duration(s.KeepSeconds), s.By)
	}
	_ = t.Flush() // whoever reads it has gone
}
