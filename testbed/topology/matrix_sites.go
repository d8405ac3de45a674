package topology

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// readMatrix reads the key `matrix`: a file or rows, and what to take of them.
func (d *draft) readMatrix(n *yaml.Node) {
	m := &matrixDraft{node: n}
	d.matrix = m
	d.Map(n, "matrix", Keys{
		"file": func(n *yaml.Node) { m.at = n; d.Text(n, &m.file) },
		"names": func(n *yaml.Node) {
			d.List(n, "names", func(n *yaml.Node) { m.names = append(m.names, n.Value); d.checkName(n, n.Value) })
		},
		"rtt_ms":    func(n *yaml.Node) { m.at = n; d.List(n, "rtt_ms", d.readRow) },
		"hosts":     func(n *yaml.Node) { m.hosts = n; d.Count(n, 1, maxMatrix, &m.count) },
		"seed":      func(n *yaml.Node) { m.seeded = true; d.Seed(n, &m.seed) },
		"same_site": func(n *yaml.Node) { d.Time(n, maxRTT, &m.sameSite) },
	})
	if m.at == nil || (m.file != "") == (m.rows != nil) {
		d.Bad(n, "a matrix has either a file, or rtt_ms with names")
	}
}

func (d *draft) readRow(n *yaml.Node) {
	var row []float64
	d.List(n, "a row of rtt_ms", func(v *yaml.Node) {
		x, err := strconv.ParseFloat(v.Value, 64)
		if v.Value == ".nan" || v.Value == ".NaN" {
			x, err = math.NaN(), nil
		}
		if err != nil {
			d.Bad(v, "%q is no number of milliseconds", v.Value)
		}
		row = append(row, x)
	})
	d.matrix.rows, d.matrix.rowNodes = append(d.matrix.rows, row), append(d.matrix.rowNodes, n)
}

// inline makes a Matrix of the rows in the topology itself.
func (d *draft) inline() *Matrix {
	m := d.matrix
	if len(m.names) != len(m.rows) {
		d.Bad(m.at, "the matrix is not square: %d rows, %d names", len(m.rows), len(m.names))
		return nil
	}
	out := &Matrix{Names: m.names}
	for i, row := range m.rows {
		if len(row) != len(m.names) {
			d.Bad(m.rowNodes[i], "the matrix is not square: %d values in this row, %d rows", len(row), len(m.rows))
			continue
		}
		values := make([]time.Duration, len(row))
		for j, v := range row {
			values[j] = d.milliseconds(m.rowNodes[i], v, fmt.Sprintf("from %s to %s", m.names[i], m.names[j]))
		}
		out.RTT = append(out.RTT, values)
	}
	return out
}

// fromMatrix makes a site of each place that was drawn; places nearer to each
// other than same_site become one.
func (d *draft) fromMatrix() *Topology {
	m := d.matrix
	var all *Matrix
	if m.file == "" {
		all = d.inline()
	} else {
		if !filepath.IsAbs(m.file) {
			m.file = filepath.Join(d.dir, m.file)
		}
		var err error
		if all, err = ReadMatrix(m.file); err != nil {
			d.Bad(m.at, "%v", err)
		}
	}
	if len(d.errs) > 0 {
		return nil
	}
	if !m.seeded {
		m.seed = d.t.Seed
	}
	if m.hosts != nil {
		sampled, err := all.Sample(m.count, m.seed)
		if err != nil {
			d.BadIf(m.hosts, err)
			return nil
		}
		all = sampled
	}
	d.t.Seed = m.seed
	return all.sites(d.defaults, d.wan, m.sameSite)
}

// sites turns places into sites; base is what every path has besides its delay.
func (m *Matrix) sites(defaults Site, base Path, sameSite time.Duration) *Topology {
	var out Topology
	var first []int // the place that stands for each site
	for i, name := range m.Names {
		joined := false
		for k, j := range first {
			if m.RTT[i][j] < sameSite {
				out.Sites[k].Nodes += defaults.Nodes
				out.Sites[k].Clients += defaults.Clients
				joined = true
				break
			}
		}
		if joined {
			continue
		}
		s := defaults
		s.Name = siteName(name)
		out.Sites, first = append(out.Sites, s), append(first, i)
	}
	out.connect(func(a, b int) Path {
		p := base
		i, j := first[a], first[b]
		p.Delay = (m.RTT[i][j] + m.RTT[j][i]) / 4
		return p
	})
	return &out
}

// siteName makes a name of ours of somebody else's.
func siteName(text string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	return strings.Trim(out[:min(len(out), maxName)], "-")
}
