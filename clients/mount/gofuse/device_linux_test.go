package gofuse

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func TestDevice_IsNotInherited(t *testing.T) {
	mounttest.NeedFUSE(t)
	m, err := Mount(memfs.New(memfs.Options{}).View(), mount.Options{Point: mounttest.Point(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	}()
	out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), devFuse) {
		t.Errorf("a child has the device open:\n%s", out)
	}
}

func TestDevice_ComesFromTheHelper(t *testing.T) {
	mounttest.NeedFUSE(t)
	if _, err := exec.LookPath(helper); err != nil {
		t.Skipf("no %s here", helper)
	}
	fs, point := memfs.New(memfs.Options{}).View(), mounttest.Point(t)
	n := newNotifier()
	fs.Init(n)
	c, err := connect(newBinding(fs, n), point, &fuse.MountOptions{
		FsName: `odd,"name\`, Name: "cartwheel", MaxWrite: maxTransfer, Options: []string{"default_permissions"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		c.Serve()
		close(ended)
	}()
	if err := fill(filepath.Join(point, "f"), []byte("x")); err != nil {
		t.Error(err)
	}
	if at := findMount(point); at == nil || at.source != `odd,"name\` || at.kind != "fuse.cartwheel" {
		t.Errorf("mounted as %+v", at)
	}
	if err := unmountPath(point, polite, false); err != nil {
		t.Fatal(err)
	}
	<-ended
}
