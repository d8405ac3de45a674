package topology

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

func TestParseMatrix_ThreeFormsReadAlike(t *testing.T) {
	want := &Matrix{Names: []string{"a", "b", "c"}, RTT: [][]time.Duration{
		{0, 1500 * time.Microsecond, 30 * time.Millisecond},
		{2 * time.Millisecond, 0, 40 * time.Millisecond},
		{30 * time.Millisecond, 41 * time.Millisecond, 100 * time.Microsecond},
	}}
	for name, text := range map[string]string{
		"matrix": "region,a,b,c\na,0,1.5,30\nb,2,0,40\nc,30,41,0.1\n",
		"pairs": "src,dst,rtt_min_ms,rtt_avg_ms\r\na,a,0,0\r\na,b,1,1.5\r\na,c,1,30\r\nb,a,1,2\r\nb,b,0,0\r\nb,c,1,40\r\n" +
			"c,a,1,30\r\nc,b,1,41\r\nc,c,0.1,0.1\r\n",
		"tabs": "0\t1.5\t30\n2\t0\t40\t\n30\t41\t0.1\n",
	} {
		got, err := ParseMatrix(name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "tabs" {
			got.Names = want.Names // it has none of its own
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestParseMatrix_NamesFileAndLineOfABadOne(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "\n\n", "m:1|is empty"},
		{"row too short", "0\t1\t2\n1\t0\n2\t2\t0\n", "m:2|not square: 2 values in this row, 3 rows"},
		{"rows missing", "region,a,b,c\na,0,1,2\nb,1,0,2\n", "m:3|not square: 2 rows, 3 columns"},
		{"names differ", "region,a,b\na,0,1\nc,1,0\n", `m:3|this row is of "c", the header has "b"`},
		{"a word", "0\tfar\n1\t0\n", `m:1|from h000 to h001, "far", is no number`},
		{"NaN", "0\t1\nnan\t0\n", "m:2|from h001 to h000 is NaN"},
		{"negative", "0\t-1\n1\t0\n", "m:1|is negative"},
		{"infinite", "0\tinf\n1\t0\n", "m:1|is more than"},
		{"a pair missing", "src,dst,rtt_avg_ms\na,b,1\na,a,0\nb,b,0\n", "m:4|unreachable: there is no pair from b to a"},
		{"a place without pairs", "src,dst,rtt_avg_ms\na,b,1\na,a,0\n", `m:2|no pair begins at "b"`},
		{"no average", "src,dst,rtt_min_ms\na,b,1\n", "m:1|rtt_avg_ms"},
		{"short pair", "src,dst,rtt_avg_ms\na,b\n", "m:2|has 2 values, the header 3"},
	} {
		_, err := ParseMatrix("m", []byte(c.text))
		where, why, _ := strings.Cut(c.want, "|")
		if err == nil || !strings.Contains(err.Error(), where+": ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %s and %q", c.name, err, where, why)
		}
	}
}

// plane is a matrix of n places on a line, a millisecond apart; every fifth
// stands with the one before it.
func plane(n int) *Matrix {
	at := func(i int) int { return i - i/5 }
	m := &Matrix{}
	for i := range n {
		m.Names = append(m.Names, fmt.Sprintf("p%d", i))
		var row []time.Duration
		for j := range n {
			row = append(row, time.Duration(max(at(i)-at(j), at(j)-at(i)))*time.Millisecond)
		}
		m.RTT = append(m.RTT, row)
	}
	return m
}

func TestSample_IsDrawnByItsSeed(t *testing.T) {
	m := plane(50)
	draws := map[string]bool{}
	for seed := range uint64(10) {
		one, err := m.Sample(8, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := m.Sample(8, seed)
		if !reflect.DeepEqual(one, again) {
			t.Errorf("seed %d draws %v and %v", seed, one.Names, again.Names)
		}
		draws[strings.Join(one.Names, " ")] = true
		for i, a := range one.Names {
			for j, b := range one.Names {
				var x, y int
				fmt.Sscanf(a, "p%d", &x)
				fmt.Sscanf(b, "p%d", &y)
				if one.RTT[i][j] != m.RTT[x][y] {
					t.Fatalf("seed %d: from %s to %s got %v, want %v", seed, a, b, one.RTT[i][j], m.RTT[x][y])
				}
			}
		}
	}
	if len(draws) < 9 {
		t.Errorf("10 seeds draw only %d samples", len(draws))
	}
	if _, err := m.Sample(51, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("51 of 50: got %v, want invalid", err)
	}
}

func TestFind_MatrixBecomesSites(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "some.csv")
	text := "region,us-east1,US.West,x\nus-east1,0,60,10.5\nUS.West,62,0,0.4\nx,10.5,0.4,0\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	top, err := Find(path, Draw{Seed: 3, Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Sites) != 3 || top.Sites[1].Name != "us-west" || top.Nodes() != 6 || top.Seed != 3 || top.Name != "some" {
		t.Errorf("got %+v", top)
	}
	if got := top.RTT("us-east1", "us-west"); got != 61*time.Millisecond {
		t.Errorf("got an RTT of %v, want the mean of both directions, 61ms", got)
	}
	top, err = Parse(filepath.Join(dir, "x.yaml"), []byte("matrix: {file: some.csv, same_site: 1 ms}\nsites: [{name: us-west, clients: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Sites) != 2 || top.Sites[1].Nodes != 2 || top.Sites[1].Clients != 1 {
		t.Errorf("got %+v, want us-west and x as one site of two nodes, with a client", top.Sites)
	}
	drawn, err := Find(path, Draw{Seed: 1, Hosts: 2})
	if err != nil || len(drawn.Sites) != 2 {
		t.Errorf("got %+v, %v; want two sites", drawn, err)
	}
}

func TestGreatCircle_IsAsLongAsKnown(t *testing.T) {
	at := cities()
	for _, c := range []struct {
		a, b Place
		km   float64
		name string
	}{
		{at["london"], at["new-york"], 5570, "london to new-york"},
		{at["london"], at["paris"], 344, "london to paris"},
		{at["tokyo"], at["san-francisco"], 8270, "tokyo to san-francisco"},
		{at["sydney"], at["los-angeles"], 12065, "sydney to los-angeles"},
		{Place{0, 0}, Place{0, 180}, math.Pi * earthRadiusKM, "half round the equator"},
		{Place{0, 0}, Place{0, 90}, math.Pi / 2 * earthRadiusKM, "a quarter of the equator"},
		{Place{90, 0}, Place{-90, 77}, math.Pi * earthRadiusKM, "pole to pole"},
		{Place{0, 179.5}, Place{0, -179.5}, math.Pi / 180 * earthRadiusKM, "over the date line"},
		{at["oslo"], at["oslo"], 0, "nowhere"},
	} {
		there, back := GreatCircle(c.a, c.b), GreatCircle(c.b, c.a)
		if math.Abs(there-c.km) > 0.005*c.km+1 || math.Abs(there-back) > 1e-6 {
			t.Errorf("%s: got %.1f km, and %.1f back, want %.0f within 0.5 %%", c.name, there, back, c.km)
		}
	}
}

func TestRoundTrip_IsFibreAndTwoLastMiles(t *testing.T) {
	quarter := RoundTrip(Place{0, 0}, Place{0, 90}, 1, 0)
	want := 2 * math.Pi / 2 * earthRadiusKM / (299792.458 / 1.468) * 1000 // ms
	if got := float64(quarter) / 1e6; math.Abs(got-want) > 0.001 {
		t.Errorf("got %.3f ms, want %.3f", got, want)
	}
	if got := RoundTrip(Place{0, 0}, Place{0, 90}, 2, 3*time.Millisecond); (got - 2*quarter - 6*time.Millisecond).Abs() > time.Microsecond {
		t.Errorf("with factor 2 and 3 ms at each end got %v, want twice %v and 6 ms", got, quarter)
	}
	top, err := Find("cities:london,frankfurt", Draw{})
	if err != nil {
		t.Fatal(err)
	}
	got, want2 := top.RTT("london", "frankfurt"), RoundTrip(cities()["london"], cities()["frankfurt"], DefaultFibreFactor, DefaultLastMile)
	if (got-want2).Abs() > time.Microsecond || got < 8*time.Millisecond || got > 15*time.Millisecond {
		t.Errorf("got %v, want %v", got, want2)
	}
}

func TestFind_SaysWhatThereIs(t *testing.T) {
	for name, want := range map[string]string{
		"emulab-5x4": `did you mean "emulab-5x3"?`,
		"zzz":        "built in are emulab-5x3, emulab-5x3-mail, three-dc, two-cities",
	} {
		if _, err := Find(name, Draw{}); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want not found with %q", name, err, want)
		}
	}
	if _, err := Find(t.TempDir(), Draw{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a folder: got %v, want invalid", err)
	}
	if _, err := Find("cities:paris,pairs", Draw{}); err == nil || !strings.Contains(err.Error(), "unknown city") {
		t.Errorf("got %v, want the unknown city", err)
	}
}
