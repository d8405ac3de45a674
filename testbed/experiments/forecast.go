package experiments

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

// forecastYAML has one node at each of five cities. All files are in the root's
// slice, so that what is predicted for the tree is predicted for them.
const forecastYAML = `
name: forecast
cities: {places: [tokyo, sydney, frankfurt, washington, sao-paulo]}
`

// forecastSlice is the root's slice, the only one there is.
const forecastSlice = "1"

func forecast() experiment.Experiment {
	return experiment.Experiment{
		Name:    "forecast",
		Summary: "what-if over five cities: predicted latencies of reads and writes at every site, beside those measured after the move",
		Settings: []experiment.Setting{
			{Name: "rounds", Default: "30", Help: "files that are written and read at each site (1 in the short form)"},
			{Name: "moves", Default: "3", Help: "times that another member becomes the active (1 in the short form)"},
			{Name: "settle", Default: "30", Help: "seconds in which the nodes measure their distances first (5 in the short form)"},
		},
		Run: runForecast,
	}
}

func forecastSizes(env *experiment.Env) (forecastSize, error) {
	v := map[string]float64{}
	for _, name := range []string{"rounds", "moves", "settle"} {
		var err error
		if v[name], err = env.Number(name); err != nil {
			return forecastSize{}, err
		}
	}
	if env.Short {
		v["rounds"], v["moves"], v["settle"] = min(v["rounds"], 1), min(v["moves"], 1), min(v["settle"], 5)
	}
	s := forecastSize{int(v["rounds"]), int(v["moves"]), time.Duration(v["settle"] * float64(time.Second))}
	if s.rounds < 1 || s.moves < 1 || s.settle < 0 {
		return s, fault.E(fault.Usage, "experiments.forecast", "rounds", "there is one round and one move at least")
	}
	return s, nil
}

func runForecast(ctx context.Context, env *experiment.Env) error {
	size, err := forecastSizes(env)
	if err != nil {
		return err
	}
	t, err := described("forecast", forecastYAML)
	if err != nil {
		return err
	}
	f, err := env.Folder("forecast", t)
	if err != nil {
		return err
	}
	var rows []forecastRow
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		rows, err = forecastMoves(ctx, b, size)
		return err
	})
	if err != nil {
		return err
	}
	r := forecastReport(rows, size)
	return out.end(f, env, r, nil)
}

// forecastMoves has one member after the other become the active. It predicts each
// move, makes it, and measures.
func forecastMoves(ctx context.Context, b *bed, size forecastSize) ([]forecastRow, error) {
	places, err := b.everywhere()
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if err := mkdir(ctx, filepath.Join(p.mount, ".KeepTogether", "forecast", p.site)); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, size.settle); err != nil {
		return nil, err
	}
	var rows []forecastRow
	for range size.moves {
		to, err := places[0].nextActive(ctx)
		if err != nil {
			return nil, err
		}
		predicted, err := places[0].predicted(ctx, to)
		if err != nil {
			return nil, err
		}
		b.say("forecast: %s becomes the active", to)
		if _, err := places[0].run(ctx, places[0].programs.Cartwheel, "slice", "hand-over", forecastSlice, to); err != nil {
			return nil, err
		}
		for _, p := range places {
			row := forecastRow{Active: to, Site: p.site, PredictedRead: predicted[p.site].read, PredictedWrite: predicted[p.site].write}
			words := []string{"latency", filepath.Join(p.mount, "forecast", p.site, "while-"+to), "--rounds", strconv.Itoa(size.rounds),
				"--seed", strconv.FormatUint(b.env.Seed, 10)}
			if err := p.work(ctx, &row.LatencyResult, words...); err != nil {
				return nil, err
			}
			row.MeasuredRead, row.MeasuredWrite, row.MeasuredCreate = median(row.Read), median(row.Write), median(row.Create)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// latency is what one operation takes, in milliseconds.
type latency struct{ read, write float64 }

// predicted asks what every site would wait for after a move.
func (p place) predicted(ctx context.Context, to string) (map[string]latency, error) {
	const op fault.Op = "experiments.predicted"
	out, err := p.run(ctx, p.programs.Cartwheel, "--json", "what-if", "--move", forecastSlice+"="+to)
	if err != nil {
		return nil, err
	}
	var seen struct {
		Sites []struct {
			Name  string `json:"name"`
			After struct {
				Slices int `json:"slices"`
				Median struct {
					Read  time.Duration `json:"read_ns"`
					Write time.Duration `json:"write_ns"`
				} `json:"median"`
			} `json:"all_after"`
		} `json:"sites"`
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		return nil, fault.Wrap(fault.Other, op, "cartwheel what-if", err)
	}
	all := map[string]latency{}
	for _, s := range seen.Sites {
		if s.After.Slices != 1 {
			return nil, fault.Errorf(fault.Other, op, s.Name, "%d slices are predicted, want the root's alone", s.After.Slices)
		}
		ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
		all[s.Name] = latency{ms(s.After.Median.Read), ms(s.After.Median.Write)}
	}
	return all, nil
}

// nextActive is the site of the member behind the active, in the order of sites.
func (p place) nextActive(ctx context.Context) (string, error) {
	const op fault.Op = "experiments.nextActive"
	out, err := p.run(ctx, p.programs.Cartwheel, "--json", "slice", "ls")
	if err != nil {
		return "", err
	}
	type member struct {
		Site string `json:"site"`
	}
	var all []struct {
		ID      int      `json:"id"`
		Active  member   `json:"active"`
		Members []member `json:"members"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return "", fault.Wrap(fault.Other, op, "cartwheel slice ls", err)
	}
	if len(all) != 1 {
		return "", fault.Errorf(fault.Other, op, "cartwheel slice ls", "lists %d slices, want the root's alone", len(all))
	}
	var sites []string
	for _, m := range all[0].Members {
		sites = append(sites, m.Site)
	}
	slices.Sort(sites)
	at := slices.Index(sites, all[0].Active.Site)
	if at < 0 || len(sites) < 2 {
		return "", fault.Errorf(fault.Other, op, "cartwheel slice ls", "the members are at %q, and the active at %q", sites, all[0].Active.Site)
	}
	return sites[(at+1)%len(sites)], nil
}
