package runs

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
)

// report is what report.json holds, as far as it is shown.
type report struct {
	title, setUp string
	notes        []string
	tables       []Table
	plots        []plot
	cut          bool // tables or rows were left out
}

type plot struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// readReport reads report.json up to its tables, or, with plots, up to its plots:
// every sample may come behind them. It answers fs.ErrNotExist where the run has
// not finished. Its errors are for people.
func readReport(root *os.Root, name string, withPlots bool) (report, error) {
	f, _, err := openFile(root, path.Join(name, reportFile))
	if err != nil {
		return report{}, told(reportFile, err)
	}
	defer f.Close()
	in := &io.LimitedReader{R: f, N: maxReportBytes}
	var r report
	if err = r.decode(json.NewDecoder(in), withPlots); err != nil && in.N == 0 {
		err = errLong
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("is cut off")
	}
	return r, told(reportFile, err)
}

// decode takes the keys in their order, and ends once it has what is asked for.
func (r *report) decode(d *json.Decoder, withPlots bool) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("is no JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if err := d.Decode(r.field(key)); err != nil {
			return err
		}
		if key == "tables" {
			r.bound()
		}
		if key == "plots" || key == "tables" && !withPlots {
			return nil
		}
	}
	_, err := d.Token()
	return err
}

// field is where a key's value belongs.
func (r *report) field(key json.Token) any {
	switch key {
	case "title":
		return &r.title
	case "set_up":
		return &r.setUp
	case "notes":
		return &r.notes
	case "tables":
		return &r.tables
	case "plots":
		return &r.plots
	}
	return new(json.RawMessage)
}

// bound leaves out what is too much, and makes each row as long as its table is wide.
func (r *report) bound() {
	if len(r.tables) > maxTables {
		r.tables, r.cut = r.tables[:maxTables], true
	}
	for i := range r.tables {
		t := &r.tables[i]
		t.Columns, t.Rows = notNil(t.Columns), notNil(t.Rows)
		if len(t.Rows) > maxRows {
			t.Rows, r.cut = t.Rows[:maxRows], true
		}
		for j, row := range t.Rows {
			cells := make([]any, len(t.Columns))
			for k, c := range row[:min(len(row), len(cells))] {
				switch c.(type) {
				case float64, string:
					cells[k] = c
				}
			}
			t.Rows[j] = cells
		}
	}
}

// maxKeys is how many figures the list shows of a run.
const maxKeys = 3

// keys are the first figures of the first table: of each row the one in the first
// measured column with a fraction, or else in the first measured column of numbers.
func keys(tables []Table) []Key {
	out := []Key{}
	if len(tables) == 0 {
		return out
	}
	t := tables[0]
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Source == "" && t.has(c, isFraction) })
	if at < 0 {
		at = slices.IndexFunc(t.Columns, func(c Column) bool { return c.Source == "" && t.has(c, isNumber) })
	}
	if at < 0 {
		return out
	}
	for _, row := range t.Rows {
		v, ok := row[at].(float64)
		if !ok || len(out) == maxKeys {
			continue
		}
		var words []string
		for _, c := range row {
			if s, ok := c.(string); ok && s != "" {
				words = append(words, s)
			}
		}
		out = append(out, Key{Row: strings.Join(words, ", "), Column: t.Columns[at].Name, Unit: t.Columns[at].Unit, Value: v})
	}
	return out
}

// has reports whether a column has a cell of a kind.
func (t Table) has(c Column, is func(any) bool) bool {
	at := slices.Index(t.Columns, c)
	return slices.ContainsFunc(t.Rows, func(row []any) bool { return is(row[at]) })
}

func isNumber(cell any) bool { _, ok := cell.(float64); return ok }

func isFraction(cell any) bool {
	v, ok := cell.(float64)
	return ok && v != math.Trunc(v)
}

// readFigures lists the pictures of a run, with their titles where the report has
// them, and whether some were left out.
func readFigures(root *os.Root, name string, plots []plot) ([]Figure, bool, error) {
	dir, err := root.Open(name)
	if err != nil {
		return nil, false, told(name, err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, told(name, err)
	}
	cut := len(entries) == maxFiles
	out := []Figure{}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isFigure(e.Name()) {
			continue
		}
		f := Figure{File: e.Name(), Title: strings.TrimSuffix(e.Name(), figureEnd)}
		if i := slices.IndexFunc(plots, func(p plot) bool { return p.Name == f.Title }); i >= 0 && plots[i].Title != "" {
			f.Title = plots[i].Title
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Figure) int { return strings.Compare(a.File, b.File) })
	if len(out) > maxFigures {
		out, cut = out[:maxFigures], true
	}
	return out, cut, nil
}

// isMissing reports whether a file is not there.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
