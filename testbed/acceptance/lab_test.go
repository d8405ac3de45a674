package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lab is a running `cartwheel-testbed up`.
type lab struct {
	t    *testing.T
	name string
	dir  string
}

// smallTopology is what the tests bring up.
const smallTopology = `
sites: [{name: tokyo}, {name: boston}]
wan: {rtt: 20 ms}
`

// startLab brings a small lab up in the background, and down with the test.
func startLab(t *testing.T) *lab {
	t.Helper()
	return startLabOf(t, smallTopology)
}

func startLabOf(t *testing.T, topology string) *lab {
	t.Helper()
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("there is no TUN device")
	}
	l := &lab{t: t, name: fmt.Sprintf("t%07x", rand.Uint32N(1<<28)), dir: filepath.Join(t.TempDir(), "lab")}
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(topology), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.tellLogs()
		if _, err := l.testbed("down"); err != nil && !t.Failed() && !strings.Contains(err.Error(), "no lab of this name") {
			t.Error(err)
		}
		l.leavesNothing()
	})
	if out, err := l.testbed("up", file, "--detach", "--dir", l.dir); err != nil || !strings.Contains(out, "ready") {
		t.Fatalf("%v\n%s", err, out)
	}
	return l
}

// tellLogs shows what the lab's processes said last, where the test failed.
func (l *lab) tellLogs() {
	if !l.t.Failed() {
		return
	}
	files, _ := filepath.Glob(filepath.Join(l.dir, "logs", "*")) // the pattern is good
	for _, file := range files {
		const tail = 1500
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			l.t.Logf("%s ends:\n%s", filepath.Base(file), text[max(0, len(text)-tail):])
		}
	}
}

// testbed runs one of its commands on this lab.
func (l *lab) testbed(words ...string) (string, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary(l.t, "cartwheel-testbed"), words...)
	cmd.Env = append(os.Environ(), "CARTWHEEL_LAB="+l.name)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%q: %w: %s", words, err, errs.String())
	}
	return out.String(), nil
}

