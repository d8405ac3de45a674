package conformance

import (
	"reflect"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// testBalance sets a site's marks, has a node say what it gives away, and reads both.
func testBalance(f *fixture) {
	rev := f.seed()
	oslo := geoconfig.Site{Name: "oslo", Location: "somewhere", Revision: rev, Balance: &geoconfig.Balance{Off: true, High: 90, Low: 70}}
	oslo.Revision = f.apply(geoconfig.Batch{Sites: []geoconfig.Site{oslo}})
	if got := f.read(geoconfig.Query{Sites: true}).Sites[0]; !reflect.DeepEqual(got, oslo) {
		f.Errorf("got %+v, want %+v", got, oslo)
	}
	if got := f.follow(rev, 0).Sites; len(got) != 1 || !reflect.DeepEqual(got[0], oslo) {
		f.Errorf("followers got %+v, want %+v", got, oslo)
	}
	n := f.read(geoconfig.Query{Nodes: true}).Nodes[0]
	n.Fill, n.Giving = geoconfig.High, &geoconfig.Giving{Slice: 7, To: "other"}
	n.Revision = f.apply(geoconfig.Batch{Nodes: []geoconfig.Node{n}})
	if got := f.read(geoconfig.Query{Nodes: true}).Nodes[0]; !reflect.DeepEqual(got, n) {
		f.Errorf("got %+v, want %+v", got, n)
	}
	for _, g := range []geoconfig.Giving{{To: "other"}, {Slice: ids.MaxSlice + 1, To: "other"}, {Slice: 7}, {Slice: 7, To: "a b"}} {
		bad := n
		bad.Giving = &g
		f.refuse(fault.Invalid, n.Key().String(), geoconfig.Batch{Nodes: []geoconfig.Node{bad}})
	}
	for _, b := range []geoconfig.Balance{{High: 100, Low: 70}, {High: 90}, {High: 70, Low: 66}, {High: 70, Low: 80}} {
		bad := oslo
		bad.Balance = &b
		f.refuse(fault.Invalid, "sites/oslo", geoconfig.Batch{Sites: []geoconfig.Site{bad}})
	}
}
