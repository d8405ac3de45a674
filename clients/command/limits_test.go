package command

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/geo-config/fault"
)

func TestLimits_NamesEveryInvalidOne(t *testing.T) {
	good := limitFlags{ReadAhead: 8 << 20, FlushAfter: 5 * time.Second, UntoldFiles: 1024, InFlight: 512}
	if err := good.check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	bad := good
	bad.DirtyBytes, bad.CacheBytes, bad.FlushAfter, bad.KnownFiles, bad.InFlight = 5, -1, time.Nanosecond, 3, 1024
	err := bad.check()
	if !fault.Is(err, fault.Usage) {
		t.Fatalf("got %v, want Usage", err)
	}
	for _, flag := range []string{"--dirty-bytes", "--memory-cache", "--flush-after", "--known-files", "--in-flight"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%v does not name %s", err, flag)
		}
	}
	if strings.Contains(err.Error(), "--read-ahead") {
		t.Errorf("%v names a limit that is right", err)
	}
}

func TestLimits_ReachTheMount(t *testing.T) {
	l := limitFlags{DirtyBytes: 1, CacheBytes: 2, ReadAhead: 3, FlushAfter: 4, KnownFiles: 5, CachedNames: 6, InlineBytes: 7, UntoldFiles: 8, InFlight: 9}
	var o cartwheel.Options
	l.apply(&o)
	if o.DirtyBytes != 1 || o.MemoryCache != 2 || o.ReadAhead != 3 || o.FlushAfter != 4 || o.KnownFiles != 5 || o.Names.Objects != 6 ||
		o.Names.Entries != 6 || o.Names.Inline != 7 || o.UntoldFiles != 8 || o.InFlight != 9 {
		t.Errorf("got %+v", o)
	}
}
