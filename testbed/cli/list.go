package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/experiments"
	"cartwheel.dev/testbed/rehearse"
	"cartwheel.dev/testbed/topology"
)

// known are those that `run` knows. A new one is added here.
func known() []experiment.Experiment {
	return append(experiments.All(), rehearse.Experiment())
}

type listCmd struct {
	Cities bool `help:"List the cities that cities:NAME,NAME knows."`
}

type topologyLine struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Sites   int    `json:"sites"`
	Hosts   int    `json:"hosts"`
	Nodes   int    `json:"nodes"`
}

type settingLine struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

type experimentLine struct {
	Name     string        `json:"name"`
	Summary  string        `json:"summary"`
	Settings []settingLine `json:"settings"`
}

type cityLine struct {
	Name      string  `json:"name"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Help shows how it is called.
func (listCmd) Help() string { return help("cartwheel-testbed list --json") }

// Run lists.
func (c listCmd) Run(e *env) error {
	if c.Cities {
		var all []cityLine
		for _, city := range topology.Cities() {
			all = append(all, cityLine{city.Name, city.Latitude, city.Longitude})
		}
		return e.print(map[string]any{"cities": all}, func(w io.Writer) { cityTable(w, all) })
	}
	topologies, err := topology.Builtin()
	if err != nil {
		return err
	}
	lines := []topologyLine{}
	for _, t := range topologies {
		lines = append(lines, topologyLine{t.Name, t.Summary, len(t.Sites), len(t.Hosts), t.Nodes()})
	}
	runs := []experimentLine{}
	for _, x := range known() {
		l := experimentLine{Name: x.Name, Summary: x.Summary, Settings: []settingLine{}}
		for _, s := range x.Settings {
			l.Settings = append(l.Settings, settingLine(s))
		}
		runs = append(runs, l)
	}
	return e.print(map[string]any{"topologies": lines, "experiments": runs}, func(w io.Writer) { listTable(w, lines, runs) })
}

func listTable(w io.Writer, topologies []topologyLine, runs []experimentLine) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "TOPOLOGY\tSITES\tHOSTS\tWHAT IT IS")
	for _, l := range topologies {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", l.Name, l.Sites, l.Hosts, l.Summary)
	}
	fmt.Fprintln(t, "FILE.yaml\t\t\ta topology of your own: docs/testbed.md")
	fmt.Fprintln(t, "MATRIX\t\t\tRTTs between places, .csv or tab-separated; --hosts N --seed S draws some")
	fmt.Fprintln(t, "cities:A,B,...\t\t\tsites in cities; list --cities names them")
	if len(runs) == 0 {
		return
	}
	fmt.Fprintln(t, "\nEXPERIMENT\t\t\tWHAT IT IS")
	for _, l := range runs {
		fmt.Fprintf(t, "%s\t\t\t%s\n", l.Name, l.Summary)
		for _, s := range l.Settings {
			fmt.Fprintf(t, "  --set %s=%s\t\t\t%s\n", s.Name, s.Default, s.Help)
		}
	}
}

func cityTable(w io.Writer, all []cityLine) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CITY\tLATITUDE\tLONGITUDE")
	for _, c := range all {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\n", c.Name, c.Latitude, c.Longitude)
	}
	_ = t.Flush() // whoever reads it has gone
}
