package server

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestFailuresAreForgottenWithTheirSlicesAndMembers(t *testing.T) {
	row := func(id ids.Slice, active ids.Node, members ...ids.Node) geoconfig.SliceRow {
		r := geoconfig.SliceRow{ID: id, Active: active}
		for _, m := range members {
			r.Members = append(r.Members, geoconfig.Member{Node: m, State: geoconfig.Failed})
		}
		return r
	}
	since := map[failedMember]time.Duration{{1, "b"}: 1, {1, "c"}: 1, {2, "b"}: 1, {3, "b"}: 1}
	forgetFailures(since, "a", []geoconfig.SliceRow{row(1, "a", "a", "b"), row(2, "c", "c", "b")})
	if _, kept := since[failedMember{1, "b"}]; !kept || len(since) != 1 {
		t.Errorf("got %v, want only the failed member of the slice that this node acts for", since)
	}
}
