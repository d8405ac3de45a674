//go:build windows || cgofuse

package winfsp

import "cartwheel.dev/clients/mount"

// notifier has nothing to drop: this binding mounts with all of the kernel's
// timeouts at nothing, so every call reaches the file system.
type notifier struct{}

var _ mount.Notifier = (*notifier)(nil)

// InvalidateInode implements mount.Notifier.
func (*notifier) InvalidateInode(mount.Inode, int64, int64) {}

// InvalidateEntry implements mount.Notifier.
func (*notifier) InvalidateEntry(mount.Inode, string) {}

// Delete implements mount.Notifier.
func (*notifier) Delete(mount.Inode, mount.Inode, string) {}

// Drained implements mount.Notifier.
func (*notifier) Drained(done func()) { done() }
