package coordinates

import (
	"bufio"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// Space tells the true round-trip time between any two of its nodes, in
// milliseconds. It is symmetric, and nothing changes it.
type Space interface {
	Size() int
	RTT(i, j int) float64
}

// Matrix is a Space read from a file of measurements.
type Matrix struct {
	size int
	ms   []float32
}

// maxMatrix bounds the nodes of a matrix: 4096 need 64 MiB.
const maxMatrix = 4096

// Size implements Space.
func (m *Matrix) Size() int { return m.size }

// RTT implements Space.
func (m *Matrix) RTT(i, j int) float64 { return float64(m.ms[i*m.size+j]) }

// OpenMatrix reads the matrix in the file at path: one row a line, separated by
// tabs, spaces or commas, in milliseconds. A first line and a first column of
// names are passed over. A matrix that is not square, or a number that is
// negative or none, is a fault of kind Invalid with the file and the line. Both
// directions of a pair count by their mean.
func OpenMatrix(path string) (*Matrix, error) {
	const op fault.Op = "coordinates.OpenMatrix"
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	defer f.Close()
	m, err := readMatrix(f)
	return m, fault.Wrap(fault.Invalid, op, path, err)
}

func readMatrix(r io.Reader) (*Matrix, error) {
	const op fault.Op = "coordinates.readMatrix"
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	var m Matrix
	rows, number := 0, 0
	for lines.Scan() {
		number++
		fields := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == '\t' || r == ' ' || r == ',' })
		if len(fields) == 0 || number == 1 && named(fields[len(fields)-1]) {
			continue
		}
		if named(fields[0]) {
			fields = fields[1:]
		}
		if rows == 0 {
			m.size = len(fields)
		}
		if len(fields) != m.size || m.size > maxMatrix || rows == m.size {
			return nil, fault.Errorf(fault.Invalid, op, "", "line %d: row %d of %d numbers in a matrix of %d", number, rows+1, len(fields), m.size)
		}
		for _, f := range fields {
			v, err := strconv.ParseFloat(f, 32)
			if err != nil || !(v >= 0 && v < 1e6) {
				return nil, fault.Errorf(fault.Invalid, op, "", "line %d: %q is no round-trip time in milliseconds", number, f)
			}
			m.ms = append(m.ms, float32(v))
		}
		rows++
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(fault.Invalid, op, "", err)
	}
	if rows != m.size || rows < 2 {
		return nil, fault.Errorf(fault.Invalid, op, "", "%d rows of %d numbers", rows, m.size)
	}
	for i := range rows {
		for j := range i {
			mean := (m.ms[i*rows+j] + m.ms[j*rows+i]) / 2
			m.ms[i*rows+j], m.ms[j*rows+i] = mean, mean
		}
	}
	return &m, nil
}

func named(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}

// Cities is a Space of any number of nodes in cities of the world: the great
// circle at two thirds of the speed of light, times a factor for the way that
// fibres take (by pair of cities), plus each node's own last mile. It holds 12
// bytes a node.
type Cities struct {
	city  []int32
	mile  []float64                         // ms
	roads [len(places)][len(places)]float64 // ms between cities
}

// NewCities places nodes in cities by a seed.
func NewCities(nodes int, seed uint64) *Cities {
	chance := rand.New(rand.NewPCG(seed, 0xc17135))
	c := &Cities{city: make([]int32, nodes), mile: make([]float64, nodes)}
	for a := range places {
		for b := range a {
			factor := 1.45 + 0.3*chance.Float64()
			c.roads[a][b] = places[a].kilometres(places[b]) / 100 * factor
			c.roads[b][a] = c.roads[a][b]
		}
	}
	for i := range nodes {
		c.city[i] = int32(chance.IntN(len(places)))
		c.mile[i] = math.Exp(0.7*chance.NormFloat64() + 0.5) // median 1.6 ms
	}
	return c
}

// Size implements Space.
func (c *Cities) Size() int { return len(c.city) }

// RTT implements Space.
func (c *Cities) RTT(i, j int) float64 {
	if i == j {
		return 0
	}
	return c.roads[c.city[i]][c.city[j]] + c.mile[i] + c.mile[j]
}

// place is a city by its latitude and longitude in degrees.
type place struct{ latitude, longitude float64 }

// places are large cities on all continents. It is never written.
var places = [...]place{
	{35.7, 139.7}, {34.7, 135.5}, {37.6, 127.0}, {39.9, 116.4}, {31.2, 121.5}, {22.3, 114.2}, {25.0, 121.6}, {14.6, 121.0},
	{21.0, 105.8}, {13.8, 100.5}, {1.35, 103.8}, {-6.2, 106.8}, {28.6, 77.2}, {19.1, 72.9}, {13.0, 80.2}, {24.9, 67.0},
	{25.2, 55.3}, {41.0, 29.0}, {32.1, 34.8}, {30.0, 31.2}, {6.5, 3.4}, {-1.3, 36.8}, {-26.2, 28.0}, {-33.9, 18.4},
	{55.8, 37.6}, {59.3, 18.1}, {60.2, 24.9}, {52.2, 21.0}, {52.5, 13.4}, {50.1, 8.7}, {48.2, 16.4}, {45.5, 9.2},
	{48.9, 2.4}, {51.5, -0.1}, {53.3, -6.3}, {52.4, 4.9}, {40.4, -3.7}, {38.7, -9.1}, {37.9, 23.7}, {47.4, 8.5},
	{40.7, -74.0}, {42.4, -71.1}, {38.9, -77.0}, {33.7, -84.4}, {25.8, -80.2}, {41.9, -87.6}, {32.8, -96.8}, {39.7, -105.0},
	{34.1, -118.2}, {37.8, -122.4}, {47.6, -122.3}, {43.7, -79.4}, {45.5, -73.6}, {49.3, -123.1}, {19.4, -99.1}, {4.7, -74.1},
	{-12.0, -77.0}, {-33.4, -70.7}, {-34.6, -58.4}, {-23.6, -46.6}, {-33.9, 151.2}, {-37.8, 145.0}, {-32.0, 115.9}, {-36.8, 174.8},
}

func (p place) kilometres(q place) float64 {
	const radius, degree = 6371, math.Pi / 180
	u := math.Sin((q.latitude - p.latitude) / 2 * degree)
	v := math.Sin((q.longitude - p.longitude) / 2 * degree)
	h := u*u + math.Cos(p.latitude*degree)*math.Cos(q.latitude*degree)*v*v
	return 2 * radius * math.Asin(math.Sqrt(min(1, h)))
}
