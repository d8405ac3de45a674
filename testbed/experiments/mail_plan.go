package experiments

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

// mailWay is where the mailboxes are.
type mailWay struct {
	Name    string `json:"way"`
	key     string // in the setting
	divided bool   // over the servers' local disks
	smtp    int    // port; each way has its own
	imap    int
}

func mailWays() []mailWay {
	return []mailWay{
		{Name: "static partition", key: "static", divided: true, smtp: 25, imap: 143},
		{Name: "Cartwheel", key: "mount", smtp: 2525, imap: 1143},
	}
}

// mailFolder holds the users' folders.
const mailFolder = "mail"

// mailPlan is what is run, on what.
type mailPlan struct {
	sites, servers, hosts int
	users                 load.MailUsers
	rate                  float64 // kbit/s
	levels                []int   // clients at each site
	each                  time.Duration
	idle                  time.Duration // how long what crosses the wide area without load is counted
	reads, mean           float64
	sizes                 string // file
	probe                 int
	chosen                []mailWay
	cues                  string
}

func planMail(env *experiment.Env) (mailPlan, error) {
	const op fault.Op = "experiments.planMail"
	p := mailPlan{sizes: env.Text("sizes"), cues: env.Text("cues")}
	short := map[string]float64{"sites": 2, "servers": 1, "hosts": 1, "users": 10, "for": 3, "probe": 2}
	v := map[string]float64{}
	for _, name := range []string{"sites", "servers", "hosts", "users", "rate", "for", "reads", "mean", "probe"} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if less, ok := short[name]; ok && env.Short {
			v[name] = min(v[name], less)
		}
	}
	p.sites, p.servers, p.hosts, p.probe = int(v["sites"]), int(v["servers"]), int(v["hosts"]), int(v["probe"])
	p.users.Count, p.rate, p.reads, p.mean = int(v["users"]), v["rate"], v["reads"], v["mean"]
	p.idle = 5 * time.Second
	p.each = time.Duration(v["for"] * float64(time.Second))
	switch {
	case p.sites < 2 || p.servers < 1 || p.hosts < 1 || p.probe < 1 || p.users.Count < p.sites*p.servers:
		return p, fault.E(fault.Usage, op, "sites", "there are two sites, one server, one host with clients and one message to count at least, and a user for each server")
	case !(p.rate >= 1) || !(p.reads >= 0 && p.reads <= 1) || !(p.mean >= 1) || p.each <= 0:
		return p, fault.E(fault.Usage, op, "rate", "a site has a link, a message a size, a number of clients some time, and the share of sessions of IMAP is from 0 to 1")
	case !strings.Contains(p.cues, mailSite):
		return p, fault.Errorf(fault.Usage, op, "cues", "%q has no %s, which stands for the user's site", p.cues, mailSite)
	}
	for i := range p.sites {
		p.users.Sites = append(p.users.Sites, mailSiteName(i))
	}
	levels, err := numbers(env.Text("at"), 1, 1000)
	if err != nil {
		return p, err
	}
	if env.Short {
		p.idle, levels = time.Second, []float64{2}
	}
	for _, n := range levels {
		p.levels = append(p.levels, int(n))
	}
	if p.sizes != "" {
		if p.sizes, err = filepath.Abs(p.sizes); err != nil {
			return p, fault.FromOS(op, p.sizes, err)
		}
		if _, err := load.ReadMailSizes(p.sizes); err != nil {
			return p, err
		}
	}
	p.chosen, err = chosenWays(env.Text("ways"))
	return p, err
}

func chosenWays(list string) (out []mailWay, err error) {
	for _, key := range strings.Split(list, ",") {
		i := slices.IndexFunc(mailWays(), func(w mailWay) bool { return w.key == strings.TrimSpace(key) })
		if i < 0 {
			return nil, fault.Errorf(fault.Usage, "experiments.planMail", "ways", "%q is no way: there are static and mount", key)
		}
		out = append(out, mailWays()[i])
	}
	return out, nil
}

// mailSite stands for a user's site in the cues.
const mailSite = "SITE"

func mailSiteName(i int) string { return fmt.Sprintf("s%d", i+1) }

// mailFast is the rate of the sites' links before and after the load, in bit/s: nodes
// find each other, mailboxes are made, and messages are looked for.
const mailFast = 100e6

// topology has the sites with their servers and clients, and one that has
// geo-config. The links have the plan's rate under load only.
func (p mailPlan) topology() (*topology.Topology, error) {
	var sites strings.Builder
	for _, s := range p.users.Sites {
		fmt.Fprintf(&sites, "  - {name: %s, nodes: %d, clients: %d}\n", s, p.servers, p.hosts)
	}
	return described("mail", fmt.Sprintf(`
name: mail
mounts: nodes
geo_config: keep-c1
defaults: {lan: {rate: 100 Mbps}, link: {rate: %g bps}}
sites:
%s  - {name: keep, nodes: 0, clients: 1}
wan: {rtt: 100 ms}
`, mailFast, &sites))
}

// clientsOf is how many of a site's clients are at the host of that number.
func (p mailPlan) clientsOf(host, level int) int { return (level + p.hosts - 1 - host) / p.hosts }
