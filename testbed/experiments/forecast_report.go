package experiments

import (
	"fmt"
	"math"
	"time"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// forecastRow is one site while the active was somewhere, in milliseconds.
type forecastRow struct {
	Active         string  `json:"active"`
	Site           string  `json:"site"`
	PredictedRead  float64 `json:"predicted_read_ms"`
	MeasuredRead   float64 `json:"measured_read_ms"`
	PredictedWrite float64 `json:"predicted_write_ms"`
	MeasuredWrite  float64 `json:"measured_write_ms"`
	MeasuredCreate float64 `json:"measured_create_ms"`
	load.LatencyResult
}

// forecastSize is how much is done.
type forecastSize struct {
	rounds, moves int
	settle        time.Duration
}

// forecastLeast is the least latency, in milliseconds, that is compared: below it
// the machine's own work is most of what is measured.
const forecastLeast = 5

// off is how far a measured figure is from a predicted one, as a share of the
// latter; NaN where that is too small.
func off(predicted, measured float64) float64 {
	if predicted < forecastLeast {
		return nan()
	}
	return math.Abs(measured-predicted) / predicted
}

// forecastErrors are those of all rows that can be compared.
func forecastErrors(rows []forecastRow) []float64 {
	var all []float64
	for _, r := range rows {
		for _, e := range []float64{off(r.PredictedRead, r.MeasuredRead), off(r.PredictedWrite, r.MeasuredWrite), off(r.PredictedWrite, r.MeasuredCreate)} {
			if !math.IsNaN(e) {
				all = append(all, e)
			}
		}
	}
	return all
}

func forecastReport(rows []forecastRow, size forecastSize) report.Result {
	all := report.Table{Name: "sites", Title: "Each site, after each move: medians", Columns: []report.Column{
		{Name: "active"}, {Name: "site"},
		{Name: "read predicted", Unit: "ms"}, {Name: "read measured", Unit: "ms"}, {Name: "off", Unit: "%"},
		{Name: "write predicted", Unit: "ms"}, {Name: "close measured", Unit: "ms"}, {Name: "close off", Unit: "%"},
		{Name: "create measured", Unit: "ms"}, {Name: "create off", Unit: "%"},
	}}
	for _, r := range rows {
		all.Add(report.Text(r.Active), report.Text(r.Site),
			report.Number(r.PredictedRead), report.Number(r.MeasuredRead), report.Number(100*off(r.PredictedRead, r.MeasuredRead)),
			report.Number(r.PredictedWrite), report.Number(r.MeasuredWrite), report.Number(100*off(r.PredictedWrite, r.MeasuredWrite)),
			report.Number(r.MeasuredCreate), report.Number(100*off(r.PredictedWrite, r.MeasuredCreate)))
	}
	errors := forecastErrors(rows)
	sum := report.Table{Name: "errors", Title: "How far measured latencies are from predicted ones", Columns: []report.Column{
		{Name: "compared"}, {Name: "median", Unit: "%"}, {Name: "p90", Unit: "%"}, {Name: "to reach", Unit: "%"},
	}}
	sum.Add(report.Count(len(errors)), report.Number(100*median(errors)), report.Number(100*quantile(errors, 0.9)), report.Number(10))
	return report.Result{
		Title: "forecast: what-if beside what came of it, over five cities",
		SetUp: fmt.Sprintf("One node at each city, the root's slice with three replicas. `cartwheel what-if --move` predicts the latencies of every site from "+
			"measured and predicted distances, then `cartwheel slice hand-over` makes the move. Every site creates %d files, one by one, writes and closes "+
			"each, and reads it again, cold. A create and a close of what was written are predicted as one write each. Figures below %d ms are not compared.", size.rounds, forecastLeast),
		Tables: []report.Table{sum, all}, Plots: []report.Plot{forecastPlot(rows)}, Figures: rows,
	}
}

// forecastPlot has the predicted and the measured latencies of each site after each
// move side by side.
func forecastPlot(rows []forecastRow) report.Plot {
	p := report.Plot{
		Name: "sites", Title: "Latency at each site after each move", Y: report.Axis{Label: "median, ms", FromZero: true},
		Bars: []report.Bar{{Name: "read, predicted"}, {Name: "read, measured"}, {Name: "write, predicted"}, {Name: "close, measured"}},
	}
	for _, r := range rows {
		p.Groups = append(p.Groups, r.Site+", active at "+r.Active)
		for i, v := range []float64{r.PredictedRead, r.MeasuredRead, r.PredictedWrite, r.MeasuredWrite} {
			p.Bars[i].Y = append(p.Bars[i].Y, v)
		}
	}
	return p
}
