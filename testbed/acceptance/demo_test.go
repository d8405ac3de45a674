// Package acceptance runs the real thing: `cartwheel demo` with its processes
// and kernel mounts, and the programs that people would use on them. Its tests
// need root and FUSE and the commands in bin/, and skip with a reason where
// CARTWHEEL_PROCESSES is not set; `npm test` sets it. It has no code of its own
// besides its tests.
package acceptance

import (
	"bytes"
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
)

// commandLimit bounds every command that a test runs.
const commandLimit = 4 * time.Minute

type site struct {
	Name     string `json:"name"`
	Mount    string `json:"mount"`
	Node     string `json:"node"`
	NodePID  int    `json:"node_pid"`
	MountPID int    `json:"mount_pid"`
	NodeLog  string `json:"node_log"`
	MountLog string `json:"mount_log"`
}

type process struct {
	PID int `json:"pid"`
}

// demo is a running `cartwheel demo`.
type demo struct {
	t         *testing.T
	dir       string
	cmd       *exec.Cmd
	done      chan error
	out       *os.File
	PID       int     `json:"pid"`
	Contact   string  `json:"contact"`
	Sites     []site  `json:"sites"`
	GeoConfig process `json:"geo_config"`
}

func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run scripts/build first", err)
	}
	return path
}

// startDemo starts three sites in a folder of the test's, waits until they are
// ready, and ends them with the test.
func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	return startDemoIn(t, filepath.Join(t.TempDir(), "demo"), args...)
}

func startDemoIn(t *testing.T, dir string, args ...string) *demo {
	t.Helper()
	return startDemoAs(t, binary(t, "cartwheel"), nil, dir, args...)
}

// startDemoAs does so by a program of its own, as somebody else than the test
// where who is not nil.
func startDemoAs(t *testing.T, program string, who *syscall.Credential, dir string, args ...string) *demo {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "demo.out"))
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{t: t, dir: dir, out: out, done: make(chan error, 1)}
	d.cmd = exec.Command(program, append([]string{"demo", "--dir", dir}, args...)...)
	d.cmd.Stdout, d.cmd.Stderr = out, out
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM, Credential: who}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- d.cmd.Wait() }()
	t.Cleanup(d.end)
	d.await("the demo to be ready", time.Minute, func() error {
		select {
		case err := <-d.done:
			d.done <- err
			t.Fatalf("the demo ended by itself: %v", err)
		default:
		}
		text, err := os.ReadFile(out.Name())
		if err != nil || !bytes.Contains(text, []byte("\nready")) {
			return errors.New("it has not said so")
		}
		return nil
	})
	d.load()
	return d
}

func (d *demo) load() {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, "demo.json"))
	if err == nil {
		err = json.Unmarshal(data, d)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// stop ends the demo as Ctrl-C does.
func (d *demo) stop() error {
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case err := <-d.done:
		d.done <- err
		return err
	case <-time.After(time.Minute):
		return errors.New("the demo did not end within a minute of Ctrl-C")
	}
}

func (d *demo) end() {
	if d.t.Failed() {
		d.logs() // stopping removes them
	}
	if err := d.stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Logf("ending the demo: %v", err)
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
	}
	for _, s := range d.Sites {
		_ = syscall.Unmount(s.Mount, syscall.MNT_DETACH)
	}
	d.out.Close()
}

func (d *demo) logs() {
	text, _ := os.ReadFile(d.out.Name())
	d.t.Logf("the demo said:\n%s", tail(text, 2000))
	for _, s := range d.Sites {
		for what, name := range map[string]string{"node": s.NodeLog, "mount": s.MountLog} {
			text, _ := os.ReadFile(name)
			d.t.Logf("log of the %s at %s:\n%s", what, s.Name, tail(text, 4000))
		}
	}
}

func tail(text []byte, n int) []byte {
	if len(text) > n {
		return text[len(text)-n:]
	}
	return text
}

// await polls until try returns nil.
func (d *demo) await(what string, limit time.Duration, try func() error) {
	d.t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if err = try(); err == nil {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	d.t.Fatalf("waited %v for %s: %v", limit, what, err)
}

// run runs a program and returns what it printed; it fails the test if the
// program fails.
func (d *demo) run(name string, args ...string) string {
	d.t.Helper()
	out, err := try(name, args...)
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, tail([]byte(out), 4000))
	}
	return out
}

func try(name string, args ...string) (string, error) { return within(commandLimit, name, args...) }

func within(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cartwheel runs one of its commands against the demo.
func (d *demo) cartwheel(args ...string) string {
	d.t.Helper()
	return d.run(binary(d.t, "cartwheel"), append(args, "--contact", d.Contact)...)
}

// cartwheelSays is what a command prints on standard output alone.
func (d *demo) cartwheelSays(args ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(d.t, "cartwheel"), append(args, "--contact", d.Contact)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("cartwheel %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

func (d *demo) mount(name string) string {
	d.t.Helper()
	return d.site(name).Mount
}

func (d *demo) site(name string) site {
	d.t.Helper()
	for _, s := range d.Sites {
		if s.Name == name {
			return s
		}
	}
	d.t.Fatalf("there is no site %s", name)
	return site{}
}

// others returns the sites that are not called name.
func (d *demo) others(name string) []site {
	var out []site
	for _, s := range d.Sites {
		if s.Name != name {
			out = append(out, s)
		}
	}
	return out
}

type member struct {
	Node  string `json:"node"`
	Site  string `json:"site"`
	State string `json:"state"`
}

type slice struct {
	ID      uint32   `json:"id"`
	Epoch   uint64   `json:"epoch"`
	Active  member   `json:"active"`
	Members []member `json:"members"`
}

func (d *demo) slices() []slice {
	d.t.Helper()
	var out []slice
	text := d.cartwheel("slice", "ls", "--json")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		d.t.Fatalf("slice ls --json: %v: %s", err, text)
	}
	return out
}

func (d *demo) rootActive() string {
	d.t.Helper()
	for _, s := range d.slices() {
		if s.ID == 1 {
			return s.Active.Site
		}
	}
	d.t.Fatal("slice ls shows no root slice")
	return ""
}

// fail kills a site's node; heal starts it again.
func (d *demo) fail(name string) {
	d.t.Helper()
	d.run(binary(d.t, "cartwheel"), "demo", "fail", name, "--dir", d.dir)
}
func (d *demo) heal(name string) {
	d.t.Helper()
	d.run(binary(d.t, "cartwheel"), "demo", "heal", name, "--dir", d.dir)
}

// awaitWhole waits until every member of every slice is a normal one.
func (d *demo) awaitWhole(limit time.Duration) {
	d.t.Helper()
	d.await("every member to be normal again", limit, func() error {
		for _, s := range d.slices() {
			for _, m := range s.Members {
				if m.State != "N" {
					return fmt.Errorf("slice %d has %s at %s", s.ID, m.State, m.Site)
				}
			}
		}
		return nil
	})
}

// source is the tree that the tests copy: a part of Go's own, or all of it
// where CARTWHEEL_WHOLE is set.
func source(t *testing.T) string {
	t.Helper()
	out, err := try("go", "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(strings.TrimSpace(out), "src")
	if os.Getenv("CARTWHEEL_WHOLE") != "" {
		return src
	}
	return filepath.Join(src, "net")
}
