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
	// Tries is how often it was measured: again where the emulator was late
	// meanwhile. Only the last counts.
	Tries int `json:"tries"`
}

// Report is what a calibration found.
type Report struct {
	Rows []Row  `json:"rows"`
	Void string `json:"void,omitempty"` // why its measurements do not count: the emulator was late at each try of one
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
		fmt.Fprintf(t, "%s\t%s\t%s to %s\t%s\t%s\t%s\n", row.Name, figure(row.Wanted), figure(row.Low), figure(row.High), figure(row.Measured), row.Unit, row.Verdict())
	}
	if r.Void != "" {
		fmt.Fprintf(t, "%s\n", r.Void)
	}
	return t.Flush()
}

// Verdict is ok or WRONG, and at which try, if not at the first.
func (r Row) Verdict() string {
	verdict := "ok"
	if !r.OK {
		verdict = "WRONG"
	}
	if r.Tries > 1 {
		verdict += fmt.Sprintf(" (try %d: the emulator was late)", r.Tries)
	}
	return verdict
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
	rows   []Row // of the check under way
}

// row adds what was measured; it is right from low to high.
func (b *bench) row(unit string, wanted, low, high, measured float64, format string, args ...any) {
	r := Row{Name: fmt.Sprintf(format, args...), Unit: unit, Wanted: wanted, Low: low, High: high, Measured: measured}
	r.OK = measured >= low && measured <= high
	b.rows = append(b.rows, r)
}

const (
	limit = 90 * time.Second // of one try of a check
	tries = 3                // of a check, as long as the emulator was late
)

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
		if err := b.measure(ctx, ch, b.stats); err != nil {
			return fmt.Errorf("%s: %w", ch.name, err)
		}
	}
	return nil
}

func (b *bench) stats(ctx context.Context) (*wan.Stats, error) { return b.net.Stats(ctx) }

// measure makes one check, again while the emulator is late: then a machine
// that was busy, or that was not given its processors, has spoilt it. What the
// last try found counts, and is void if the emulator was late in that, too.
func (b *bench) measure(ctx context.Context, ch check, stats func(context.Context) (*wan.Stats, error)) error {
	for try := 1; ; try++ {
		before, err := stats(ctx)
		if err != nil {
			return err
		}
		b.rows = nil
		one, cancel := context.WithTimeout(ctx, limit)
		err = ch.run(one, b)
		cancel()
		if err != nil {
			return err
		}
		after, err := stats(ctx)
		if err != nil {
			return err
		}
		void := after.Since(before).Void()
		if void != "" && try < tries {
			continue
		}
		if void != "" && b.report.Void == "" {
			b.report.Void = fmt.Sprintf("%s (%s, at each of %d tries)", void, ch.name, tries)
		}
		for _, r := range b.rows {
			r.Tries = try
			b.report.Rows = append(b.report.Rows, r)
			if b.Progress != nil {
				b.Progress(r)
			}
		}
		return nil
	}
}
