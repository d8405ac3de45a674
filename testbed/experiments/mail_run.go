package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/wan"
)

// mailRound is what one number of clients got.
type mailRound struct {
	level  int
	began  time.Time
	took   time.Duration // until the last request ended
	events []load.MailEvent
	wan    wanUse
}

// wanUse is what crossed the wide area.
type wanUse struct {
	Bytes   uint64 `json:"bytes"`
	Packets uint64 `json:"packets"`
}

// mailRecord is what happened in one way.
type mailRecord struct {
	mailWay
	rounds   []mailRound
	probes   []mailProbe
	idle     float64 // bytes a second over the wide area without load
	deferred int     // deliveries that did not succeed at once
	kept     mailKept
}

// MarshalJSON keeps what can be drawn again; the events have files of their own.
func (r mailRecord) MarshalJSON() ([]byte, error) {
	type round struct {
		Clients int       `json:"clients_at_each_site"`
		Began   time.Time `json:"began"`
		WAN     wanUse    `json:"wan"`
	}
	var rounds []round
	for _, at := range r.rounds {
		rounds = append(rounds, round{at.level, at.began, at.wan})
	}
	return json.Marshal(map[string]any{
		"way": r.Name, "rounds": rounds, "probes": r.probes, "idle_bytes_per_second": r.idle, "deferred": r.deferred, "kept": r.kept,
	})
}

// across counts what crosses the wide area while fn runs.
func across(ctx context.Context, b *bed, fn func() error) (wanUse, error) {
	before, err := b.Network().Stats(ctx)
	if err != nil {
		return wanUse{}, err
	}
	if err := fn(); err != nil {
		return wanUse{}, err
	}
	after, err := b.Network().Stats(ctx)
	if err != nil {
		return wanUse{}, err
	}
	return used(after.Since(before)), nil
}

func used(s *wan.Stats) (u wanUse) {
	for _, c := range s.Pairs {
		u.Bytes, u.Packets = u.Bytes+c.Through, u.Packets+c.Delivered
	}
	return u
}

// ways runs them one after the other, each with servers and mailboxes of its own.
func (p mailPlan) ways(ctx context.Context, b *bed, path func(string) string) ([]mailRecord, error) {
	// The servers run as another user.
	for dir, mode := range map[string]os.FileMode{"": 0o755, "mnt": 0o755, "logs": 0o777} {
		if err := os.Chmod(filepath.Join(b.Dir(), dir), mode); err != nil {
			return nil, fault.FromOS("experiments.ways", dir, err)
		}
	}
	var records []mailRecord
	for _, w := range p.chosen {
		r, err := p.way(ctx, b, w, path)
		if err != nil {
			return records, err
		}
		records = append(records, r)
	}
	return records, nil
}

func (p mailPlan) way(ctx context.Context, b *bed, w mailWay, path func(string) string) (mailRecord, error) {
	r := mailRecord{mailWay: w}
	b.say("mail: %s: makes the mailboxes of %d users", w.Name, p.users.Count)
	servers, err := p.serve(ctx, b, w)
	if err != nil {
		return r, err
	}
	children := b.children
	if err := p.links(ctx, b, wan.Rate(1000*p.rate)); err != nil {
		return r, err
	}
	idle, err := across(ctx, b, func() error { return sleep(ctx, p.idle) })
	if err != nil {
		return r, err
	}
	r.idle = float64(idle.Bytes) / p.idle.Seconds()
	var events []load.MailEvent
	if r.probes, events, err = p.probes(ctx, b, w, path); err != nil {
		return r, err
	}
	for _, level := range p.levels {
		b.say("mail: %s: %d clients at each site", w.Name, level)
		round, err := p.round(ctx, b, w, level, path)
		if err != nil {
			return r, err
		}
		r.rounds, events = append(r.rounds, round), append(events, round.events...)
		if err := p.flush(ctx, b, servers); err != nil {
			return r, err
		}
	}
	for _, c := range children {
		if !c.Running() {
			return r, fault.Errorf(fault.Other, "experiments.way", c.Name, "ended by itself (%s); log: %s", c.How(), c.LogFile())
		}
	}
	_ = supervisor.EndAll(children, nil) // one that does not stop is killed, which is no error
	b.children = nil
	deferred := map[string]bool{}
	for _, s := range servers {
		late, err := s.deferred()
		if err != nil {
			return r, err
		}
		for _, id := range late {
			deferred[id] = true
		}
		r.deferred += len(late)
	}
	if err := p.links(ctx, b, mailFast); err != nil {
		return r, err
	}
	b.say("mail: %s: looks for every message", w.Name)
	boxes, err := p.boxes(ctx, b, w, servers)
	if err != nil {
		return r, err
	}
	r.kept = judgeMail(p.users, events, deferred, boxes)
	return r, nil
}

