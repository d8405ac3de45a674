package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const program = `package main

import "fmt"

func main() { fmt.Println("built on the mount") }
`

func TestTree_CopyIsTheSameAtOtherSites(t *testing.T) {
	d := startDemo(t)
	src := source(t)
	home := d.Sites[0]
	d.run("cp", "-r", src, home.Mount+"/copy")
	for _, s := range d.Sites[1:] {
		d.run("diff", "-r", src, s.Mount+"/copy")
	}

	dir := filepath.Join(home.Mount, "program")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"main.go": program, "go.mod": "module program\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.run("sh", "-c", "cd "+dir+" && GOWORK=off GOFLAGS=-mod=mod go build -o program .")
	if got := d.run(filepath.Join(d.Sites[1].Mount, "program", "program")); !strings.Contains(got, "built on the mount") {
		t.Errorf("the program said %q at another site", got)
	}

	if err := d.stop(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	for _, s := range d.Sites {
		for _, pid := range []int{s.NodePID, s.MountPID} {
			if runs(pid) {
				t.Errorf("process %d of %s is still there after Ctrl-C", pid, s.Name)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), d.dir) {
		t.Error("a mount is still there after Ctrl-C")
	}
}

const (
	// failoverLimit is the lease of 3 s x 1.2, and 1 s.
	failoverLimit = 4600 * time.Millisecond
	// noPause is less than any wait for a lease or a retry, and more than what a
	// busy machine makes of a small write.
	noPause = 1500 * time.Millisecond
)

// prober writes a small file over and over and keeps the longest pause.
type prober struct {
	stop    chan struct{}
	done    chan struct{}
	longest time.Duration
	err     error
}

func probe(path string) *prober {
	p := &prober{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			select {
			case <-p.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			start := time.Now()
			if err := os.WriteFile(path, []byte(start.String()), 0o644); err != nil {
				p.err = err
				return
			}
			p.longest = max(p.longest, time.Since(start))
		}
	}()
	return p
}

func (p *prober) end() (time.Duration, error) {
	close(p.stop)
	<-p.done
	return p.longest, p.err
}

// copying starts cp -r in the background; the function returned waits for it.
func (d *demo) copying(src, to string) func() {
	cmd := exec.Command("cp", "-r", src, to)
	out := make(chan error, 1)
	go func() {
		text, err := cmd.CombinedOutput()
		if err != nil {
			d.t.Logf("cp: %s", tail(text, 2000))
		}
		out <- err
	}()
	return func() {
		d.t.Helper()
		select {
		case err := <-out:
			if err != nil {
				d.t.Fatalf("the copy failed: %v", err)
			}
		case <-time.After(10 * time.Minute):
			_ = cmd.Process.Kill()
			d.t.Fatal("the copy did not end within ten minutes")
		}
	}
}

func (d *demo) awaitEntry(path string) {
	d.t.Helper()
	d.await(path, time.Minute, func() error { _, err := os.Lstat(path); return err })
}

func TestTree_CopyOutlivesTheRootsActive(t *testing.T) {
	d := startDemo(t)
	src := source(t)
	victim := d.rootActive()
	home, other := d.others(victim)[0], d.others(victim)[1]
	p := probe(filepath.Join(home.Mount, "probe"))
	wait := d.copying(src, filepath.Join(home.Mount, "copy"))
	d.awaitEntry(filepath.Join(home.Mount, "copy"))
	d.fail(victim)
	wait()
	longest, err := p.end()
	if err != nil {
		t.Errorf("the small writes failed: %v", err)
	}
	t.Logf("longest pause of a small write: %v", longest)
	if longest > failoverLimit {
		t.Errorf("the longest pause was %v, want at most %v", longest, failoverLimit)
	}
	d.run("diff", "-r", src, filepath.Join(other.Mount, "copy"))
	if now := d.rootActive(); now == victim {
		t.Errorf("%s is still active for the root after it was killed", victim)
	}
	d.heal(victim)
	d.awaitWhole(2 * time.Minute)
	d.run("diff", "-r", src, filepath.Join(d.mount(victim), "copy"))
}

func TestTree_CopyNeedsNoGeoConfig(t *testing.T) {
	d := startDemo(t)
	src := source(t)
	home, other := d.Sites[0], d.Sites[1]
	if err := os.Mkdir(filepath.Join(home.Mount, "before"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := probe(filepath.Join(home.Mount, "before", "probe"))
	d.fail("geo-config")
	away := time.Now()
	d.copying(src, filepath.Join(home.Mount, "before", "copy"))()
	if os.Getenv("CARTWHEEL_WHOLE") != "" {
		<-time.After(time.Until(away.Add(20 * time.Second)))
	}
	longest, err := p.end()
	if err != nil {
		t.Errorf("the small writes failed: %v", err)
	}
	t.Logf("longest pause of a small write in %v without geo-config: %v", time.Since(away).Round(time.Millisecond), longest)
	if longest > noPause {
		t.Errorf("the longest pause was %v, want none", longest)
	}
	d.heal("geo-config")
	d.run("diff", "-r", src, filepath.Join(other.Mount, "before", "copy"))
}
