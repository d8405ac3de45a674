package calibration

import (
	"context"
	"fmt"
	"time"
)

// crowdChecks are those of 16 hosts under load.
func crowdChecks() []check {
	return []check{{"load", false, load}}
}

const (
	crossing = 90   // Mbit/s that cross the network
	mostLoad = 0.30 // of one core
	mostLate = 1.0  // ms, 99th percentile
	least    = 0.95 // of each path's rate, with the system's congestion control
)

// load fills 15 paths of 6 Mbit/s between 16 hosts, and looks at the emulator.
func load(ctx context.Context, b *bench) error {
	var flows []flow
	for i := range 15 {
		// Hosts of a site send to the next, the one after it, and the lone one:
		// no path carries both a flow and another's acknowledgements.
		s, j := i/3, i%3
		to := fmt.Sprintf("s%d-%d", (s+j+1)%5, j)
		if j == 2 {
			to = "s5-0"
		}
		flows = append(flows, flow{fmt.Sprintf("s%d-%d", s, j), to})
	}
	before, err := b.net.Stats(ctx)
	if err != nil {
		return err
	}
	got, err := pour(ctx, b.net, flows, "", 2*time.Second, pick(b, 3*time.Second, 20*time.Second))
	if err != nil {
		return err
	}
	after, err := b.net.Stats(ctx)
	if err != nil {
		return err
	}
	s := after.Since(before)
	var sum float64
	for _, v := range got {
		sum += v
	}
	b.row("Mbit/s", crossing, crossing*least, crossing*(1+withinRate), sum/1e6, "15 flows of 6 Mbit/s between 16 hosts")
	b.row("ms", 0, 0, mostLate, ms(s.Late.Quantile(0.5)), "lateness of the emulator, median")
	b.row("ms", 0, 0, mostLate, ms(s.Late.Quantile(0.99)), "lateness of the emulator, 99 %%")
	b.row("ms", 0, 0, mostLate, ms(s.Wait.Quantile(0.99)), "packets waited to be read, 99 %%")
	b.row("%", 0, 0, 100*mostLoad, 100*s.Load(), "of one core used by the emulator")
	return nil
}
