package timeouts

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// reads runs a read with a limit of a minute, while each second so many bytes come from a
// time on until another, and returns how long it went on.
func reads(t *testing.T, perSecond uint64, until time.Duration) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		client, end := context.WithCancel(context.Background())
		defer end()
		var came atomic.Uint64
		began := time.Now()
		go func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for time.Since(began) < until {
				select {
				case <-tick.C:
					came.Add(perSecond)
				case <-client.Done():
					return
				}
			}
		}()
		l := New(Options{Context: client, OpTimeout: time.Minute, Progress: func() uint64 { return 0 }})
		out, done := l.WhileComing(context.Background(), came.Load)
		defer done()
		<-out.Done()
		took = time.Since(began)
		if err := context.Cause(out); !fault.Is(err, fault.TimedOut) {
			t.Errorf("it ended with %v", err)
		}
	})
	return took
}

func TestWhileComing_EndsWhereNothingComes(t *testing.T) {
	for name, c := range map[string]struct {
		perSecond   uint64
		until       time.Duration
		least, most time.Duration
	}{
		"nothing":               {0, 0, time.Minute, time.Minute},
		"heartbeats alone":      {200, time.Hour, time.Minute, time.Minute},
		"a thin line":           {20_000, time.Hour, 10 * time.Minute, 10 * time.Minute},
		"a line that falls off": {20_000, 5 * time.Minute, 5*time.Minute + 50*time.Second, 6 * time.Minute},
	} {
		if took := reads(t, c.perSecond, c.until); took < c.least || took > c.most {
			t.Errorf("%s: it went on for %v, want %v to %v", name, took, c.least, c.most)
		}
	}
}

func TestWhileComing_EndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := context.WithCancel(context.Background())
		defer end()
		caller, leave := context.WithCancel(context.Background())
		l := New(Options{Context: client, OpTimeout: time.Minute, Progress: func() uint64 { return 0 }})
		out, done := l.WhileComing(caller, func() uint64 { return 0 })
		began := time.Now()
		leave()
		<-out.Done()
		if took := time.Since(began); took > interruptGrace {
			t.Errorf("an interrupted read went on for %v", took)
		}
		done()
		out, done = l.WhileComing(context.Background(), func() uint64 { return 0 })
		done()
		if out.Err() == nil {
			t.Error("a read that is done has no end")
		}
	})
}
