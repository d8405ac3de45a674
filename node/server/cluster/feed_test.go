package cluster_test

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/server/cluster"
)

func TestSliceOf_NamesOnlySlices(t *testing.T) {
	if id, ok := cluster.SliceOf(geoconfig.SliceKey(7)); !ok || id != 7 {
		t.Errorf("of slices/7: got %d, %v, want 7", id, ok)
	}
	if _, ok := cluster.SliceOf(geoconfig.RowKey{Table: geoconfig.NodesTable, Name: "7"}); ok {
		t.Error("a node's key names a slice")
	}
}

func TestWatch_TellsAllRowsThenEachChangeOnce(t *testing.T) {
	d, err := cluster.New(cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Learn(geoconfig.SliceRow{ID: 1, Epoch: 1})
	f, stop := d.Watch()
	<-f.Ready()
	if keys, _ := f.Take(); len(keys) != 1 || keys[0] != geoconfig.SliceKey(1) {
		t.Fatalf("at first: got %v, want slices/1", keys)
	}
	d.Learn(geoconfig.SliceRow{ID: 2, Epoch: 1})
	d.Learn(geoconfig.SliceRow{ID: 2, Epoch: 2})
	<-f.Ready()
	if keys, _ := f.Take(); len(keys) != 1 || keys[0] != geoconfig.SliceKey(2) {
		t.Errorf("after two changes of one row: got %v, want slices/2 once", keys)
	}
	stop()
	d.Learn(geoconfig.SliceRow{ID: 3, Epoch: 1})
	if keys, _ := f.Take(); len(keys) != 0 {
		t.Errorf("after stop: got %v, want nothing", keys)
	}
}
