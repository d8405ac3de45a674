package report

import (
	"errors"
	"image/color"
	"io"
	"os"

	"cartwheel.dev/geo-config/fault"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is one picture: lines, or groups of bars, over labelled axes. It is
// written as NAME.svg and NAME.png.
type Plot struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	// Lines and Bars are drawn in the order given, each in a colour of its own.
	Lines []Line `json:"lines,omitempty"`
	// Groups name the groups of bars along X; each of Bars has a value a group.
	Groups []string `json:"groups,omitempty"`
	Bars   []Bar    `json:"bars,omitempty"`
	// Marks are levels to compare with: limits, and figures of others.
	Marks []Mark `json:"marks,omitempty"`
	// Bands are spans of X that are shaded, such as while a site was off.
	Bands []Band `json:"bands,omitempty"`
}

// Axis is what an axis shows. Log needs values above zero; others are left out.
type Axis struct {
	Label string `json:"label"` // with the unit
	Log   bool   `json:"log,omitempty"`
	// FromZero makes the axis begin at zero whatever the values.
	FromZero bool `json:"from_zero,omitempty"`
	// Max cuts the axis off; 0: at the highest value.
	Max float64 `json:"max,omitempty"`
}

// Line is one row of points, joined.
type Line struct {
	Name   string `json:"name"`
	X      Values `json:"x_values"`
	Y      Values `json:"y_values"`
	Dashed bool   `json:"dashed,omitempty"` // for what is not ours, or not the subject
	Points bool   `json:"points,omitempty"` // drawn as points, not joined
}

// Bar is one row of bars, one a group.
type Bar struct {
	Name string `json:"name"`
	Y    Values `json:"y_values"`
}

// Mark is a level across the whole plot.
type Mark struct {
	Name string  `json:"name"`
	Y    float64 `json:"y_value"`
}

// Band is a span of X, shaded. Bands of one name share one entry of the legend.
type Band struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Sizes of a picture.
const (
	plotWidth  = 20 * vg.Centimeter
	plotHeight = 12 * vg.Centimeter
	plotDPI    = 130
	margin     = 4 * vg.Millimeter
	gap        = 6 * vg.Millimeter // between two entries of the legend
)

// palette is Okabe and Ito's: told apart by colour-blind readers, too.
func palette(i int) color.Color {
	colours := []color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}, {0, 0, 0, 255},
	}
	return colours[i%len(colours)]
}

// plots writes all pictures.
func (f *Folder) plots(plots []Plot) error {
	var errs []error
	for _, p := range plots {
		errs = append(errs, f.plot(p))
	}
	return errors.Join(errs...)
}

func (f *Folder) plot(p Plot) error {
	const op fault.Op = "report.plot"
	if len(p.Bars) > 0 && p.Y.Log { // a bar stands on zero: it would never end
		return fault.E(fault.Invalid, op, p.Name, "bars have no place on a logarithmic axis")
	}
	svg := vgsvg.New(plotWidth, plotHeight)
	img := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))
	if err := p.draw(draw.New(svg)); err != nil {
		return fault.Wrap(fault.Invalid, op, p.Name, err)
	}
	if err := p.draw(draw.New(img)); err != nil {
		return fault.Wrap(fault.Invalid, op, p.Name, err)
	}
	return errors.Join(
		writeTo(f.Path(p.Name+".svg"), svg),
		writeTo(f.Path(p.Name+".png"), vgimg.PngCanvas{Canvas: img}),
	)
}

func writeTo(path string, w io.WriterTo) error {
	file, err := os.Create(path)
	if err != nil {
		return fault.FromOS("report.writeTo", path, err)
	}
	_, err = w.WriteTo(file)
	return fault.FromOS("report.writeTo", path, errors.Join(err, file.Close()))
}

// entry is one entry of the legend.
type entry struct {
	name  string
	thumb plot.Thumbnailer
}

func (p Plot) draw(c draw.Canvas) error {
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
	c = draw.Crop(c, margin, -margin, margin, -margin)
	g, entries, err := p.build()
	if err != nil {
		return err
	}
	below := drawLegend(c, g, entries)
	g.Draw(draw.Crop(c, 0, 0, below, 0))
	return nil
}

// build makes the plot and its legend's entries.
func (p Plot) build() (*plot.Plot, []entry, error) {
	g := plot.New()
	g.Title.Text, g.X.Label.Text, g.Y.Label.Text = p.Title, p.X.Label, p.Y.Label
	g.Title.Padding = 3 * vg.Millimeter
	for _, s := range []*font.Length{&g.Title.TextStyle.Font.Size, &g.X.Label.TextStyle.Font.Size, &g.Y.Label.TextStyle.Font.Size} {
		*s = vg.Points(12)
	}
	var entries []entry
	entries = append(entries, p.addBands(g)...)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	g.Add(grid)
	for _, add := range []func(*plot.Plot) ([]entry, error){p.addBars, p.addLines} {
		more, err := add(g)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, more...)
	}
	entries = append(entries, p.addMarks(g)...)
	p.X.shape(&g.X)
	p.Y.shape(&g.Y)
	return g, entries, nil
}

// shape sets scale and range, which must not be empty.
func (a Axis) shape(x *plot.Axis) {
	if a.FromZero && !a.Log {
		x.Min = 0
	}
	if a.Max > 0 {
		x.Max = a.Max
	} else if a.FromZero && !a.Log {
		x.Max *= 1.05
	}
	switch {
	case !finite(x.Min) || !finite(x.Max): // nothing was drawn
		x.Min, x.Max = 1, 10
	case x.Min >= x.Max && a.Log:
		x.Min, x.Max = x.Min/2, x.Min*2
	case x.Min >= x.Max:
		x.Max = x.Min + 1
	}
	if a.Log {
		x.Min, x.Max = roundDown(x.Min), roundUp(x.Max)
		x.Scale, x.Tick.Marker = plot.LogScale{}, logTicks{}
	}
}

// drawLegend puts the entries below the plot, in as many lines as they need,
// and returns how high that is.
func drawLegend(c draw.Canvas, g *plot.Plot, entries []entry) vg.Length {
	if len(entries) == 0 {
		return 0
	}
	type placed struct {
		legend plot.Legend
		x, y   vg.Length
	}
	var all []placed
	var x, y, height vg.Length
	for _, e := range entries {
		l := plot.NewLegend()
		l.TextStyle.Font.Size = vg.Points(10)
		l.ThumbnailWidth = 8 * vg.Millimeter
		l.Top, l.Left = false, true
		l.Add(e.name, e.thumb)
		r := l.Rectangle(c)
		size := r.Max.X - r.Min.X
		height = max(height, r.Max.Y-r.Min.Y+1*vg.Millimeter)
		if x > 0 && x+size > c.Max.X-c.Min.X {
			x, y = 0, y+1
		}
		all = append(all, placed{l, x, y})
		x += size + gap
	}
	for _, a := range all {
		l := a.legend
		l.XOffs, l.YOffs = a.x, (y-a.y)*height
		l.Draw(c)
	}
	return (y+1)*height + 2*vg.Millimeter
}
