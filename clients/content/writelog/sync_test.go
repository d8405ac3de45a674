package writelog

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestLog_WritersDoNotWaitForTheDisk writes while the disk takes its time to
// sync: for an fsync of a program, and for files that are full.
func TestLog_WritersDoNotWaitForTheDisk(t *testing.T) {
	syncing, release := make(chan struct{}, 64), make(chan struct{})
	l, _ := open(t, t.TempDir(), Options{SegmentBytes: 4096, Sync: func(f *os.File) error {
		syncing <- struct{}{}
		<-release
		return f.Sync()
	}})
	write(t, l, 1, 0, "first")
	synced := make(chan error, 1)
	go func() { synced <- l.Sync() }()
	<-syncing
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range uint64(20) { // of several files
			write(t, l, 2, i*1024, strings.Repeat("x", 1024))
		}
	}()
	select {
	case <-written:
	case <-time.After(10 * time.Second):
		t.Error("writers wait for the disk")
	}
	select {
	case err := <-synced:
		t.Errorf("the sync ended before the disk: %v", err)
	default:
	}
	close(release)
	if err := <-synced; err != nil {
		t.Error(err)
	}
	<-written
}