// mailWords are a load's words, for clients at a site.
func (p mailPlan) mailWords(b *bed, w mailWay, site int, client, events string) []string {
	words := []string{
		"mail", "--users", strconv.Itoa(p.users.Count), "--home", strconv.Itoa(site), "--smtp", strconv.Itoa(w.smtp), "--imap", strconv.Itoa(w.imap), "--client", client,
		"--mean", fmt.Sprint(p.mean), "--seed", strconv.FormatUint(b.env.Seed, 10), "--events", events,
	}
	for _, s := range p.users.Sites {
		words = append(words, "--site", s)
	}
	if p.sizes != "" {
		words = append(words, "--sizes", p.sizes)
	}
	if w.divided {
		words = append(words, "--divided")
	}
	return words
}

// round has so many clients at each site send and read.
func (p mailPlan) round(ctx context.Context, b *bed, w mailWay, level int, path func(string) string) (mailRound, error) {
	r := mailRound{level: level}
	var files []string
	var err error
	r.wan, err = across(ctx, b, func() error {
		r.began = time.Now()
		g, gctx := errgroup.WithContext(ctx)
		for i, site := range p.users.Sites {
			var addresses []string
			host := 0
			for _, h := range b.Topology().At(site) {
				if h.Node {
					addresses = append(addresses, "--server", h.Address.String())
					continue
				}
				clients := p.clientsOf(host, level)
				if host++; clients == 0 {
					continue
				}
				at, err := b.host(h)
				if err != nil {
					return err
				}
				client := fmt.Sprintf("%s-%d-%s", w.key, level, h.Name)
				files = append(files, path("events-"+client+".jsonl"))
				words := append(p.mailWords(b, w, i, client, files[len(files)-1]), "--at-once", strconv.Itoa(clients), "--reads", fmt.Sprint(p.reads), "--for", p.each.String())
				words = append(words, addresses...)
				g.Go(func() error { return at.work(gctx, nil, words...) })
			}
		}
		err := g.Wait()
		r.took = time.Since(r.began)
		return err
	})
	for _, f := range files {
		events, rerr := readFile(f, load.ReadMailEvents)
		if rerr != nil && err == nil {
			err = rerr
		}
		r.events = append(r.events, events...)
	}
	return r, err
}

// flushLimit bounds the wait for messages that could not be delivered at once.
const flushLimit = 2 * time.Minute

// flush has all servers deliver what they could not.
func (p mailPlan) flush(ctx context.Context, b *bed, servers []mailServer) error {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	for {
		all := 0
		for _, s := range servers {
			left, err := s.flush(ctx, b)
			if err != nil {
				return err
			}
			all += left
		}
		if all == 0 {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return fault.Errorf(fault.Unreachable, "experiments.flush", mailFolder, "%d messages that SMTP took are still not delivered: the logs of SMTP say why", all)
		}
	}
}

// boxes reads all mailboxes: those on the mounts through the last site's mount,
// without a cue, over links that are as fast as a LAN.
func (p mailPlan) boxes(ctx context.Context, b *bed, w mailWay, servers []mailServer) (out []load.Mailbox, err error) {
	if w.divided {
		for _, s := range servers {
			boxes, err := load.Mailboxes(ctx, s.mail)
			if err != nil {
				return nil, err
			}
			out = append(out, boxes...)
		}
		return out, nil
	}
	at, err := b.at(p.users.Sites[p.sites-1])
	if err != nil {
		return nil, err
	}
	if err := at.cold(ctx); err != nil {
		return nil, err
	}
	return out, at.work(ctx, &out, "boxes", filepath.Join(at.mount, mailFolder))
}

// links gives all sites links of another rate, in bit/s.
func (p mailPlan) links(ctx context.Context, b *bed, rate wan.Rate) error {
	return b.Network().Change(ctx, func(c *wan.Config) error {
		for _, name := range p.users.Sites {
			s := c.Site(name)
			s.Up, s.Down = rate, rate
		}
		return nil
	})
}
