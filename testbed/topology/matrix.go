package topology

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cartwheel.dev/geo-config/fault"
)

// Matrix is the round trips between places: RTT[i][j] from the i-th to the
// j-th, which need not be the same as back. The diagonal is what lies inside a
// place.
type Matrix struct {
	Names []string
	RTT   [][]time.Duration
}

// maxMatrix bounds the rows that are read.
const maxMatrix = 5000

// ReadMatrix reads round trips in milliseconds from a file in one of three
// forms, told apart by its first line: tab-separated values without a header; a
// matrix as comma-separated values with a header whose first word is `region`
// and a name at the start of each row; pairs as comma-separated values with a
// header that begins `src,dst` and has a column rtt_avg_ms.
func ReadMatrix(path string) (*Matrix, error) {
	const op fault.Op = "topology.ReadMatrix"
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.E(fault.NotFound, op, path, "there is no such file")
	}
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	return ParseMatrix(path, text)
}

// ParseMatrix is ReadMatrix of a text; file names it in errors.
func ParseMatrix(file string, text []byte) (*Matrix, error) {
	r := &Reader{file: file}
	var rows [][]string
	var lines []int
	for i, line := range strings.Split(string(bytes.TrimRight(text, "\r\n\t ")), "\n") {
		line = strings.TrimRight(line, "\r\t ")
		if line == "" {
			continue
		}
		separator := ","
		if strings.Contains(line, "\t") {
			separator = "\t"
		}
		rows, lines = append(rows, strings.Split(line, separator)), append(lines, i+1)
	}
	p := matrixParser{Reader: r, rows: rows, lines: lines}
	var m *Matrix
	switch {
	case len(rows) == 0:
		p.bad(1, "is empty")
	case len(rows) > maxMatrix*2:
		p.bad(1, "has %d lines; at most %d", len(rows), maxMatrix*2)
	case rows[0][0] == "src":
		m = p.pairs()
	case rows[0][0] == "region":
		m = p.table(rows[0][1:], rows[1:], lines[1:], 1)
	default:
		names := make([]string, len(rows))
		for i := range names {
			names[i] = fmt.Sprintf("h%03d", i)
		}
		m = p.table(names, rows, lines, 0)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

type matrixParser struct {
	*Reader
	rows  [][]string
	lines []int
}

func (p *matrixParser) bad(line int, format string, args ...any) {
	p.Bad(&yaml.Node{Line: line}, format, args...)
}

// table reads rows of values; before them stand skip words, the name.
func (p *matrixParser) table(names []string, rows [][]string, lines []int, skip int) *Matrix {
	m := &Matrix{Names: names, RTT: make([][]time.Duration, len(names))}
	if len(rows) != len(names) {
		p.bad(lines[len(lines)-1], "the matrix is not square: %d rows, %d columns", len(rows), len(names))
		return nil
	}
	for i, row := range rows {
		if len(row)-skip != len(names) {
			p.bad(lines[i], "the matrix is not square: %d values in this row, %d rows", len(row)-skip, len(names))
			continue
		}
		if skip == 1 && row[0] != names[i] {
			p.bad(lines[i], "this row is of %q, the header has %q in its place", row[0], names[i])
		}
		m.RTT[i] = make([]time.Duration, len(names))
		for j, text := range row[skip:] {
			m.RTT[i][j] = p.rtt(lines[i], text, fmt.Sprintf("from %s to %s", names[i], names[j]))
		}
	}
	return m
}

func (p *matrixParser) pairs() *Matrix {
	column := -1
	for i, name := range p.rows[0] {
		if name == "rtt_avg_ms" {
			column = i
		}
	}
	if column < 2 || len(p.rows[0]) < 3 || p.rows[0][1] != "dst" {
		p.bad(1, "pairs have a header with src, dst and rtt_avg_ms")
		return nil
	}
	m := &Matrix{}
	at := map[string]int{}
	for _, row := range p.rows[1:] {
		if _, known := at[row[0]]; !known {
			at[row[0]] = len(m.Names)
			m.Names = append(m.Names, row[0])
		}
	}
	if len(m.Names) > maxMatrix {
		p.bad(1, "names %d places; at most %d", len(m.Names), maxMatrix)
		return nil
	}
	seen := make([][]bool, len(m.Names))
	for i := range m.Names {
		m.RTT = append(m.RTT, make([]time.Duration, len(m.Names)))
		seen[i] = make([]bool, len(m.Names))
	}
	for k, row := range p.rows[1:] {
		line := p.lines[k+1]
		if len(row) != len(p.rows[0]) {
			p.bad(line, "has %d values, the header %d", len(row), len(p.rows[0]))
			continue
		}
		i := at[row[0]]
		j, known := at[row[1]]
		if !known {
			p.bad(line, "the matrix is not square: no pair begins at %q", row[1])
			continue
		}
		seen[i][j] = true
		m.RTT[i][j] = p.rtt(line, row[column], "from "+row[0]+" to "+row[1])
	}
	for i := range seen {
		for j := range seen {
			if i != j && !seen[i][j] {
				p.bad(p.lines[len(p.lines)-1], "unreachable: there is no pair from %s to %s", m.Names[i], m.Names[j])
			}
		}
	}
	return m
}

// rtt reads milliseconds.
func (p *matrixParser) rtt(line int, text, what string) time.Duration {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		p.bad(line, "the RTT %s, %q, is no number of milliseconds", what, text)
		return 0
	}
	return p.milliseconds(&yaml.Node{Line: line}, v, what)
}

func (r *Reader) milliseconds(n *yaml.Node, v float64, what string) time.Duration {
	limit := float64(maxRTT / time.Millisecond)
	switch {
	case math.IsNaN(v):
		r.Bad(n, "the RTT %s is NaN: it was not measured; leave that place out", what)
	case v < 0:
		r.Bad(n, "the RTT %s, %g ms, is negative", what, v)
	case v > limit:
		r.Bad(n, "the RTT %s, %g ms, is more than %v", what, v, maxRTT)
	default:
		return time.Duration(math.Round(v * float64(time.Millisecond)))
	}
	return 0
}

// Sample draws n of the places, in their order. The same seed draws the same
// ones from the same matrix.
func (m *Matrix) Sample(n int, seed uint64) (*Matrix, error) {
	if n < 1 || n > len(m.Names) {
		return nil, fault.Errorf(fault.Invalid, "topology.Sample", fmt.Sprint(n), "hosts cannot be drawn from a matrix of %d", len(m.Names))
	}
	drawn := rand.New(rand.NewPCG(seed, uint64(len(m.Names)))).Perm(len(m.Names))[:n]
	sort.Ints(drawn)
	return m.pick(drawn), nil
}

func (m *Matrix) pick(which []int) *Matrix {
	out := &Matrix{}
	for _, i := range which {
		out.Names = append(out.Names, m.Names[i])
		row := make([]time.Duration, 0, len(which))
		for _, j := range which {
			row = append(row, m.RTT[i][j])
		}
		out.RTT = append(out.RTT, row)
	}
	return out
}