// must runs one that has to work.
func (l *lab) must(words ...string) string {
	l.t.Helper()
	out, err := l.testbed(words...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (l *lab) mount(host string) string { return filepath.Join(l.dir, "mnt", host) }

// status is what the tests read of it.
type labStatus struct {
	PID   int `json:"pid"`
	Hosts []struct {
		Name      string            `json:"name"`
		Processes map[string]string `json:"processes"`
		PIDs      map[string]int    `json:"pids"`
	} `json:"hosts"`
	Changed []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"changed"`
}

func (l *lab) status() labStatus {
	l.t.Helper()
	var s labStatus
	if err := json.Unmarshal([]byte(l.must("status", "--json")), &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// leavesNothing checks that no namespace, mount, process or state is left.
func (l *lab) leavesNothing() {
	l.t.Helper()
	left, err := filepath.Glob("/run/netns/cw-" + l.name + ".*")
	if err != nil || len(left) > 0 {
		l.t.Errorf("namespaces are left: %v, %v", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(l.dir)) {
		l.t.Errorf("a mount below %s is left: %v", l.dir, err)
	}
	if _, err := os.Stat("/run/cartwheel-testbed/" + l.name); !errors.Is(err, os.ErrNotExist) {
		l.t.Errorf("the state folder is left: %v", err)
	}
	for end := time.Now().Add(10 * time.Second); ; <-time.After(50 * time.Millisecond) {
		left := l.processesLeft()
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) { // the lab's own process gives its name back just before it ends
			l.t.Errorf("processes are left: %s", left)
			break
		}
	}
	for _, sub := range []string{"data", "mnt", "run"} {
		if _, err := os.Stat(filepath.Join(l.dir, sub)); !errors.Is(err, os.ErrNotExist) {
			l.t.Errorf("%s is left in the lab's folder: %v", sub, err)
		}
	}
}

// processesLeft lists the command lines that name the lab's folder, but for this one.
func (l *lab) processesLeft() (left []string) {
	l.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		l.t.Error(err)
	}
	for _, p := range processes {
		words, err := os.ReadFile(p)
		if err == nil && bytes.Contains(words, []byte(l.dir)) && filepath.Base(filepath.Dir(p)) != fmt.Sprint(os.Getpid()) {
			left = append(left, string(bytes.ReplaceAll(words, []byte{0}, []byte{' '})))
		}
	}
	return left
}

func TestLab_IsAClusterOnAWideArea(t *testing.T) {
	l := startLab(t)
	write := func(host, text string) time.Duration {
		t.Helper()
		began := time.Now()
		if err := os.WriteFile(filepath.Join(l.mount(host), "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	read := func(host, want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(l.mount(host), "file"))
		if err != nil || string(got) != want {
			t.Fatalf("at %s got %q, %v; want %q", host, got, err, want)
		}
	}
	if took := write("tokyo-1", "one"); took < 20*time.Millisecond {
		t.Errorf("a write to two sites 20 ms apart took %v", took)
	}
	read("boston-1", "one")
	if out := l.must("shell", "boston", "cartwheel", "where", "file"); !strings.Contains(out, "standby") {
		t.Errorf("where says:\n%s", out)
	}
	if out := l.must("shell", "tokyo", "--", "sh", "-c", "pwd; cat file; echo $CARTWHEEL_SITE"); out != l.mount("tokyo-1")+"\nonetokyo\n" {
		t.Errorf("a shell at tokyo says:\n%s", out)
	}
	if _, err := l.testbed("shell", "tokyo", "sh", "-c", "exit 7"); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v, want the command's exit status", err)
	}
	l.must("fault", "cut", "tokyo", "boston", "--one-way")
	if s := l.status(); len(s.Changed) != 1 || s.Changed[0].From != "tokyo" {
		t.Errorf("got %+v, want one path changed, from tokyo", s.Changed)
	}
	l.must("fault", "heal")
	if s := l.status(); len(s.Changed) != 0 {
		t.Errorf("got %+v, want nothing changed after heal", s.Changed)
	}
	write("boston-1", "two")
	read("tokyo-1", "two")
	l.must("fault", "kill", "boston")
	if s := l.status(); s.Hosts[1].Processes["node"] != "killed" || s.Hosts[1].Processes["mount"] != "runs" {
		t.Errorf("got %+v, want boston's node killed and its mount alive", s.Hosts[1])
	}
	l.must("fault", "start", "boston")
	l.must("fault", "stop", "boston")
	if s := l.status(); s.Hosts[1].Processes["node"] != "stopped" {
		t.Errorf("got %+v, want boston's node stopped in order", s.Hosts[1])
	}
	l.must("fault", "start", "boston")
	l.must("fault", "pause", "tokyo", "--what", "mount")
	if s := l.status(); s.Hosts[1].Processes["node"] != "runs" || s.Hosts[0].Processes["mount"] != "paused" {
		t.Errorf("got %+v, want boston's node back and tokyo's mount paused", s.Hosts)
	}
	if _, err := l.testbed("up", "two-cities", "--dir", t.TempDir()); err == nil || !strings.Contains(err.Error(), "exit status 8") {
		t.Errorf("a second lab of the same name: got %v, want exit status 8", err)
	}
	l.must("down") // with a mount that is paused
	l.leavesNothing()
	if _, err := l.testbed("status"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("status of a lab that is down: got %v, want exit status 3", err)
	}
}

// TestSiteAudit_FindsANodeAtTheWrongSite places a node beside kyoto's that
// claims to be at boston.
func TestSiteAudit_FindsANodeAtTheWrongSite(t *testing.T) {
	l := startLabOf(t, `
mounts: none
sites: [{name: boston}, {name: kyoto}, {name: astray, declared: boston}]
wan: {rtt: 40 ms}
pairs: [{sites: [kyoto, astray], rtt: 0.1 ms}]
`)
	var last string
	said := func(want string) bool {
		last = l.must("shell", "boston", "cartwheel", "status")
		return strings.Contains(last, want)
	}
	await := func(what, want string) {
		t.Helper()
		deadline := time.Now().Add(commandLimit)
		for !said(want) {
			if time.Now().After(deadline) {
				t.Fatalf("no warning that %s; status says:\n%s", what, last)
			}
		}
	}
	await("boston is not one place", "the nodes of site boston are not at one place")
	await("boston and kyoto are", "the sites boston and kyoto are one failure domain")
	log, err := os.ReadFile(filepath.Join(l.dir, "logs", "astray-1-node.log"))
	if err != nil || !bytes.Contains(log, []byte("the site audit found")) {
		t.Errorf("the node's own log does not tell of it: %v", err)
	}
}

func TestLab_DownRemovesWhatAKilledOneLeft(t *testing.T) {
	l := startLab(t)
	if err := os.WriteFile(filepath.Join(l.mount("tokyo-1"), "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := l.status()
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d := &demo{t: t}
	d.await("the processes to die with the lab", 20*time.Second, func() error {
		for _, h := range s.Hosts {
			for p, pid := range h.PIDs {
				if syscall.Kill(pid, 0) == nil {
					return fmt.Errorf("%s of %s, process %d, runs yet", p, h.Name, pid)
				}
			}
		}
		return nil
	})
	if _, err := l.testbed("status"); err == nil || !strings.Contains(err.Error(), "cleans up after it") {
		t.Errorf("status of a lab that was killed: got %v, want the remedy", err)
	}
	if out := l.must("down"); !strings.Contains(out, "had crashed") {
		t.Errorf("down says %q", out)
	}
	l.leavesNothing()
	for _, kept := range []string{"logs/tokyo-1-node.log", "topology.yaml", "lab.json", "events.jsonl"} {
		if _, err := os.Stat(filepath.Join(l.dir, kept)); err != nil {
			t.Errorf("what is to be kept is gone: %v", err)
		}
	}
}

func TestLab_InterruptedStartLeavesNothing(t *testing.T) {
	if os.Getenv("CARTWHEEL_PROCESSES") == "" || os.Geteuid() != 0 {
		t.Skip("set CARTWHEEL_PROCESSES=1, as root, to run real processes")
	}
	for _, after := range []string{"network", "geo-config", "2 nodes", "2 mounts"} {
		l := &lab{t: t, name: fmt.Sprintf("t%07x", rand.Uint32N(1<<28)), dir: filepath.Join(t.TempDir(), "lab")}
		said, err := os.Create(filepath.Join(t.TempDir(), "said"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary(t, "cartwheel-testbed"), "up", "two-cities", "--dir", l.dir, "--name", l.name)
		cmd.Stdout, cmd.Stderr = said, said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() { l.tellLogs(); _ = cmd.Process.Kill(); _, _ = l.testbed("down") })
		(&demo{t: t}).await("the lab to say "+after, time.Minute, func() error {
			text, err := os.ReadFile(said.Name())
			if err == nil && !bytes.Contains(text, []byte(after)) {
				err = errors.New(string(text))
			}
			return err
		})
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			var failed *exec.ExitError
			if !errors.As(err, &failed) || failed.ExitCode() != 130 {
				text, _ := os.ReadFile(said.Name())
				t.Errorf("interrupted after %q: got %v, want exit status 130:\n%s", after, err, text)
			}
		case <-time.After(time.Minute):
			t.Fatalf("interrupted after %q, it does not end", after)
		}
		l.leavesNothing()
	}
}

func TestRehearse_RunsByItselfAndIsKept(t *testing.T) {
	if os.Getenv("CARTWHEEL_PROCESSES") == "" || os.Geteuid() != 0 {
		t.Skip("set CARTWHEEL_PROCESSES=1, as root, to run real processes")
	}
	out := t.TempDir()
	file := filepath.Join(out, "plan.yaml")
	plan := func(check string) {
		text := `
topology: {sites: [{name: tokyo}, {name: boston}], wan: {rtt: 20 ms}}
work:
  - {name: write, hosts: [tokyo], times: 5, every: 500 ms, run: 'echo "$N" > "f$N"'}
  - {name: bad, hosts: [boston], run: 'echo why >&2; exit 3'}
faults:
  - {at: 1 s, set: [tokyo, boston], delay: 30 ms}
  - {at: 90 min, off: tokyo}
checks:
  - {host: boston, run: '` + check + `'}
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{t: t}
	plan(`test "$(cat f0 f1 f2 f3 f4 | tr -d "\n")" = 01234`)
	var ran struct {
		Folder string `json:"folder"`
	}
	if text := l.must("--json", "rehearse", file, "--out", out); json.Unmarshal([]byte(text), &ran) != nil || ran.Folder == "" {
		t.Fatalf("got %s", text)
	}
	var figures struct {
		Figures struct {
			Samples []struct {
				Work   string `json:"work"`
				Failed string `json:"failed"`
			} `json:"samples"`
			Faults []struct {
				What string `json:"what"`
			} `json:"faults"`
		} `json:"figures"`
	}
	data, err := os.ReadFile(filepath.Join(ran.Folder, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &figures)
	}
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, s := range figures.Figures.Samples {
		counts[s.Work]++
		if (s.Work == "bad") != strings.Contains(s.Failed, "exit status 3: why") {
			t.Errorf("got %+v, want bad to fail with its reason and nothing else", s)
		}
	}
	if counts["write"] != 5 || counts["bad"] != 1 || len(figures.Figures.Faults) != 1 {
		t.Errorf("got %v runs and %d faults, want 5 and 1, and the fault in its time", counts, len(figures.Figures.Faults))
	}
	for _, name := range []string{"topology.yaml", "rehearse.yaml", "run.json", "table.md", "runs.svg", "runs.png", "logs/tokyo-1-node.log"} {
		if _, err := os.Stat(filepath.Join(ran.Folder, name)); err != nil {
			t.Errorf("the run's folder lacks %s: %v", name, err)
		}
	}
	(&lab{t: t, name: "none", dir: ran.Folder}).leavesNothing()
	plan("test -e absent")
	if _, err := l.testbed("rehearse", file, "--out", out); err == nil || !strings.Contains(err.Error(), "this check failed") {
		t.Errorf("with a check that fails: got %v", err)
	}
}
