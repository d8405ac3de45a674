// Package strain puts real processes under a load that no test may wait for,
// and says what it found: many more clients than a node can take, a mount that
// has seen a million files, a large copy beside small writes. It prints figures
// and judges none of them; what they should be stands in docs/benchmarks.md. A
// run belongs to one goroutine, which ends all that it starts.
package strain

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Options are what every run takes.
type Options struct {
	Bin      string    // folder of the commands; "": this command's
	In       string    // where its folder is made; "": that of temporary files
	Progress io.Writer // sees how it goes on
}

func (o Options) say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// Figure is one thing that was found.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Table prints figures for people.
func Table(out io.Writer, figures []Figure) {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%.10g %s\n", f.Name, f.Value, f.Unit)
	}
	_ = t.Flush() // whoever reads it has gone
}

// mib is a number of bytes as figures show it.
func mib(n int64) float64 { return float64(n) / (1 << 20) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
