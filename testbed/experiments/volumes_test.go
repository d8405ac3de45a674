package experiments

import (
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func volumesEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := volumes().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestVolumes_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"rtt": {"0", "-1", "NaN", "far"}, "mbit": {"0", "Inf"}, "creates": {"0", "1.5", "1e7"}, "workers": {"0", "2.5", "some"},
		"seconds": {"0", "-3"}, "boxes": {"0", "0.5"}, "planted": {"0", "1e5"},
	} {
		for _, v := range values {
			_, err := planVolumes(volumesEnv(t, map[string]string{name: v}))
			if !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: got %v, want an error that names it", name, v, err)
			}
		}
	}
}

func TestVolumes_HasThreeNodes(t *testing.T) {
	p, err := planVolumes(volumesEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for net, sites := range map[volumesNet]int{volumesWide: 3, volumesLocal: 1} {
		top, err := p.topology(net)
		if err != nil {
			t.Fatal(err)
		}
		if len(top.Hosts) != 3 || len(top.Sites) != sites {
			t.Errorf("%s: %d hosts at %d sites, want 3 at %d", net, len(top.Hosts), len(top.Sites), sites)
		}
	}
}

func TestVolumes_ComparesLayouts(t *testing.T) {
	p := volumesPlan{rtt: 100, mbit: 10, creates: 2, workers: 1, boxes: 1, planted: 1}
	row := func(net volumesNet, work, layout string, each ...load.BoxResult) volumesRow {
		return volumesRow{Net: net, Work: work, Layout: layout, Each: each}
	}
	single := volumesWorks()[1].name
	rows := []volumesRow{
		row(volumesWide, single, "volumes", load.BoxResult{Began: 0, Ended: 1e6, Create: []float64{104, 106}}),
		row(volumesWide, single, "directories", load.BoxResult{Began: 0, Ended: 1e6, Create: []float64{204, 206}}),
		row(volumesLocal, "e-mail", "volumes",
			load.BoxResult{Began: 0, Ended: 1e6, Create: []float64{1, 2, 3}, Read: []float64{4}, Delete: []float64{5, 6}, Bytes: 3e6, Failed: 2, Checked: 7},
			load.BoxResult{Began: 1e6, Ended: 2e6, Create: []float64{9}, Bytes: 1e6, Checked: 1, Lost: []string{"x: is not there"}}),
		row(volumesWide, "photos", "volumes", load.BoxResult{Site: "s1", Ended: 1e6, Create: []float64{1}},
			load.BoxResult{Site: "s2", Ended: 1e6, Create: []float64{3}, Read: []float64{2}}, load.BoxResult{Site: "s3", Ended: 1e6, Create: []float64{2, 5}}),
		row(volumesLocal, "e-mail", "directories", load.BoxResult{Began: 0, Ended: 2e6, Create: []float64{1}}),
	}
	r := volumesReport(p, rows)
	want(t, published(t, r),
		"| three sites | create far from the active | volumes | 2 | 105 | 106 | 100 |", "| three sites | create far from the active | directories | 2 | 205 | 206 | 100 |",
		"| one place | e-mail | volumes | 3.50 | 2.00 | 1400 |", "| one place | e-mail | all | volumes | 2.50 | 9.00 | 4.00 | 4.00 | 5.50 | 6.00 |",
		"| three sites | photos | beside the active | volumes | 1.00 | 1.00 | - | - | - | - |", "| three sites | photos | far from the active | volumes | 3.00 | 5.00 | 2.00 | 2.00 | - | - |", "| one place | e-mail | volumes | 2 | 8 | 1 |",
		"not measured here: BeanFS")
	if lost := rows[2].lost(); len(lost) != 1 {
		t.Errorf("lost are %v, want one", lost)
	}
	rates := volumesRates(rows)
	if len(rates.Groups) != 2 || len(rates.Bars) != 2 || len(rates.Bars[0].Y) != 2 || rates.Bars[0].Y[0] != 3.5 || rates.Bars[1].Y[0] != 0.5 {
		t.Errorf("the rates are %+v", rates)
	}
	if spread := volumesSpread(rows); len(spread.Lines) != 2 || spread.Lines[0].Dashed || !spread.Lines[1].Dashed {
		t.Errorf("the spread is %+v", spread)
	}
}
