package inmem_test

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/geo-config/storetest"
)

func TestStore_Conforms(t *testing.T) {
	storetest.Run(t, func(*testing.T) geoconfig.Store { return inmem.New() })
}
