package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/wan"
)

type statusCmd struct {
	nameFlag
}

// Help shows how it is called.
func (statusCmd) Help() string { return help("cartwheel-testbed status --json") }

// Run asks the lab.
func (c statusCmd) Run(e *env) error {
	a, err := lab.Ask(e.ctx, c.Name, lab.Request{Do: lab.AskStatus})
	if err != nil {
		return err
	}
	if a.Status == nil {
		return fault.E(fault.NewerVersion, "cli.status", c.Name, "the lab answers without a status")
	}
	return e.print(a.Status, func(w io.Writer) { statusText(w, *a.Status) })
}

func statusText(w io.Writer, s lab.Status) {
	fmt.Fprintf(w, "%s: %s, up for %v; directory %s\n", s.Name, s.Topology, s.UpFor.Round(time.Second), s.Dir)
	n := s.Network
	if n.Error != "" {
		fmt.Fprintf(w, "Network: nothing is known: %s\n", n.Error)
	} else {
		fmt.Fprintf(w, "Network: %d packets, %.1f MB between sites; late by %v at the 99th percentile; %.0f %% of a core\n",
			n.Packets, float64(n.Bytes)/1e6, n.LateP99.Round(time.Microsecond), n.Load*100)
	}
	if n.Void != "" {
		fmt.Fprintf(w, "What is measured now does not count: %s\n", n.Void)
	}
	for _, site := range s.Sites {
		if site.Off {
			fmt.Fprintf(w, "Site %s is off\n", site.Name)
		}
		for _, b := range site.Blackouts {
			fmt.Fprintf(w, "Site %s is off for %v of every %v\n", site.Name, b.For, b.Every)
		}
	}
	for _, p := range s.Changed {
		fmt.Fprintf(w, "From %s to %s: %s\n", p.From, p.To, pathText(p.Path))
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tSITE\tADDRESS\tNODE\tMOUNT\tMOUNTED AT")
	for _, h := range s.Hosts {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, h.Site, h.Address, processText(h, lab.NodeProcess), processText(h, lab.MountProcess), h.Mount)
	}
	_ = t.Flush() // whoever reads it has gone
	if len(s.Events) > 0 {
		fmt.Fprintln(w)
	}
	const newest = 10
	for _, v := range s.Events[max(0, len(s.Events)-newest):] {
		fmt.Fprintf(w, "%s  %-6s %s %s\n", v.At.Local().Format("15:04:05"), v.Kind, v.Who, v.Text)
	}
}

func processText(h lab.HostStatus, p lab.Process) string {
	text := h.Processes[p]
	if p == lab.NodeProcess && h.Processes[lab.GeoConfigProcess] != "" {
		text = strings.TrimSpace(text + ", geo-config " + h.Processes[lab.GeoConfigProcess])
	}
	if text == "" {
		return "-"
	}
	return text
}

func pathText(p wan.Path) string {
	if p.Cut {
		return "cut"
	}
	text := fmt.Sprintf("%v +- %v, %v", p.Delay, p.Jitter, p.Rate)
	for _, s := range []struct {
		name  string
		share float64
	}{{"lost", p.Loss}, {"doubled", p.Duplicate}, {"held back", p.Reorder}, {"corrupted", p.Corrupt}} {
		if s.share > 0 {
			text += fmt.Sprintf(", %.3g %% %s", s.share*100, s.name)
		}
	}
	return text
}
