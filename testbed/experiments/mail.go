package experiments

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

func mail() experiment.Experiment {
	return experiment.Experiment{
		Name:    "mail",
		Summary: "SMTP and IMAP servers keep mailboxes on the mounts, beside mailboxes divided over the servers' local disks",
		Settings: []experiment.Setting{
			{Name: "sites", Default: "5", Help: "sites with servers, clients and users (2 in the short form)"},
			{Name: "servers", Default: "3", Help: "servers at each site, with a node and a mount each (1 in the short form)"},
			{Name: "hosts", Default: "3", Help: "hosts with clients at each site (1 in the short form)"},
			{Name: "users", Default: "300", Help: "users of all sites (10 in the short form)"},
			{Name: "rate", Default: "1000", Help: "each site's link, kbit/s"},
			{Name: "at", Default: "1,3,6,12,24", Help: "clients at each site, one number after the other (2 in the short form)"},
			{Name: "for", Default: "40", Help: "seconds with each number of clients (3 in the short form)"},
			{Name: "reads", Default: "0.1", Help: "share of the requests that are sessions of IMAP; the others are messages"},
			{Name: "sizes", Default: "", Help: "file of messages' sizes, the first of each line; without it they are log-normal"},
			{Name: "mean", Default: "6900", Help: "mean bytes of the log-normal messages"},
			{Name: "probe", Default: "10", Help: "messages of a kind whose cost is counted alone (2 in the short form)"},
			{Name: "ways", Default: "static,mount", Help: "what is run: mailboxes on local disks, mailboxes on the mounts"},
			{Name: "cues", Default: ".EventualConsistency/.MaxTime=10000/.Site=SITE/.KeepTogether/.RepLevel=1", Help: "cues of a user's folder; SITE is the user's site"},
		},
		Run: runMail,
	}
}

func runMail(ctx context.Context, env *experiment.Env) error {
	p, err := planMail(env)
	if err != nil {
		return err
	}
	if err := mailNeeds(); err != nil {
		return err
	}
	t, err := p.topology()
	if err != nil {
		return err
	}
	f, err := env.Folder("mail", t)
	if err != nil {
		return err
	}
	var records []mailRecord
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		records, err = p.ways(ctx, b, f.Path)
		for _, r := range records {
			b.final = b.final || r.kept.bad() > 0
		}
		return err
	})
	if err != nil {
		return err
	}
	r := mailReport(p, records)
	out.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	for _, record := range records {
		if k := record.kept; k.bad() > 0 {
			return fault.Errorf(fault.Corrupt, "experiments.runMail", record.Name,
				"of %d acknowledged messages %d are lost, %d are there twice, %d at another user, and %d are not what was sent: %v", k.Acknowledged, k.Lost, k.Twice, k.Misplaced, k.Wrong, k.Some)
		}
	}
	return nil
}
