package reads

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/availability"
)

// Availability says what to expect of a slice with a policy, from the nodes and
// slices there are and from what the request assumes. It changes nothing.
func (s *Reads) Availability(ctx context.Context, in *struct{ Body view.AvailabilityRequest }) (*view.Answer[view.Availability], error) {
	f := s.figures(ctx)
	in.Body.Assumptions.On(&f)
	p := availability.Policy{Level: in.Body.Level, Sites: in.Body.Sites}
	e, err := availability.Predict(f, p)
	if err != nil {
		return nil, err
	}
	copied, _, err := f.Copying(p)
	if err != nil {
		return nil, err
	}
	stored := in.Body.StoredBytes
	if stored == 0 {
		stored = f.SliceBytes
	}
	return &view.Answer[view.Availability]{Body: view.OfEstimate(&e, &f, stored, copied)}, nil
}

// figures are the cluster's, where they are known, and defaults. Nodes that are
// drained take no slices and do not count.
func (s *Reads) figures(ctx context.Context) availability.Figures {
	f := availability.Defaults()
	var nodes []geoconfig.Node
	perSite := map[ids.Site]int{}
	for _, n := range s.o.Directory.Nodes() {
		if !n.Draining {
			nodes = append(nodes, n)
			perSite[n.Site]++
		}
	}
	f.Nodes, f.Sites, f.Slices = len(nodes), len(perSite), max(1, s.index.Len())
	for _, n := range perSite {
		f.PerSite = max(f.PerSite, n)
	}
	if sizes := s.sizes(ctx, nodes); len(sizes) > 0 {
		var sum int64
		for _, size := range sizes {
			sum += size
		}
		f.SliceBytes = sum / int64(len(sizes))
	}
	if d, ok := s.setting("lease"); ok {
		// The wait of a standby is 1.2 leases; what it does then takes 100 ms.
		f.Lease, f.Takeover = d, d*12/10+100*time.Millisecond
	}
	if d, ok := s.setting("failed_after"); ok {
		f.FailedAfter = d
	}
	return f
}

// setting reads a time of this node's settings.
func (s *Reads) setting(key string) (time.Duration, bool) {
	for _, x := range s.o.Settings {
		if x.Key == key {
			d, err := time.ParseDuration(x.Value)
			return d, err == nil
		}
	}
	return 0, false
}
