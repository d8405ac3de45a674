package report

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// points are what can be drawn of a line: finite, and above zero on axes that
// are logarithmic.
func (p Plot) points(l Line) plotter.XYs {
	var xys plotter.XYs
	for i := range min(len(l.X), len(l.Y)) {
		x, y := l.X[i], l.Y[i]
		if finite(x) && finite(y) && (!p.X.Log || x > 0) && (!p.Y.Log || y > 0) {
			xys = append(xys, plotter.XY{X: x, Y: y})
		}
	}
	return xys
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (p Plot) addLines(g *plot.Plot) ([]entry, error) {
	var entries []entry
	for i, l := range p.Lines {
		xys := p.points(l)
		if len(xys) == 0 {
			continue
		}
		c := palette(len(p.Bars) + i)
		if l.Points {
			s, err := plotter.NewScatter(xys)
			if err != nil {
				return nil, err
			}
			s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(1.6), Shape: draw.CircleGlyph{}}
			g.Add(s)
			entries = append(entries, entry{l.Name, s})
			continue
		}
		line, err := plotter.NewLine(xys)
		if err != nil {
			return nil, err
		}
		line.LineStyle = draw.LineStyle{Color: c, Width: vg.Points(1.6)}
		if l.Dashed {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		g.Add(line)
		entries = append(entries, entry{l.Name, line})
	}
	return entries, nil
}

func (p Plot) addBars(g *plot.Plot) ([]entry, error) {
	if len(p.Bars) == 0 {
		return nil, nil
	}
	width := 0.7 * plotWidth / vg.Length(max(1, len(p.Groups)*(len(p.Bars)+1)))
	var entries []entry
	for i, b := range p.Bars {
		values := make(plotter.Values, len(p.Groups))
		for j := range values {
			if j < len(b.Y) && finite(b.Y[j]) {
				values[j] = b.Y[j]
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = palette(i), 0
		bars.Offset = width * (vg.Length(i) - vg.Length(len(p.Bars)-1)/2)
		g.Add(bars)
		entries = append(entries, entry{b.Name, bars})
	}
	g.NominalX(p.Groups...)
	g.X.Min, g.X.Max = -0.5, float64(len(p.Groups))-0.5
	return entries, nil
}

func (p Plot) addMarks(g *plot.Plot) []entry {
	var entries []entry
	for i, m := range p.Marks {
		if !finite(m.Y) || p.Y.Log && m.Y <= 0 {
			continue
		}
		l := level{y: m.Y, style: draw.LineStyle{
			Color: palette(len(p.Bars) + len(p.Lines) + i), Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(2), vg.Points(2)},
		}}
		g.Add(l)
		entries = append(entries, entry{m.Name, l})
	}
	return entries
}

func (p Plot) addBands(g *plot.Plot) []entry {
	var entries []entry
	colours := map[string]color.Color{}
	shades := []color.Color{color.Gray{216}, color.RGBA{255, 236, 200, 255}, color.RGBA{214, 234, 248, 255}, color.RGBA{222, 242, 222, 255}, color.RGBA{245, 222, 236, 255}}
	for _, b := range p.Bands {
		c, known := colours[b.Name]
		if !known {
			c = shades[len(colours)%len(shades)]
			colours[b.Name] = c
		}
		s := span{from: b.From, to: b.To, colour: c}
		g.Add(s)
		if !known {
			entries = append(entries, entry{b.Name, s})
		}
	}
	return entries
}

// level is a line across the plot at one value of Y.
type level struct {
	y     float64
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (l level) Plot(c draw.Canvas, g *plot.Plot) {
	_, y := g.Transforms(&c)
	if at := y(l.y); c.ContainsY(at) {
		c.StrokeLine2(l.style, c.Min.X, at, c.Max.X, at)
	}
}

// DataRange implements plot.DataRanger: the level is to be seen.
func (l level) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), l.y, l.y
}

// Thumbnail implements plot.Thumbnailer.
func (l level) Thumbnail(c *draw.Canvas) {
	at := (c.Min.Y + c.Max.Y) / 2
	c.StrokeLine2(l.style, c.Min.X, at, c.Max.X, at)
}

// span shades the plot between two values of X.
type span struct {
	from, to float64
	colour   color.Color
}

// Plot implements plot.Plotter.
func (s span) Plot(c draw.Canvas, g *plot.Plot) {
	x, _ := g.Transforms(&c)
	s.fill(&c, max(c.Min.X, x(s.from)), min(c.Max.X, x(s.to)))
}

// Thumbnail implements plot.Thumbnailer.
func (s span) Thumbnail(c *draw.Canvas) { s.fill(c, c.Min.X, c.Max.X) }

func (s span) fill(c *draw.Canvas, from, to vg.Length) {
	if from < to {
		c.FillPolygon(s.colour, []vg.Point{{X: from, Y: c.Min.Y}, {X: to, Y: c.Min.Y}, {X: to, Y: c.Max.Y}, {X: from, Y: c.Max.Y}})
	}
}

// logTicks labels 1, 2 and 5 of every decade, or only 1 where there are many
// decades, and marks the others.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	decades := math.Log10(high / low)
	for k := math.Floor(math.Log10(low)); k <= math.Ceil(math.Log10(high)); k++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, k)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || decades <= 3 && (m == 2 || m == 5) {
				t.Label = strconv.FormatFloat(v, 'g', 3, 64)
				if v >= 1 && v < 1e6 {
					t.Label = strconv.FormatFloat(v, 'f', -1, 64)
				}
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// roundDown and roundUp give the next 1, 2 or 5 times a power of ten.
func roundDown(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*base <= v*(1+1e-9) {
			return m * base
		}
	}
	return base
}

func roundUp(v float64) float64 {
	low := roundDown(v)
	switch {
	case low >= v*(1-1e-9):
		return low
	case low/math.Pow(10, math.Floor(math.Log10(v))) < 1.5:
		return 2 * low
	case low/math.Pow(10, math.Floor(math.Log10(v))) < 3:
		return 2.5 * low
	}
	return 2 * low
}
