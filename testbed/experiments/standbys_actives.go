package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// activesRow is all turns of one number of clients, each at a site of its own with a slice
// that is at home there. In one place a second slice of a policy is not made while the
// first has room, so that this needs sites.
type activesRow struct {
	RTT     float64       `json:"rtt_ms"`
	Clients int           `json:"clients"`
	Actives int           `json:"actives"` // of the clients' sites, as the nodes say
	Rounds  []activesTurn `json:"rounds"`
}

// activesTurn is one turn of all clients together.
type activesTurn struct {
	Rate   float64  `json:"creates_per_s"`
	Failed int      `json:"failed"`
	Lost   []string `json:"lost,omitempty"`
}

// rate is the middle one of the turns' creates a second, and failed those that failed.
func (r activesRow) rate() (rate float64, failed int) {
	var all []float64
	for _, t := range r.Rounds {
		all, failed = append(all, t.Rate), failed+t.Failed
	}
	return median(all), failed
}

// turnOf adds up what the clients did at the same time.
func turnOf(clients []load.BoxResult) activesTurn {
	var t activesTurn
	made, began, ended := 0, clients[0].Began, clients[0].Ended
	for _, c := range clients {
		made, began, ended = made+len(c.Create), min(began, c.Began), max(ended, c.Ended)
		t.Failed, t.Lost = t.Failed+c.Failed, append(t.Lost, c.Lost...)
	}
	t.Rate = float64(made) * 1e6 / float64(ended-began)
	return t
}

// activesLevel is how many members the slices have.
const activesLevel = 3

// moreActives has more and more clients work at once, each in a slice whose active is the
// node beside it.
func (p standbysPlan) moreActives(ctx context.Context, b *bed, rtt float64) ([]activesRow, error) {
	var rows []activesRow
	var all [][]place
	for _, n := range p.actives {
		at, actives, err := p.actingFor(ctx, b, n)
		if err != nil {
			return nil, err
		}
		rows, all = append(rows, activesRow{RTT: rtt, Clients: n, Actives: actives}), append(all, at)
	}
	for round := range p.rounds {
		for i := range rows {
			r := &rows[i]
			b.say("standbys: %g ms, %d actives, round %d", rtt, r.Clients, round+1)
			got := make([]load.BoxResult, r.Clients)
			g, gctx := errgroup.WithContext(ctx)
			for n, at := range all[i] {
				g.Go(func() error {
					words := append(p.words("work", at, activesFolder(r.Clients, n), b.env.Seed), "--worker", fmt.Sprintf("round-%d", round+1), "--workers", strconv.Itoa(p.workers), "--for", p.length.String())
					return at.work(gctx, &got[n], words...)
				})
			}
			if err := g.Wait(); err != nil {
				return nil, err
			}
			r.Rounds = append(r.Rounds, turnOf(got))
		}
	}
	return rows, nil
}

// activesFolder is the folder of one of so many clients.
func activesFolder(clients, n int) string { return fmt.Sprintf("actives-%d-%d", clients, n+1) }

// actingFor makes a folder at the site of each of so many nodes, and says how many of
// these sites have an active of a slice of that level.
func (p standbysPlan) actingFor(ctx context.Context, b *bed, n int) ([]place, int, error) {
	var places []place
	for _, h := range b.Topology().Hosts[:n] {
		at, err := b.host(h)
		if err != nil {
			return nil, 0, err
		}
		cues := fmt.Sprintf("/.Site=%s/.RepLevel=%d/.KeepTogether", at.site, activesLevel)
		if err := at.work(ctx, nil, append(p.words("make", at, activesFolder(n, len(places)), b.env.Seed), "--cues", cues)...); err != nil {
			return nil, 0, err
		}
		places = append(places, at)
	}
	all, err := places[0].slices(ctx)
	if err != nil {
		return nil, 0, err
	}
	acting := 0
	for _, at := range places {
		if slices.ContainsFunc(all, func(s sliceState) bool { return s.Active.Site == at.site && len(s.Members) == activesLevel }) {
			acting++
		}
	}
	return places, acting, nil
}

func activesTable(p standbysPlan, rows []activesRow) report.Table {
	t := report.Table{Name: "actives", Title: "Durable creates of 4 kB by all clients, by the number of actives", Columns: []report.Column{
		{Name: "round trip", Unit: "ms"}, {Name: "clients, each with a slice"}, {Name: "sites that act for them"}, {Name: "creates", Unit: "/s"}, {Name: "of one client's rate", Unit: "%"}, {Name: "creates that failed"},
	}}
	for _, rtt := range p.rtts {
		first := nan()
		for _, r := range rows {
			if r.RTT != rtt {
				continue
			}
			rate, failed := r.rate()
			if math.IsNaN(first) {
				first = rate
			}
			t.Add(report.Number(rtt), report.Count(r.Clients), report.Count(r.Actives), report.Number(rate), report.Number(100*rate/first), report.Count(failed))
		}
	}
	return t
}

func activesPlot(p standbysPlan, rows []activesRow) report.Plot {
	plot := report.Plot{Name: "actives", Title: "Creates of all clients together", X: report.Axis{Label: "clients, each with an active beside it"}, Y: report.Axis{Label: "creates/s", FromZero: true}}
	for _, rtt := range p.rtts {
		if rtt == 0 {
			continue
		}
		l := report.Line{Name: standbysName(rtt)}
		for _, r := range rows {
			if r.RTT == rtt {
				rate, _ := r.rate()
				l.X, l.Y = append(l.X, float64(r.Clients)), append(l.Y, rate)
			}
		}
		plot.Lines = append(plot.Lines, l)
	}
	return plot
}
