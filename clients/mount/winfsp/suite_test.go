//go:build cgofuse && linux

package winfsp_test

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/clients/mount/winfsp"
)

func TestSuite_OnTheTwin(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) []string {
		m, err := winfsp.Mount(memfs.New(memfs.Options{}).View(), mount.Options{Point: mounttest.Point(t), FSName: "twin", AllowOther: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Unmount(mount.UnmountLimit); err != nil {
				t.Error(err)
			}
		})
		return []string{m.Point()}
	}, exceptions()...)
}

// exceptions are what cgofuse's interface by path (libfuse 2.8) cannot carry.
func exceptions() []mounttest.Except {
	return []mounttest.Except{
		{Case: "timestamps with nanoseconds", Reason: "libfuse 2 drops a change of one time alone"},
		{Case: "holes are found by SEEK_HOLE and SEEK_DATA", Reason: "cgofuse has no lseek"},
		{Case: "RENAME_NOREPLACE and RENAME_EXCHANGE", Reason: "libfuse 2 has no flags of rename"},
		{Case: "set-id bits go when others write or owners change", Reason: "libfuse 2 clears them by a chmod in the writer's name"},
		{Case: "an access ACL lets in and keeps out", Reason: "libfuse 2 does not let the kernel check ACLs"},
		{Case: "a default ACL is inherited", Reason: "libfuse 2 applies the umask before the call"},
	}
}
