package load

import (
	"context"
	"io"
	"time"
)

type mailFlags struct {
	Site     []string      `help:"A site of users." required:""`
	Users    int           `help:"Users of all sites." default:"100"`
	Home     int           `help:"Number of the site where the clients stand." default:"0"`
	Server   []string      `help:"Address of a server of that site." required:""`
	SMTP     int           `name:"smtp" help:"Port of SMTP." default:"25"`
	IMAP     int           `name:"imap" help:"Port of IMAP." default:"143"`
	Divided  bool          `help:"Each user's mailbox is at one server."`
	Client   string        `help:"Name of these clients." required:""`
	AtOnce   int           `help:"Clients." default:"1"`
	Reads    float64       `help:"Share of sessions of IMAP." default:"0.1"`
	Only     int           `help:"The one user; -1: random ones." default:"-1"`
	Requests int           `help:"Requests of each client; 0: as many as there is time for." default:"0"`
	For      time.Duration `help:"How long." default:"10s"`
	Limit    time.Duration `help:"How long one request may take." default:"120s"`
	Sizes    string        `help:"File of the messages' sizes; without it they are log-normal." type:"path"`
	Mean     float64       `help:"Mean bytes of a message." default:"6900"`
	Seed     uint64        `help:"Seed of the requests." default:"1"`
	Events   string        `help:"File of the events." type:"path" required:""`
}

func (f mailFlags) run(ctx context.Context) error {
	o := MailOptions{
		MailUsers: MailUsers{Sites: f.Site, Count: f.Users}, Home: f.Home, Servers: f.Server, SMTP: f.SMTP, IMAP: f.IMAP, Divided: f.Divided,
		Client: f.Client, AtOnce: f.AtOnce, Reads: f.Reads, Only: f.Only, Requests: f.Requests, For: f.For, Limit: f.Limit,
		Sizes: MailSizes{Mean: f.Mean}, Seed: f.Seed,
	}
	if f.Sizes != "" {
		var err error
		if o.Sizes.List, err = ReadMailSizes(f.Sizes); err != nil {
			return err
		}
	}
	return into(f.Events, func(out io.Writer) error { return Mail(ctx, o, out) })
}

type mailboxFlags struct {
	Dir string `arg:"" help:"The folder of the users' folders." type:"path"`
}
