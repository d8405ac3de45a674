//go:build linux

package gofuse_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/fault"
)

// shell runs commands beside the daemon, bounded, and answers what they print.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "DIR="+dir)
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // the output says what failed
	if ctx.Err() != nil {
		t.Fatalf("%s: no end: %s", script, out)
	}
	return strings.TrimSpace(string(out))
}

// panicky fails in one call.
type panicky struct{ *memfs.View }

func (p panicky) Mkdir(context.Context, mount.Caller, mount.Inode, string, uint32) (mount.Entry, error) {
	panic("a bug")
}

func TestMount_PanicFailsOneRequestOnly(t *testing.T) {
	mounttest.NeedFUSE(t)
	var logged strings.Builder
	o := options(t)
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	m, err := gofuse.Mount(panicky{memfs.New(memfs.Options{}).View()}, o)
	if err != nil {
		t.Fatal(err)
	}
	got := shell(t, m.Point(), `mkdir $DIR/d; echo fine >$DIR/f && cat $DIR/f`)
	if !strings.Contains(got, "Input/output error") || !strings.HasSuffix(got, "fine") {
		t.Errorf("got %q", got)
	}
	if err := m.Unmount(mount.UnmountLimit); err != nil {
		t.Error(err)
	}
	if !strings.Contains(logged.String(), "a bug") {
		t.Errorf("the panic is not logged: %q", logged.String())
	}
}

func TestMount_ForgetsEverything(t *testing.T) {
	mounttest.NeedFUSE(t)
	store := memfs.New(memfs.Options{Valid: time.Hour})
	m, err := gofuse.Mount(store.View(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	shell(t, m.Point(), `cd $DIR; mkdir -p a/b/c; touch a/1 a/b/2 a/b/c/3; ls -lR >/dev/null; ln a/1 x; mv x y; exec 3>a/1; rm -r a y; echo x >&3`)
	// The kernel forgets a little later than it answers, and an unmount cuts
	// off what it has not said by then.
	for end := time.Now().Add(10 * time.Second); store.Objects() != 1 && time.Now().Before(end); {
		<-time.After(10 * time.Millisecond)
	}
	if err := m.Unmount(mount.UnmountLimit); err != nil {
		t.Fatal(err)
	}
	if objects, handles := store.Objects(), store.Handles(); objects != 1 || handles != 0 {
		t.Errorf("%d objects and %d handles are left", objects, handles)
	}
}

func TestUnmount_TakesABusyMountByForce(t *testing.T) {
	mounttest.NeedFUSE(t)
	m, err := gofuse.Mount(memfs.New(memfs.Options{}).View(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	user := exec.Command("sh", "-c", "exec 3>$DIR/f; echo ready; cat")
	user.Env = append(os.Environ(), "DIR="+m.Point())
	in, err := user.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := user.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = user.Process.Kill()
		_ = user.Wait()
	}()
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := m.Unmount(500 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < 400*time.Millisecond || took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if err := m.Unmount(time.Second); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestMount_NamesWhatIsWrong(t *testing.T) {
	mounttest.NeedFUSE(t)
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	m, err := gofuse.Mount(memfs.New(memfs.Options{}).View(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Unmount(mount.UnmountLimit); err != nil {
			t.Error(err)
		}
	}()
	for _, each := range []struct {
		what, point string
		kind        fault.Kind
	}{
		{"missing", filepath.Join(base, "missing"), fault.NotFound},
		{"a file", file, fault.NotDirectory},
		{"taken", o.Point, fault.Busy},
	} {
		t.Run(each.what, func(t *testing.T) {
			_, err := gofuse.Mount(memfs.New(memfs.Options{}).View(), mount.Options{Point: each.point})
			if !fault.Is(err, each.kind) || !strings.Contains(err.Error(), each.point) {
				t.Errorf("got %v, want %v naming %s", err, each.kind, each.point)
			}
		})
	}
}

func TestMount_ReadOnlyRefusesWrites(t *testing.T) {
	mounttest.NeedFUSE(t)
	o := options(t)
	o.ReadOnly = true
	m, err := gofuse.Mount(memfs.New(memfs.Options{}).View(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := shell(t, m.Point(), `touch $DIR/f`); !strings.Contains(got, syscall.EROFS.Error()) && !strings.Contains(got, "Read-only") {
		t.Errorf("got %q", got)
	}
	if err := m.Unmount(mount.UnmountLimit); err != nil {
		t.Error(err)
	}
}
