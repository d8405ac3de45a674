package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mountAt mounts in the background and takes it away with the test.
func (d *demo) mountAt(point string, args ...string) {
	d.t.Helper()
	d.t.Cleanup(func() { _ = syscall.Unmount(point, syscall.MNT_DETACH) })
	d.run(binary(d.t, "cartwheel"), append([]string{"mount", d.Contact, point, "--daemon"}, args...)...)
}

// runs reports whether a process runs; one that has ended and that nobody has
// waited for does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func mountedAt(t *testing.T, point string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), " "+point+" ")
}

func TestMount_AnswersInTheBackground(t *testing.T) {
	d := startDemo(t)
	cartwheel := binary(t, "cartwheel")
	point := t.TempDir()
	pidFile := filepath.Join(t.TempDir(), "pid")
	d.mountAt(point, "--site", "paris", "--pid-file", pidFile, "-o", "rw,_netdev,nofail")
	if err := os.WriteFile(filepath.Join(point, "written"), []byte("through it"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !runs(pid) {
		t.Fatalf("the pid file says %q (%v), and no such process runs", text, err)
	}

	held, err := os.Open(filepath.Join(point, "written"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, 8, []string{point, "--lazy"}, cartwheel, "umount", point)
	held.Close()
	d.run(cartwheel, "umount", point)
	if mountedAt(t, point) {
		t.Error("it is still mounted")
	}
	d.await("the process to be gone", 2*time.Second, func() error {
		if runs(pid) {
			return os.ErrExist
		}
		return nil
	})
	refused(t, 3, []string{point}, cartwheel, "umount", point)
	if got := d.run("cat", filepath.Join(d.mount("tokyo"), "written")); got != "through it" {
		t.Errorf("got %q at another mount", got)
	}
}

func TestMount_HelperTakesOptionsOfFstab(t *testing.T) {
	d := startDemo(t)
	dir, point := t.TempDir(), t.TempDir()
	helper := filepath.Join(dir, "mount.cartwheel")
	if err := os.Symlink(binary(t, "cartwheel"), helper); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(point, syscall.MNT_DETACH) })
	d.run(helper, d.Contact, point, "-n", "-o", "ro,_netdev,noauto,x-systemd.automount,site=boston,cache_dir="+filepath.Join(dir, "cache"))
	if !mountedAt(t, point) {
		t.Fatal("it is not mounted")
	}
	if err := os.WriteFile(filepath.Join(point, "x"), nil, 0o644); err == nil {
		t.Error("a mount with -o ro can be written to")
	}
	d.run(binary(t, "cartwheel"), "umount", point)
}

// holdOpen has another process write "kept" to a file and keep it open until the
// test ends.
func (d *demo) holdOpen(path string) {
	d.t.Helper()
	writer := exec.Command("sh", "-c", `exec 3>"$1"; echo kept >&3; echo open; read wait`, "sh", path)
	in, err := writer.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := writer.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	writer.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := writer.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { in.Close(); _ = writer.Wait() })
	if _, err := out.Read(make([]byte, 5)); err != nil {
		d.t.Fatal(err)
	}
}

func TestMount_SecondSignalWaitsForNoNode(t *testing.T) {
	d := startDemo(t)
	point := t.TempDir()
	pidFile := filepath.Join(t.TempDir(), "pid")
	d.mountAt(point, "--site", "paris", "--pid-file", pidFile)
	d.holdOpen(filepath.Join(point, "open"))
	for _, s := range d.Sites {
		d.fail(s.Name)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !runs(pid) {
			t.Fatal("it has ended with unsent data")
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
	}
	d.await("the process and the mount to be gone", 10*time.Second, func() error {
		if runs(pid) || mountedAt(t, point) {
			return os.ErrExist
		}
		return nil
	})
}

func TestMount_SignalSendsWhatIsUnsent(t *testing.T) {
	d := startDemo(t)
	site := d.site("boston")
	d.holdOpen(filepath.Join(site.Mount, "open"))
	if err := syscall.Kill(site.MountPID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.await("the mount to be gone", 30*time.Second, func() error {
		if mountedAt(t, site.Mount) || runs(site.MountPID) {
			return os.ErrExist
		}
		return nil
	})
	if got := d.run("cat", filepath.Join(d.mount("paris"), "open")); got != "kept\n" {
		t.Errorf("what was written and not closed is %q at another mount, want it there", got)
	}
	d.await("the demo to notice", 10*time.Second, func() error {
		text, err := os.ReadFile(d.out.Name())
		if err == nil && !strings.Contains(string(text), "mount at boston ended by itself") {
			err = os.ErrNotExist
		}
		return err
	})
	d.heal("boston")
	if got := d.run("cat", filepath.Join(site.Mount, "open")); got != "kept\n" {
		t.Errorf("got %q at the mount that was started again", got)
	}
}

func TestDemo_KilledOneIsCleanedUp(t *testing.T) {
	d := startDemo(t)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.done
	d.done <- nil
	d.await("its processes to die with it", 10*time.Second, func() error {
		for _, s := range d.Sites {
			if runs(s.NodePID) || runs(s.MountPID) {
				return os.ErrExist
			}
		}
		return nil
	})
	again := startDemoIn(t, d.dir)
	if err := os.WriteFile(filepath.Join(again.mount("tokyo"), "works"), nil, 0o644); err != nil {
		t.Error(err)
	}
}
