package mounttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// childDirs carries the mount points to the process of a case.
	childDirs = "CARTWHEEL_MOUNTTEST_DIRS"

	caseLimit  = 60 * time.Second
	wholeLimit = 600 * time.Second
)

// Factory mounts a file system once or twice and answers the mount points. It
// runs in the test's process, registers its own cleanup with t, and must be
// the only place where the test mounts anything.
type Factory func(t *testing.T) []string

// Except names a case that a binding cannot pass, and why.
type Except struct{ Case, Reason string }

func excepted(except []Except, name string) string {
	for _, e := range except {
		if e.Case == name {
			return e.Reason
		}
	}
	return ""
}

// cases lists the suite.
func cases() []testCase {
	return slices.Concat(fileCases(), rangeCases(), nameCases(), attributeCases(), permissionCases(),
		directoryCases(), lockCases(), pairCases())
}

// Run runs the suite as subtests of t. The test that calls it is run again in
// a new process for each case, where the factory is not called.
func Run(t *testing.T, factory Factory, except ...Except) {
	t.Helper()
	if dirs := os.Getenv(childDirs); dirs != "" {
		runChild(t, strings.Split(dirs, "\n"))
		return
	}
	NeedFUSE(t)
	dirs := factory(t)
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			if reason := excepted(except, c.name); reason != "" {
				t.Skip(reason)
			}
			if c.mounts > len(dirs) {
				t.Skip("the factory makes one mount only")
			}
			runCase(t, dirs)
		})
	}
}

// NeedFUSE skips the test, with the reason, where nothing can be mounted.
func NeedFUSE(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("there is no FUSE on this machine: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, because the cases act as several users")
	}
}

// Point makes a directory to mount on, which every user can reach, unlike
// t.TempDir's. It is removed when the test ends, after what is mounted there.
func Point(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mounttest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runChild is the side of the case's process: it runs the cases that the
// command line selects.
func runChild(t *testing.T, dirs []string) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, c, dirs)
			c.run(e)
		})
	}
}

// limitOf bounds one case.
func limitOf() time.Duration {
	if os.Getenv(wholeSize) == "1" {
		return wholeLimit
	}
	return caseLimit
}

// runCase is the side of the test: it starts the process and judges it.
func runCase(t *testing.T, dirs []string) {
	ctx, cancel := context.WithTimeout(context.Background(), limitOf())
	defer cancel()
	// The process dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.count=1", "-test.run="+pattern(t.Name()),
		"-test.timeout="+limitOf().String())
	// A race detector would sleep a second at the end of each process.
	cmd.Env = append(os.Environ(), childDirs+"="+strings.Join(dirs, "\n"), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 2 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Writer(&out), io.Writer(&out)
	err := cmd.Run()
	report := out.String()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.Fatalf("no end within %v:\n%s", limitOf(), report)
	case err != nil:
		t.Fatalf("%v:\n%s", err, report)
	case strings.Contains(report, "--- SKIP: "+t.Name()):
		t.Skip(skipReason(report))
	case !strings.Contains(report, "--- PASS: "+t.Name()):
		t.Fatalf("the case did not run:\n%s", report)
	}
}

func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// skipReason finds the line that t.Skip printed: "    file.go:7: reason".
func skipReason(report string) string {
	for line := range strings.Lines(report) {
		if _, reason, ok := strings.Cut(line, ".go:"); ok {
			return strings.TrimSpace(reason)
		}
	}
	return "skipped"
}
