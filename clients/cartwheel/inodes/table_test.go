package inodes

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

// TestTable_StaysUsableAfterAPanic meets a bug while one request looks the open
// files of a mount through. Every other request needs the mutex.
func TestTable_StaysUsableAfterAPanic(t *testing.T) {
	table := New(0)
	table.CountOpen(ids.NewObject(1, 7), mount.OpenFlags(0))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the bug was not met")
			}
		}()
		table.ForgetOpen(0, func(ids.Object) bool { panic("a bug") })
	}()
	if !table.mu.TryLock() {
		t.Error("the mutex is held for good")
	}
}
