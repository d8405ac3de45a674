package command

import (
	"fmt"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

func TestSliceList_NamesSlices(t *testing.T) {
	var rows []whatif.Slice
	for _, id := range []ids.Slice{1, 2, 5, 6, 9} {
		rows = append(rows, whatif.Slice{SliceRow: geoconfig.SliceRow{ID: id}})
	}
	for _, test := range []struct {
		text, want string
		kind       fault.Kind
	}{
		{text: "all", want: "[1 2 5 6 9]"},
		{text: "5", want: "[5]"},
		{text: "1,4-6,5", want: "[1 5 6]"},
		{text: "2-2", want: "[2]"},
		{text: "3", kind: fault.NotFound},
		{text: "1,7-8", kind: fault.NotFound},
		{text: "", kind: fault.Usage},
		{text: "0", kind: fault.Usage},
		{text: "6-5", kind: fault.Usage},
		{text: "1-2-3", kind: fault.Usage},
		{text: "-1", kind: fault.Usage},
	} {
		list, err := parseSlices(test.text)
		var found []*whatif.Slice
		if err == nil {
			found, err = list.of(rows)
		}
		if test.kind != 0 {
			if !fault.Is(err, test.kind) {
				t.Errorf("%q: got %v, want %v", test.text, err, test.kind)
			}
			continue
		}
		var got []ids.Slice
		for _, s := range found {
			got = append(got, s.ID)
		}
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%q: got %v, %v; want %s", test.text, got, err, test.want)
		}
	}
}
