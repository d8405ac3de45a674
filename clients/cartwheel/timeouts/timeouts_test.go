package timeouts

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestStall_IsNotFoundWhileThereIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Uint64
		var lost atomic.Int32
		p := &stall{limit: time.Minute, progress: made.Load, lost: func() { lost.Add(1) }}
		p.start()
		for range 10 {
			time.Sleep(50 * time.Second)
			made.Add(1)
		}
		synctest.Wait()
		if lost.Load() != 0 {
			t.Error("it was lost though something was done every 50 s")
		}
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		if lost.Load() != 1 {
			t.Errorf("it was lost %d times though nothing was done for two minutes, want once", lost.Load())
		}
		p.stop()
	})
}

func TestStall_EndsWithItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &stall{limit: time.Minute, progress: func() uint64 { return 0 }, lost: func() { t.Error("lost after the end") }}
		p.start()
		time.Sleep(30 * time.Second)
		p.stop()
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}
