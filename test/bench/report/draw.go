package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// shade is a colour on a light page and what it is on a dark one.
type shade struct{ light, dark color.RGBA }

var (
	paper = shade{color.RGBA{255, 255, 255, 255}, color.RGBA{27, 27, 31, 255}}
	ink   = shade{color.RGBA{31, 35, 40, 255}, color.RGBA{223, 223, 214, 255}}
	faint = shade{color.RGBA{217, 222, 228, 255}, color.RGBA{62, 66, 74, 255}}
	// palette has the colours of series by their number; they differ for readers who see no red or green.
	palette = [...]shade{
		ours:    {color.RGBA{0, 90, 181, 255}, color.RGBA{102, 178, 255, 255}},
		bare:    {color.RGBA{110, 119, 129, 255}, color.RGBA{160, 170, 180, 255}},
		theirs:  {color.RGBA{200, 80, 0, 255}, color.RGBA{255, 160, 87, 255}},
		further: {color.RGBA{120, 60, 160, 255}, color.RGBA{200, 150, 240, 255}},
	}
)

const (
	width     = 760
	rowHeight = 34
	height    = 340
	// small, medium and large are sizes of letters in points.
	small, medium, large = 10, 11, 14
	lineWidth            = 1.5
	radius               = 4
	margin, gap          = 14, 6
	// stretch is by how much an axis of logarithms is longer than what is on it.
	stretch = 1.6
	// otherLetters is by how much wider the letters may be that a reader has in the place of ours.
	otherLetters = 1.2
)

// svg draws a drawing. The same drawing becomes the same bytes.
func (d drawing) svg() ([]byte, error) {
	p := plot.New()
	letters := font.Font{Typeface: "Liberation", Variant: "Sans"}
	style := func(size font.Length) text.Style {
		letters.Size = size
		return text.Style{Color: ink.light, Font: letters, Handler: p.TextHandler}
	}
	p.BackgroundColor = nil
	for _, a := range []struct {
		axis *plot.Axis
		of   axis
	}{{&p.X, d.x}, {&p.Y, d.y}} {
		a.axis.Label.Text = a.of.label
		a.axis.Label.TextStyle = style(medium)
		a.axis.Label.TextStyle.XAlign = draw.XCenter
		a.axis.Label.TextStyle.YAlign = draw.YBottom
		align := a.axis.Tick.Label
		a.axis.Tick.Label = style(small)
		a.axis.Tick.Label.XAlign = align.XAlign
		a.axis.Tick.Label.YAlign = align.YAlign
		a.axis.Color = faint.light
		a.axis.Tick.Color = faint.light
	}
	p.X.Label.TextStyle.YAlign = draw.YTop
	grid := plotter.NewGrid()
	grid.Horizontal.Color = faint.light
	grid.Vertical.Color = faint.light
	p.Add(grid)
	for _, s := range d.series {
		if err := addSeries(p, s, d, style(small)); err != nil {
			return nil, fmt.Errorf("draw %s: %w", s.name, err)
		}
	}
	d.scale(p)
	for _, l := range d.limits {
		line, err := plotter.NewLine(plotter.XYs{{X: l.at, Y: p.Y.Min}, {X: l.at, Y: p.Y.Max}})
		if err != nil {
			return nil, fmt.Errorf("draw the line of %s: %w", l.name, err)
		}
		line.Color = ink.light
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}

	high := vg.Length(height)
	if d.y.categories != nil {
		high = vg.Length(120 + 2*rowHeight*len(d.y.categories))
	}
	canvas := vgsvg.New(width, high)
	area := draw.Crop(draw.New(canvas), margin, -2*margin, margin, -margin)
	area.SetColor(ink.light)
	top := area.Max.Y
	title := style(large)
	title.YAlign = draw.YTop
	area.FillText(title, vg.Point{X: area.Min.X, Y: top}, d.title)
	below := d.legend(area, style(small), top-large-2*gap)
	p.Draw(draw.Crop(area, 0, 0, 0, below-top-gap))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("write the drawing: %w", err)
	}
	return onPaper(out.Bytes(), d.text())
}

// addSeries adds the points of a series, their labels and the line between them.
func addSeries(p *plot.Plot, s series, d drawing, letters text.Style) error {
	var at plotter.XYs
	var labels []string
	for _, one := range s.points {
		at = append(at, plotter.XY{X: one.x, Y: one.y})
		labels = append(labels, one.label)
	}
	if s.line {
		line, err := plotter.NewLine(at)
		if err != nil {
			return fmt.Errorf("make the line: %w", err)
		}
		line.LineStyle = s.stroke()
		p.Add(line)
	}
	dots, err := plotter.NewScatter(at)
	if err != nil {
		return fmt.Errorf("make the points: %w", err)
	}
	dots.GlyphStyle = s.glyph()
	p.Add(dots)
	told, err := plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: labels})
	if err != nil {
		return fmt.Errorf("make the labels: %w", err)
	}
	for i := range told.TextStyle {
		told.TextStyle[i] = letters
		told.TextStyle[i].Color = palette[s.colour].light
		told.TextStyle[i].XAlign = draw.XCenter
	}
	told.Offset = vg.Point{Y: radius + 3}
	if s.below {
		told.Offset.Y = -radius - small
	}
	p.Add(told)
	return nil
}

