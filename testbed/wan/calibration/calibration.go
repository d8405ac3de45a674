// Package calibration proves an emulated wide area with traffic of its own: it
// starts one, sends packets across it, and compares what it measures with what
// was asked for. Nothing that the emulator says of itself counts, except how
// late it was and how much of the processor it used. A Report belongs to who
// asked for it. It needs what package wan needs.
package calibration

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"cartwheel.dev/testbed/wan"
)

// Options says how thoroughly to calibrate.
type Options struct {
	Emulator wan.Options
	Prefix   string // of the namespaces; "cw" if empty
	Seed     uint64
	// Quick takes about half a minute, with few delays and rates. The whole takes
	// about three minutes.
	Quick bool
	// Progress takes each row as soon as it is there; nil for none.
	Progress func(Row)
}

// Row is one thing that was wanted and measured.
type Row struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Wanted   float64 `json:"wanted"`
	Low      float64 `json:"low"` // Measured is right from Low to High
	High     float64 `json:"high"`
	Measured float64 `json:"measured"`
	OK       bool    `json:"ok"`
}

// Report is what a calibration found.
type Report struct {
	Rows []Row  `json:"rows"`
	Void string `json:"void,omitempty"` // why its measurements do not count: the emulator was late
}

// OK reports whether everything was as wanted, by an emulator on time.
func (r *Report) OK() bool {
	for _, row := range r.Rows {
		if !row.OK {
			return false
		}
	}
	return r.Void == "" && len(r.Rows) > 0
}

// Write writes the table.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\twanted\tallowed\tmeasured\tunit\t")
	for _, row := range r.Rows {
		verdict := "ok"
		if !row.OK {
			verdict = "WRONG"
		}
		fmt.Fprintf(t, "%s\t%s\t%s to %s\t%s\t%s\t%s\n", row.Name, figure(row.Wanted), figure(row.Low), figure(row.High), figure(row.Measured), row.Unit, verdict)
	}
	if r.Void != "" {
		fmt.Fprintf(t, "%s\n", r.Void)
	}
	return t.Flush()
}

func figure(v float64) string {
	if a := math.Abs(v); a >= 1000 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	} else if a >= 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// check is one thing to measure.
type check struct {
	name string
	long bool // only in the whole calibration
	run  func(context.Context, *bench) error
}

// pick returns the first in a quick calibration, the second in a whole one.
func pick[T any](b *bench, quick, whole T) T {
	if b.Quick {
		return quick
	}
	return whole
}

// bench is a calibration under way.
type bench struct {
	Options
	net    *wan.Network
	report *Report
}

// row adds what was measured; it is right from low to high.
func (b *bench) row(unit string, wanted, low, high, measured float64, format string, args ...any) {
	r := Row{Name: fmt.Sprintf(format, args...), Unit: unit, Wanted: wanted, Low: low, High: high, Measured: measured}
	r.OK = measured >= low && measured <= high
	b.report.Rows = append(b.report.Rows, r)
	if b.Progress != nil {
		b.Progress(r)
	}
}

// limit bounds one check.
const limit = 90 * time.Second

// Run calibrates. An error says that it could not; that something is not as
// wanted is in the Report.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	report = &Report{}
	for _, part := range []struct {
		config wan.Config
		checks []check
	}{{pairs(), pairChecks()}, {crowd(), crowdChecks()}} {
		b := &bench{Options: o, report: report}
		part.config.Prefix, part.config.Seed = o.Prefix, o.Seed
		if err := b.part(ctx, part.config, part.checks); err != nil {
			return report, err
		}
	}
	return report, nil
}

// part runs some of the checks in a network of their own.
func (b *bench) part(ctx context.Context, c wan.Config, checks []check) (err error) {
	if b.net, err = wan.Start(ctx, c, b.Emulator); err != nil {
		return err
	}
	defer func() {
		if cerr := b.net.Close(); err == nil {
			err = cerr
		}
	}()
	for _, ch := range checks {
		if ch.long && b.Quick {
			continue
		}
		one, cancel := context.WithTimeout(ctx, limit)
		err := ch.run(one, b)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", ch.name, err)
		}
	}
	s, err := b.net.Stats(ctx)
	if err != nil {
		return err
	}
	if v := s.Void(); v != "" && b.report.Void == "" {
		b.report.Void = v
	}
	return nil
}
