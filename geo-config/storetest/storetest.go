// Package storetest runs the conformance suite of geoconfig.Store as Go tests.
// Production code does not import it.
package storetest

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/conformance"
)

// Factory opens a new, empty store, which is closed when the test ends.
type Factory func(t *testing.T) geoconfig.Store

// Run runs the whole suite.
func Run(t *testing.T, open Factory) {
	for _, c := range conformance.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { s.Close() })
			c.Run(t.Context(), t, s)
		})
	}
}
