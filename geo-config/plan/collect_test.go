package plan_test

import (
	"reflect"
	"slices"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

func TestCollect_AddsRowsOfEveryTable(t *testing.T) {
	want := geoconfig.Rows{
		Cluster: &geoconfig.Cluster{ID: "c1", Generation: 2},
		Sites:   []geoconfig.Site{{Name: "paris"}, {Name: "oslo"}},
		Nodes:   []geoconfig.Node{{ID: "n1", Site: "paris"}},
		Slices:  []geoconfig.SliceRow{sliceRow(7, 1)},
		Users:   []geoconfig.User{ann()},
		Removed: []geoconfig.Removal{{Key: nodeKey("n9"), Revision: 8}},
	}
	var got geoconfig.Rows
	for _, w := range []plan.Write{
		{Key: geoconfig.ClusterKey(), Body: encode(t, want.Cluster)},
		{Key: siteKey("paris"), Body: encode(t, want.Sites[0])},
		{Key: siteKey("oslo"), Body: encode(t, want.Sites[1])},
		{Key: nodeKey("n1"), Body: encode(t, want.Nodes[0])},
		{Key: geoconfig.SliceKey(7), Body: encode(t, want.Slices[0])},
		{Key: ann().RowKey(), Body: encode(t, want.Users[0])},
		{Key: nodeKey("n9")},
	} {
		if err := plan.Collect(&got, w.Key, w.Body, 8); err != nil {
			t.Fatalf("%v: %v", w.Key, err)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCollect_RefusesWhatItCannotRead(t *testing.T) {
	later := geoconfig.RowKey{Table: geoconfig.RecordsTable + 1, Name: "x"}
	for key, want := range map[geoconfig.RowKey]fault.Kind{
		geoconfig.ClusterKey(): fault.Corrupt,
		siteKey("paris"):       fault.Corrupt,
		nodeKey("n1"):          fault.Corrupt,
		geoconfig.SliceKey(7):  fault.Corrupt,
		ann().RowKey():         fault.Corrupt,
		later:                  fault.NewerVersion,
	} {
		err := plan.Collect(&geoconfig.Rows{}, key, []byte("{"), 8)
		if !fault.Is(err, want) || fault.SubjectOf(err) != key.String() {
			t.Errorf("%v: got %v of %q, want kind %v", key, err, fault.SubjectOf(err), want)
		}
	}
}

func TestCheckQuery_BoundsWhatIsAsked(t *testing.T) {
	const most = geoconfig.MaxBatchRows
	for name, c := range map[string]struct {
		query geoconfig.Query
		want  fault.Kind
	}{
		"nothing":              {geoconfig.Query{}, fault.None},
		"the most":             {geoconfig.Query{Slices: most, Audit: most, SliceIDs: make([]ids.Slice, most)}, fault.None},
		"too many slices":      {geoconfig.Query{Slices: most + 1}, fault.TooLarge},
		"too many records":     {geoconfig.Query{Audit: most + 1}, fault.TooLarge},
		"too many slice IDs":   {geoconfig.Query{SliceIDs: make([]ids.Slice, most+1)}, fault.TooLarge},
		"fewer than no slices": {geoconfig.Query{Slices: -1}, fault.Invalid},
		"fewer than no record": {geoconfig.Query{Audit: -1}, fault.Invalid},
	} {
		if got := fault.KindOf(plan.CheckQuery(c.query)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestLimit_StaysWithinABatch(t *testing.T) {
	const most = geoconfig.MaxBatchRows
	for limit, want := range map[int]int{-1: most, 0: most, 1: 1, most: most, most + 1: most} {
		if got := plan.Limit(limit); got != want {
			t.Errorf("%d: got %d, want %d", limit, got, want)
		}
	}
}

func TestCut_EndsWithABatch(t *testing.T) {
	for name, c := range map[string]struct {
		revs  []ids.Revision
		limit int
		want  int
	}{
		"no rows":                {nil, 3, 0},
		"fewer than asked for":   {[]ids.Revision{1, 2}, 3, 2},
		"at the end of a batch":  {[]ids.Revision{1, 1, 2, 3}, 2, 2},
		"within a batch":         {[]ids.Revision{1, 2, 2, 2, 3}, 2, 4},
		"within the last batch":  {[]ids.Revision{1, 2, 2, 2}, 2, 4},
		"a batch above the rest": {[]ids.Revision{4, 4, 4, 5}, 1, 3},
	} {
		if got := plan.Cut(c.revs, c.limit); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestFollowRows_ReachPastTheLastBatch(t *testing.T) {
	// The worst case: the limit falls on the first row of a batch as large as
	// one may be. The row after it must be among those fetched, as only that
	// one shows that there are more.
	for _, limit := range []int{1, 7, geoconfig.MaxBatchRows} {
		var revs []ids.Revision
		for i := range limit - 1 {
			revs = append(revs, ids.Revision(i+1))
		}
		for range geoconfig.MaxBatchRows {
			revs = append(revs, ids.Revision(limit))
		}
		end := len(revs)
		revs = append(revs, ids.Revision(limit+1), ids.Revision(limit+2))
		fetched := revs[:min(len(revs), plan.FollowRows(limit))]
		if n := plan.Cut(fetched, limit); n != end || n == len(fetched) {
			t.Errorf("limit %d: cut %d of %d fetched rows, want %d and more", limit, n, len(fetched), end)
		}
	}
}

func TestCompareKeys_OrdersByTableThenName(t *testing.T) {
	want := []geoconfig.RowKey{
		geoconfig.ClusterKey(), siteKey("oslo"), siteKey("paris"), nodeKey("n10"), nodeKey("n9"),
		geoconfig.SliceKey(9), geoconfig.SliceKey(10), geoconfig.SliceKey(100), ann().RowKey(),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, plan.CompareKeys)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if c := plan.CompareKeys(want[5], want[5]); c != 0 {
		t.Errorf("a key compares to itself as %d, want 0", c)
	}
}

func TestSliceID_ReadsKeysOfSlices(t *testing.T) {
	for key, want := range map[geoconfig.RowKey]ids.Slice{
		geoconfig.SliceKey(1):                         1,
		geoconfig.SliceKey(ids.MaxSlice):              ids.MaxSlice,
		geoconfig.SliceKey(ids.MaxSlice + 1):          0,
		{Table: geoconfig.SlicesTable, Name: ""}:      0,
		{Table: geoconfig.SlicesTable, Name: "seven"}: 0,
		{Table: geoconfig.SlicesTable, Name: "-7"}:    0,
		{Table: geoconfig.NodesTable, Name: "7"}:      0,
	} {
		if got := plan.SliceID(key); got != want {
			t.Errorf("%v: got %d, want %d", key, got, want)
		}
	}
}
