package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// said is what a program has printed so far.
type said struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), words)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// cartwheelOf is the program in a process of its own, which ends in two minutes at
// the latest.
func cartwheelOf(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, "cartwheel", words...)
}

// unsentMount mounts a cluster of one node with a process of its own, cuts the
// node off, and leaves unsent writes of the files named. It returns the mount
// point and what heals the node.
func unsentMount(t *testing.T, files []string, flags ...string) (a asker, point string, heal func()) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no FUSE here: ", err)
	}
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	a = askerOf(t, c, "root")
	t.Setenv("CARTWHEEL_RUN_DIR", t.TempDir())
	point = mounttest.Point(t)
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	words := append([]string{"mount", a.contact, point, "--daemon", "--op-timeout", "2s", "--log-file", filepath.Join(dir, "log"), "--pid-file", pid}, flags...)
	if out, err := cartwheelOf(t, words...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	process, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a test that failed
		_ = syscall.Unmount(point, syscall.MNT_DETACH)
		if _, err := os.Stat(pid); err == nil && t.Failed() {
			_ = exec.Command("kill", "-KILL", strings.TrimSpace(string(process))).Run()
		}
	})
	var open []*os.File
	for _, name := range files {
		f, err := os.Create(filepath.Join(point, name))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
	host := c.Nodes[0].Server().Host()
	host.SetFilter(func(string, wire.Class, wire.Method) wire.Verdict { return wire.Verdict{Drop: true} })
	for _, f := range open {
		if _, err := f.Write(make([]byte, 300<<10)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range open {
		if err := f.Close(); err == nil {
			t.Fatal("a close succeeded though no node answers; the test looks at nothing")
		}
	}
	return a, point, func() { host.SetFilter(nil) }
}

// TestUmount_ListsWhatIsNotSaved unmounts while no node answers: the exit status
// and the list say what is lost.
func TestUmount_ListsWhatIsNotSaved(t *testing.T) {
	_, point, _ := unsentMount(t, []string{"letter", "photo"}, "--flush-timeout", "2s")
	out, err := cartwheelOf(t, "umount", point).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != fault.ExitUnavailable {
		t.Errorf("got %v, want exit code %d", err, fault.ExitUnavailable)
	}
	for _, words := range []string{"2 files with 614400 unsent bytes are not saved, and lost", "/letter", "/photo"} {
		if !strings.Contains(string(out), words) {
			t.Errorf("umount does not say %q: %s", words, out)
		}
	}
	if mountedAs(point) != "" {
		t.Error("it is still mounted")
	}
}

// TestUmount_WaitsForWhatIsUnsent unmounts while no node answers, and lets the
// node answer once umount has said how much is left.
func TestUmount_WaitsForWhatIsUnsent(t *testing.T) {
	a, point, heal := unsentMount(t, []string{"letter"}, "--flush-timeout", "10m")
	var words said
	umount := cartwheelOf(t, "umount", point)
	umount.Stdout, umount.Stderr = &words, &words
	if err := umount.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- umount.Wait() }()
	for !words.has("waiting for what is unsent: 1 files, 300.0 KiB") {
		select {
		case err := <-ended:
			t.Fatalf("umount ended with %v while a file is unsent: %s", err, &words)
		case <-time.After(20 * time.Millisecond):
		}
	}
	heal()
	if err := <-ended; err != nil {
		t.Fatalf("umount: %v: %s", err, &words)
	}
	if out, err := cartwheelOf(t, "mount", a.contact, point, "--daemon").CombinedOutput(); err != nil {
		t.Fatalf("mounting again: %v: %s", err, out)
	}
	if got, err := os.Stat(filepath.Join(point, "letter")); err != nil || got.Size() != 300<<10 {
		t.Errorf("after umount the file is %v, %v, want 300 KiB", got, err)
	}
	if out, err := cartwheelOf(t, "umount", point).CombinedOutput(); err != nil {
		t.Errorf("unmounting with nothing unsent: %v: %s", err, out)
	}
}
