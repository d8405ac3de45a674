package experiments

import (
	"context"
	"fmt"
	"strconv"

	"cartwheel.dev/testbed/load"
)

// mailProbe is what one request costs on its own: the mean of a few, one after the
// other, while nothing else runs.
type mailProbe struct {
	What     string    `json:"what"`
	Requests int       `json:"requests"`
	Took     []float64 `json:"took_ms"`
	WAN      wanUse    `json:"wan"`    // of all requests
	Counts   []count   `json:"counts"` // of the server's mount; none without one
}

// operations counts those of the kernel that the server's mount served, and the
// round trips to other sites that they waited for.
func (p mailProbe) operations() (all, trips int) {
	for _, c := range p.Counts {
		all, trips = all+c.Count, trips+c.WAN
	}
	return all, trips
}

// mailProbeKind is a kind of request, from a client at a server.
type mailProbeKind struct {
	what     string
	site     int // of the server and the client
	user     int
	requests int
	reads    int // 1: sessions of IMAP
}

// mailFurther is the kind that the paper tells the cost of.
const mailFurther = "further messages to that user"

// The user 0 is at home at the first site, and the user 1 at the second.
func (p mailPlan) probeKinds() []mailProbeKind {
	return []mailProbeKind{
		{"first message to a user of another site", 0, 1, 1, 0},
		{mailFurther, 0, 1, p.probe, 0},
		{"messages to a user of the own site", 0, 0, p.probe, 0},
		{fmt.Sprintf("IMAP at home, %d messages", p.probe+1), 1, 1, 1, 1},
		{"IMAP at home, no message", 1, 1, 1, 1},
	}
}

// probes makes some requests alone, and counts what they cost.
func (p mailPlan) probes(ctx context.Context, b *bed, w mailWay, path func(string) string) (out []mailProbe, all []load.MailEvent, err error) {
	for i, k := range p.probeKinds() {
		client := fmt.Sprintf("%s-probe%d", w.key, i+1)
		file := path("events-" + client + ".jsonl")
		at, err := b.at(p.users.Sites[k.site])
		if err != nil {
			return out, all, err
		}
		h, _ := b.Topology().Host(at.host)
		words := append(p.mailWords(b, w, k.site, client, file), "--only", strconv.Itoa(k.user), "--requests", strconv.Itoa(k.requests), "--reads", strconv.Itoa(k.reads),
			"--for", "10m", "--server", h.Address.String())
		probe := mailProbe{What: k.what, Requests: k.requests}
		probe.WAN, err = across(ctx, b, func() (err error) {
			if w.divided {
				return at.work(ctx, nil, words...)
			}
			probe.Counts, err = at.tracedBy(ctx, []string{"--all"}, nil, words...)
			return err
		})
		if err != nil {
			return out, all, err
		}
		events, err := readFile(file, load.ReadMailEvents)
		if err != nil {
			return out, all, err
		}
		for _, e := range events {
			probe.Took = append(probe.Took, float64(e.Took)/1000)
		}
		out, all = append(out, probe), append(all, events...)
	}
	return out, all, nil
}
