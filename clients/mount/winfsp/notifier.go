//go:build windows || cgofuse

package winfsp

import "cartwheel.dev/clients/mount"

// notifier has nothing to drop: this binding mounts with all of the kernel's
// timeouts at nothing, so every call reaches the file system.
type notifier struct{}

var _ mount.Notifier = (*notifier)(nil)

// InvalidateInode implements mount.Notifier.
func (*notifier) InvalidateInode(mount.NodeID, int64, int64) {}

// InvalidateEntry implements mount.Notifier.
func (*notifier) InvalidateEntry(mount.NodeID, string) {}

// Delete implements mount.Notifier.
func (*notifier) Delete(mount.NodeID, mount.NodeID, string) {}

// Drained implements mount.Notifier.
func (*notifier) Drained(done func()) { done() }
