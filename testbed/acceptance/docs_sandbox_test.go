package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/testbed/examples"
)

// exampleLimit bounds each step of a page.
const exampleLimit = time.Minute

// sandbox is where the examples of one page run: a directory that looks like a
// checkout whose programs are built, with a home of its own. A page that speaks
// of several machines gets a directory for each, see machines.
type sandbox struct {
	t       *testing.T
	root    string // of the repository
	page    examples.Page
	dir     string
	env     []string
	written int // blocks of the page that were looked at for files
	shown   *shown
	hosts   *machines
	staying []*staying
}

// staying is a command that goes on until the page ends.
type staying struct {
	what string
	cmd  *exec.Cmd
	out  string // file of its output
	done chan error
}

func newSandbox(t *testing.T, root string, page examples.Page) *sandbox {
	t.Helper()
	s := &sandbox{t: t, root: root, page: page, dir: t.TempDir(), shown: &shown{known: map[string]string{}}}
	s.hosts = &machines{t: t, parent: filepath.Join(s.dir, ".hosts")}
	home := filepath.Join(s.dir, ".home")
	for _, dir := range []string{home, filepath.Join(s.dir, "scripts"), filepath.Join(s.dir, ".bin")} {
		s.must(os.MkdirAll(dir, 0o755))
	}
	s.must(os.Symlink(filepath.Join(root, "bin"), filepath.Join(s.dir, "bin")))
	s.copy("package.json")
	scripts, err := filepath.Glob(filepath.Join(root, "scripts", "*"))
	s.must(err)
	for _, name := range scripts {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue // what a build needs
		}
		s.copy(filepath.Join("scripts", filepath.Base(name)))
	}
	// The stage before this one has built, and installed what is needed.
	for _, name := range []string{"build", "console", "setup"} {
		s.script(filepath.Join(s.dir, "scripts", name), "exit 0")
	}
	s.script(filepath.Join(s.dir, ".bin", "postmark"), "exit 1") // scripts/bench would install it
	s.env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "CARTWHEEL_RUN_DIR="+filepath.Join(s.dir, ".run"),
		"npm_config_update_notifier=false", "PATH="+filepath.Join(s.dir, ".bin")+":"+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // they follow HOME
		where, err := try("go", "env", name)
		s.must(err)
		s.env = append(s.env, name+"="+strings.TrimSpace(where))
	}
	t.Cleanup(s.end)
	return s
}

func (s *sandbox) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandbox) copy(rel string) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.root, rel))
	s.must(err)
	s.must(os.WriteFile(filepath.Join(s.dir, rel), data, 0o755))
}

func (s *sandbox) script(name, text string) {
	s.t.Helper()
	s.must(os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// enter does a step: first the files that the page has above it.
func (s *sandbox) enter(step examples.Step) {
	s.t.Helper()
	for ; s.written < len(s.page.Blocks) && s.page.Blocks[s.written].Line < step.Line; s.written++ {
		s.file(s.page.Blocks[s.written])
	}
	host := step.Host
	command, dir := s.hosts.text(host, s.shown.filled(step.Command)), s.hosts.dir(host)
	where := fmt.Sprintf("%s:%d", s.page.Name, step.Line)
	ready, stays := step.Block.Marks[examples.Stays]
	if !stays {
		ctx, cancel := context.WithTimeout(context.Background(), exampleLimit)
		defer cancel()
		argv := s.hosts.argv(host, command)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, s.env, time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		out, err := cmd.CombinedOutput()
		if err != nil {
			s.t.Fatalf("%s: %v:\n%s\n%s", where, err, step.Command, out)
		}
		s.shown.compare(s.t, where, step.Output, string(out))
		return
	}
	c := s.start(where, s.hosts.argv(host, command), dir)
	var text []byte
	(&demo{t: s.t}).await(where+" to be ready", exampleLimit, func() error {
		select {
		case err := <-c.done:
			s.t.Fatalf("%s: ended: %v:\n%s\n%s", where, err, step.Command, c.text())
		default:
		}
		text = c.text()
		if !strings.Contains("\n"+string(text), "\n"+ready) {
			return fmt.Errorf("it printed:\n%s", text)
		}
		return nil
	})
	s.shown.compare(s.t, where, step.Output, string(text))
}

// start starts a command that stays.
func (s *sandbox) start(what string, argv []string, dir string) *staying {
	s.t.Helper()
	out, err := os.CreateTemp(s.t.TempDir(), "out")
	s.must(err)
	defer out.Close()
	c := &staying{what: what, out: out.Name(), done: make(chan error, 1), cmd: exec.Command(argv[0], argv[1:]...)}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = dir, s.env, out, out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.must(c.cmd.Start())
	go func() { c.done <- c.cmd.Wait() }()
	s.staying = append(s.staying, c)
	return c
}

func (c *staying) text() []byte {
	text, err := os.ReadFile(c.out)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// leave ends what stays as Ctrl-C in each terminal does, the newest first. No
// mount may remain.
func (s *sandbox) leave() {
	s.t.Helper()
	for len(s.staying) > 0 {
		c := s.staying[len(s.staying)-1]
		s.staying = s.staying[:len(s.staying)-1]
		s.must(syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT))
		select {
		case err := <-c.done:
			if err != nil && !interrupted(err) {
				s.t.Errorf("%s: Ctrl-C: %v:\n%s", c.what, err, tail(c.text(), 2000))
			}
		case <-time.After(exampleLimit):
			s.staying = append(s.staying, c) // end kills it
			s.t.Fatalf("%s: Ctrl-C did not end it:\n%s", c.what, tail(c.text(), 2000))
		}
	}
	(&demo{t: s.t}).await("the mounts to go", 20*time.Second, func() error {
		if left := s.mounts(); len(left) > 0 {
			return fmt.Errorf("still there: %q", left)
		}
		return nil
	})
}

// mounts are the mount points below the sandbox.
func (s *sandbox) mounts() []string {
	s.t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	s.must(err)
	var out []string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], s.dir+"/") {
			out = append(out, f[4])
		}
	}
	return out
}

// interrupted reports whether a process passed the signal on to itself, as npm
// does once its script has ended.
func interrupted(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}

// end kills what a page that failed left, and unmounts.
func (s *sandbox) end() {
	for _, c := range s.staying {
		s.t.Logf("%s printed:\n%s", c.what, tail(c.text(), 2000))
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT)
		for start := time.Now(); syscall.Kill(-c.cmd.Process.Pid, 0) == nil; <-time.After(50 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
			}
		}
	}
	if s.t.Failed() {
		logs, err := filepath.Glob(filepath.Join(s.dir, ".run", "*.log")) // of mounts in the background
		s.must(err)
		for _, name := range logs {
			text, err := os.ReadFile(name)
			s.t.Logf("%s (%v):\n%s", filepath.Base(name), err, tail(text, 4000))
		}
	}
	for _, point := range s.mounts() {
		_ = syscall.Unmount(point, syscall.MNT_FORCE|syscall.MNT_DETACH)
	}
}

// file writes a block that is the content of a file.
func (s *sandbox) file(b examples.Block) {
	s.t.Helper()
	target, is := b.Marks[examples.File]
	if !is {
		return
	}
	host, name, _ := strings.Cut(target, ":")
	path := filepath.Join(s.hosts.dir(host), name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(s.hosts.text(host, s.shown.filled(b.Text()))), 0o644))
	if b.Language == "json" && !json.Valid([]byte(b.Text())) {
		s.t.Errorf("%s:%d: is not JSON", b.Page, b.Line)
	}
}
