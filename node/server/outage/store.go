package outage

import (
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Store returns the configuration store as a node uses it: while a drill takes
// geo-config away, each call answers Unreachable, those under way too. Closing it closes
// the inner one.
func (s *Stage) Store(inner geoconfig.Store) geoconfig.Store { return &store{inner, s} }

// store implements geoconfig.Store.
type store struct {
	geoconfig.Store
	stage *Stage
}

var _ geoconfig.Store = (*store)(nil)

// awayError is the error of calls that a drill refuses or ends.
func awayError() error {
	return fault.E(fault.Unreachable, "outage.Store", "geo-config", "a drill has this node behave as if geo-config were away")
}

// call runs one call to the inner store.
func call[T any](ctx context.Context, s *store, run func(context.Context) (T, error)) (T, error) {
	s.stage.mu.Lock()
	present := s.stage.present
	s.stage.mu.Unlock()
	var none T
	if present.Err() != nil {
		return none, awayError()
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(present, cancel)()
	out, err := run(bounded)
	if err != nil && present.Err() != nil && ctx.Err() == nil {
		return none, awayError()
	}
	return out, err
}

// Read implements geoconfig.Store.
func (s *store) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	return call(ctx, s, func(ctx context.Context) (geoconfig.Rows, error) { return s.Store.Read(ctx, q) })
}

// Apply implements geoconfig.Store.
func (s *store) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	return call(ctx, s, func(ctx context.Context) (ids.Revision, error) { return s.Store.Apply(ctx, b) })
}

// Settle implements geoconfig.Store.
func (s *store) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	type settled struct {
		revision ids.Revision
		applied  bool
	}
	out, err := call(ctx, s, func(ctx context.Context) (out settled, err error) {
		out.revision, out.applied, err = s.Store.Settle(ctx, key)
		return out, err
	})
	return out.revision, out.applied, err
}

// Follow implements geoconfig.Store.
func (s *store) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	return call(ctx, s, func(ctx context.Context) (geoconfig.Rows, error) { return s.Store.Follow(ctx, since, limit) })
}

// Properties implements geoconfig.Store.
func (s *store) Properties(ctx context.Context) (geoconfig.Properties, error) {
	return call(ctx, s, s.Store.Properties)
}

// Know tells the inner store the lowest generation that the node obeys, where it wants to
// know that.
func (s *store) Know(g ids.Generation) {
	if k, ok := s.Store.(interface{ Know(ids.Generation) }); ok {
		k.Know(g)
	}
}
