package server_test

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
)

// TestTransfer_BringsTheDifferenceAlone has a member return that has most of the state, and
// missed more than the log keeps: only a part of the rows travels.
func TestTransfer_BringsTheDifferenceAlone(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards told
	told := map[string]int64{}
	a := &absence{t: t, every: 10, began: heard{what: "a slice's state was copied", then: make(chan struct{}, 1), n: new(atomic.Int32), tell: func(r slog.Record) {
		r.Attrs(func(a slog.Attr) bool {
			if a.Value.Kind() == slog.KindAny || a.Value.Kind() == slog.KindInt64 {
				mu.Lock()
				defer mu.Unlock()
				switch n := a.Value.Any().(type) {
				case int:
					told[a.Key] = int64(n)
				case int64:
					told[a.Key] = n
				}
			}
			return true
		})
	}}}
	a.start(512 << 10)
	a.names = a.files(a.ctx, "before", 2000)
	a.junior.Stop() // it keeps in its metadata what is in its journal
	awaitState(a.ctx, t, a.c, a.junior, geoconfig.Failed)
	a.names = append(a.names, a.files(a.ctx, "missed", 700)...)
	a.back()
	awaitState(a.ctx, t, a.c, a.junior, geoconfig.Normal)
	checkCopy(a.ctx, t, a.junior, a.names)
	mu.Lock()
	defer mu.Unlock()
	const before = 2000 * 9 / 10 * 5000 // bytes, about: nine of ten files have their content in rows
	if told["rows"] == 0 || told["row_bytes"] > before*3/4 || told["alike"] < 1000 {
		t.Errorf("%d rows of %d bytes travelled and %d were alike; want the content of most files alike", told["rows"], told["row_bytes"], told["alike"])
	}
}