func (s series) stroke() draw.LineStyle {
	stroke := draw.LineStyle{Color: palette[s.colour].light, Width: vg.Points(lineWidth)}
	if s.hollow {
		stroke.Dashes = []vg.Length{vg.Points(2), vg.Points(3)}
	}
	return stroke
}

func (s series) glyph() draw.GlyphStyle {
	glyph := draw.GlyphStyle{Color: palette[s.colour].light, Radius: radius, Shape: draw.CircleGlyph{}}
	if s.hollow {
		glyph.Shape = ring{}
	}
	return glyph
}

// ring is a circle whose line can be seen beside others.
type ring struct{}

func (ring) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(lineWidth)})
	var around vg.Path
	around.Move(vg.Point{X: at.X + style.Radius, Y: at.Y})
	around.Arc(at, style.Radius, 0, 2*math.Pi)
	around.Close()
	c.Stroke(around)
}

// scale sets how far the axes go, and what stands at them.
func (d drawing) scale(p *plot.Plot) {
	for _, a := range []struct {
		axis *plot.Axis
		of   axis
	}{{&p.X, d.x}, {&p.Y, d.y}} {
		switch {
		case a.of.categories != nil:
			var ticks []plot.Tick
			for i, name := range a.of.categories {
				ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
			}
			a.axis.Tick.Marker = plot.ConstantTicks(ticks)
			a.axis.Min = -0.5
			a.axis.Max = float64(len(ticks)) - 0.4
		case a.of.logarithm:
			a.axis.Scale = plot.LogScale{}
			a.axis.Min /= stretch
			a.axis.Max *= stretch
			a.axis.Tick.Marker = powers(a.axis.Min, a.axis.Max)
		default:
			a.axis.Min = 0
			a.axis.Max *= 1.15
			a.axis.Tick.Marker = even(a.axis.Max)
		}
	}
}

// powers are the ticks of an axis of logarithms: 1, 2 and 5 of each power of ten, or 1 and 3 where that were many.
func powers(least, most float64) plot.ConstantTicks {
	steps := []float64{1, 2, 5}
	if most/least > 1000 {
		steps = []float64{1, 3}
	}
	var ticks plot.ConstantTicks
	for power := math.Floor(math.Log10(least)); power <= math.Log10(most); power++ {
		for _, step := range steps {
			if value := step * math.Pow(10, power); value >= least && value <= most {
				ticks = append(ticks, plot.Tick{Value: value, Label: amount(value, "")})
			}
		}
	}
	return ticks
}

// even are the ticks of an axis from 0 on: at most ten, at 1, 2 or 5 of a power of ten from each other.
func even(most float64) plot.ConstantTicks {
	step := math.Pow(10, math.Floor(math.Log10(most))-1)
	for _, times := range []float64{2, 2.5, 2} {
		if most/step > 10 {
			step *= times
		}
	}
	var ticks plot.ConstantTicks
	for i := 0.0; i*step <= most; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 3, 64)})
	}
	return ticks
}

// legend draws the names of the series below each other from the left, as many in a line as fit, and returns how far down that went.
func (d drawing) legend(area draw.Canvas, letters text.Style, from vg.Length) vg.Length {
	letters.YAlign = draw.YCenter
	line := from - gap
	x := area.Min.X
	for _, s := range d.series {
		wide := letters.Width(s.name)*otherLetters + 4*gap + 2*radius
		if x > area.Min.X && x+wide > area.Max.X {
			x = area.Min.X
			line -= small + gap
		}
		area.DrawGlyph(s.glyph(), vg.Point{X: x + radius, Y: line})
		area.FillText(letters, vg.Point{X: x + 2*radius + gap, Y: line}, s.name)
		x += wide
	}
	return line - gap
}

var opening = regexp.MustCompile(`(?s)<svg ([^>]*)>`)

// onPaper puts a drawing on a page of its own, which is dark where the reader's is: what can show no other colours shows the light ones.
// A reader who only hears it gets the text.
func onPaper(drawn []byte, spoken string) ([]byte, error) {
	at := opening.FindIndex(drawn)
	if at == nil {
		return nil, fmt.Errorf("the drawing of %d bytes is no SVG", len(drawn))
	}
	var head strings.Builder
	fmt.Fprintf(&head, "\n<title>%s</title>\n<style>\ntext { font-family: \"Liberation Sans\", Arial, Helvetica, sans-serif !important }\n@media (prefers-color-scheme: dark) {\n", escaped.Replace(spoken))
	shades := slices.Concat([]shade{paper, ink, faint}, palette[:])
	slices.SortStableFunc(shades, func(a, b shade) int { return cmp.Compare(hex(a.light), hex(b.light)) })
	for _, s := range shades {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&head, "  [style*=\"%s:%s\"] { %s: %s !important }\n", property, hex(s.light), property, hex(s.dark))
		}
	}
	fmt.Fprintf(&head, "}\n</style>\n<rect width=\"100%%\" height=\"100%%\" style=\"fill:%s\"/>", hex(paper.light))
	return slices.Concat(drawn[:at[1]], []byte(head.String()), drawn[at[1]:]), nil
}

var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
