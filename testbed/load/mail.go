package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// MailUsers are the users of a mail service, spread evenly over its sites. User n
// is at home at site n modulo the number of sites.
type MailUsers struct {
	Sites []string
	Count int
}

// Site is where a user is at home.
func (u MailUsers) Site(n int) string { return u.Sites[n%len(u.Sites)] }

// Name is a user's name.
func (u MailUsers) Name(n int) string { return fmt.Sprintf("u%05d", n) }

// Address is a user's mail address. Its domain is the user's site.
func (u MailUsers) Address(n int) string { return u.Name(n) + "@" + u.Site(n) }

// Server is which of a site's servers keeps a user's mailbox, where each keeps
// its own part of them.
func (u MailUsers) Server(n, servers int) int { return n / len(u.Sites) % servers }

// at returns how many users are at home at the site of that number.
func (u MailUsers) at(site int) int {
	return (u.Count - site + len(u.Sites) - 1) / len(u.Sites)
}

// MailOptions say what the clients of one host do.
type MailOptions struct {
	MailUsers
	Home     int      // number of the clients' own site
	Servers  []string // addresses of that site's servers
	SMTP     int      // their port of SMTP
	IMAP     int      // their port of IMAP
	Divided  bool     // each user's mailbox is at one server, and IMAP goes there
	Client   string   // tells apart hosts and rounds; part of the messages' IDs
	AtOnce   int      // clients, each with one request in flight
	Reads    float64  // share of the requests that are sessions of IMAP
	Only     int      // the one user who gets messages and reads; -1: random ones
	Requests int      // of each client; 0: as many as there is time for
	For      time.Duration
	Limit    time.Duration // of one request
	Sizes    MailSizes
	Seed     uint64
}

func (o MailOptions) check(op fault.Op) error {
	switch {
	case len(o.Sites) == 0 || o.Count < len(o.Sites) || o.Home < 0 || o.Home >= len(o.Sites):
		return fault.E(fault.Usage, op, "users", "each site has one user at least, and the clients stand at one of the sites")
	case len(o.Servers) == 0 || o.AtOnce < 1 || o.Limit <= 0 || o.Client == "":
		return fault.E(fault.Usage, op, "servers", "there is a server, a client with a name, and a limit of one request at least")
	case !(o.Reads >= 0 && o.Reads <= 1) || o.Only >= o.Count:
		return fault.E(fault.Usage, op, "reads", "the share of sessions of IMAP is from 0 to 1, and the one user is one of the users")
	}
	return nil
}

// Kinds of requests.
const (
	MailSend = "smtp"
	MailRead = "imap"
)

// MailEvent is one request of a client: a message that SMTP took, or a session of
// IMAP that fetched all messages of a mailbox and removed them.
type MailEvent struct {
	Kind   string `json:"kind"`
	User   int    `json:"user"` // who gets the message, or reads
	Server string `json:"server"`
	At     int64  `json:"at_us"` // since 1970
	Took   int64  `json:"took_us"`
	Bytes  int    `json:"bytes"`        // of the messages
	ID     string `json:"id,omitempty"` // of the message that was sent
	// Seen are the messages that a session fetched. Removed says that they are
	// gone; without it, each of them may be.
	Seen    []string `json:"seen,omitempty"`
	Removed bool     `json:"removed,omitempty"`
	Wrong   int      `json:"wrong,omitempty"` // fetched messages whose content is not what was sent
	Err     string   `json:"err,omitempty"`
}

// End is when the request ended.
func (e MailEvent) End() time.Time { return time.UnixMicro(e.At + e.Took) }

// Mail has clients send and read mail until o.For has passed. A request that is
// under way then goes on to its end. It writes every request to out as it ends, a
// line of JSON each. Errors of requests are events.
func Mail(ctx context.Context, o MailOptions, out io.Writer) error {
	const op fault.Op = "load.Mail"
	if err := o.check(op); err != nil {
		return err
	}
	for _, s := range o.Servers {
		if err := listening(ctx, []string{at(s, o.SMTP), at(s, o.IMAP)}); err != nil {
			return err
		}
	}
	enough, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	log := &eventLog{w: bufio.NewWriterSize(out, 1<<16)}
	err := each(ctx, o.AtOnce, o.AtOnce, func(ctx context.Context, i int) error {
		c := mailClient{o: o, id: i, chance: rand.New(rand.NewPCG(o.Seed, seedOf(o.Client)<<16|uint64(i))), log: log, lines: map[string]*smtpLine{}}
		defer c.end()
		for n := 0; enough.Err() == nil && (o.Requests == 0 || n < o.Requests); n++ {
			if err := c.one(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
	return fault.Wrap(fault.IO, op, o.Client, errors.Join(err, log.flush()))
}

func at(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// mailClient is one client: one request at a time.
type mailClient struct {
	o      MailOptions
	id     int
	chance *rand.Rand
	log    *eventLog
	lines  map[string]*smtpLine // that are open, by the server
}

func (c *mailClient) end() {
	for _, l := range c.lines {
		l.close()
	}
}

// one makes request n. Only the log fails, or ctx ends.
func (c *mailClient) one(ctx context.Context, n int) error {
	e := c.draw(n)
	limited, cancel := context.WithTimeout(ctx, c.o.Limit)
	defer cancel()
	e.At = time.Now().UnixMicro()
	var err error
	if e.Kind == MailSend {
		err = c.send(limited, &e)
	} else {
		err = c.read(limited, &e)
	}
	e.Took = time.Now().UnixMicro() - e.At
	if err != nil {
		e.Err = err.Error()
	}
	if err := c.log.add(e); err != nil {
		return err
	}
	if err != nil {
		return wait(ctx, webPause)
	}
	return ctx.Err()
}

// draw decides what request n is: all of it is fixed by the seed.
func (c *mailClient) draw(n int) MailEvent {
	o, e := c.o, MailEvent{Kind: MailSend}
	server := c.chance.IntN(len(o.Servers))
	if c.chance.Float64() < o.Reads {
		e.Kind = MailRead
		e.User = o.Home + len(o.Sites)*c.chance.IntN(o.at(o.Home))
	} else {
		e.User, e.Bytes = c.chance.IntN(o.Count), o.Sizes.draw(c.chance)
		e.ID = fmt.Sprintf("%s.%d.%d", o.Client, c.id, n)
	}
	if o.Only >= 0 {
		e.User = o.Only
	}
	if e.Kind == MailRead && o.Divided {
		server = o.Server(e.User, len(o.Servers))
	}
	e.Server = o.Servers[server]
	return e
}

// ReadMailEvents reads what Mail wrote.
func ReadMailEvents(in io.Reader) ([]MailEvent, error) {
	return readLines[MailEvent]("load.ReadMailEvents", in)
}
