package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	gslices "slices"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestWords_OfMountsHelperBecomeOurs(t *testing.T) {
	for _, c := range []struct{ argv, want []string }{
		{[]string{"/usr/bin/cartwheel", "status", "-o"}, []string{"status", "-o"}},
		{[]string{"cartwheel"}, nil},
		{[]string{"/sbin/mount.cartwheel", "WHAT", "WHERE", "-o", "rw,site=x"}, []string{"mount", "WHAT", "WHERE", "-o", "rw,site=x", "--daemon"}},
		{[]string{"mount.cartwheel", "WHAT", "WHERE", "-sn", "-t", "cartwheel"}, []string{"mount", "WHAT", "WHERE", "--daemon"}},
		{[]string{"mount.cartwheel", "WHAT", "WHERE", "-f", "-r"}, []string{"mount", "WHAT", "WHERE", "--read-only"}},
		{[]string{"mount.cartwheel", "WHAT", "WHERE", "-d"}, []string{"mount", "WHAT", "WHERE", "--debug"}},
		{[]string{"mount.cartwheel", "-V"}, []string{"version"}},
		{[]string{"mount.cartwheel", "-h"}, []string{"mount", "--help", "--daemon"}},
	} {
		if got := ourWords(c.argv); !gslices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.argv, got, c.want)
		}
	}
}

func TestWords_OfOptionsBecomeFlags(t *testing.T) {
	t.Setenv("A_VARIABLE", "")
	e := &env{}
	for _, c := range []struct {
		texts, want []string
		kind        fault.Kind
	}{
		{[]string{"rw,nosuid,nodev,_netdev,x-systemd.automount,x-gvfs-show,comment=words,defaults"}, nil, fault.None},
		{[]string{"ro,site=tokyo", "allow_other"}, []string{"--read-only", "--site=tokyo", "--allow-other"}, fault.None},
		{[]string{`cache_dir="/a,b",cache-size=5`}, []string{"--cache-dir=/a,b", "--cache-size=5"}, fault.None},
		{[]string{"config=/etc/contact.json"}, []string{"--contact=/etc/contact.json"}, fault.None},
		{[]string{"env.A_VARIABLE=value"}, nil, fault.None},
		{[]string{"umask=022"}, nil, fault.NotSupported},
		{[]string{"attr_timeout=1"}, nil, fault.NotSupported},
	} {
		got, err := e.spell(c.texts)
		if !gslices.Equal(got, c.want) || fault.KindOf(err) != c.kind {
			t.Errorf("%q: got %q, %v; want %q, kind %v", c.texts, got, err, c.want, c.kind)
		}
	}
	if os.Getenv("A_VARIABLE") != "value" || e.getenv("A_VARIABLE") != "value" {
		t.Error("env.A_VARIABLE=value did not set it")
	}
	words := []string{"mount", "-o", "a=b", "x", "-oc", "--options=d", "y", "-o=e"}
	if got, want := without(words, []string{"a=b", "c", "d", "e"}), []string{"mount", "x", "y"}; !gslices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRecord_IsHeldWhileItsProcessRuns(t *testing.T) {
	dir := t.TempDir()
	e := &env{ctx: context.Background(), stdio: Stdio{Environ: []string{"CARTWHEEL_RUN_DIR=" + dir}}}
	point := filepath.Join(dir, "point")
	pidFile := filepath.Join(dir, "pid")
	if r := e.findRecord(point); r != nil {
		t.Fatal("found a record that nobody wrote")
	}
	mine, err := e.record(&mountCmd{Mountpoint: point, Cluster: "c", daemonFlags: daemonFlags{PIDFile: pidFile}})
	if err != nil {
		t.Fatal(err)
	}
	found := e.findRecord(point)
	if found == nil || found.PID != os.Getpid() || found.Mountpoint != point {
		t.Fatalf("got %+v, want this process's record", found)
	}
	defer found.file.Close()
	if found.ended() {
		t.Error("a process that runs is taken for ended")
	}
	if _, err := os.Stat(pidFile); err != nil {
		t.Error(err)
	}
	mine.remove()
	if !found.ended() {
		t.Error("a process that ended is taken for running")
	}
	if _, err := os.Stat(pidFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pid file is still there: %v", err)
	}
}

func TestUnitName_AndFieldAreEscaped(t *testing.T) {
	for point, want := range map[string]string{"/mnt/a": "mnt-a", "/mnt/my-tree": `mnt-my\x2dtree`, "/srv/a b": `srv-a\x20b`, "/x/.y": "x-.y"} {
		if got := unitName(point); got != want {
			t.Errorf("%s: got %q, want %q", point, got, want)
		}
	}
	if got, want := field(`/a b\c`), `/a\040b\134c`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress_IsSilentForASecond(t *testing.T) {
	var out bytes.Buffer
	e := &env{stdio: Stdio{Err: &out}}
	e.progress("waiting for %s", "nothing")()
	if out.Len() != 0 {
		t.Errorf("got %q, want silence", out.String())
	}
	sink := safeBuffer{first: make(chan struct{})}
	e.stdio.Err = &sink
	end := e.progress("waiting for %s", "a while")
	<-sink.filled()
	end()
	if !strings.HasPrefix(sink.String(), "waiting for a while (1s)\n") {
		t.Errorf("got %q", sink.String())
	}
}

// safeBuffer tells when something was written to it.
type safeBuffer struct {
	bytes.Buffer
	first chan struct{}
}

func (b *safeBuffer) filled() <-chan struct{} { return b.first }

func (b *safeBuffer) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	select {
	case <-b.first:
	default:
		close(b.first)
	}
	return n, err
}
