package wan_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/wan"
)

// patience bounds what a test waits for.
const patience = 20 * time.Second

// eventually waits for what a busy machine may take long for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func quick() wan.Path { return wan.Path{Delay: time.Millisecond, Rate: wan.Unlimited} }

// wire is datagrams from one host to another.
type wire struct {
	t       *testing.T
	in, out *net.UDPConn
	to      *net.UDPAddr
}

func newWire(t *testing.T, n *wan.Network, from, to string) *wire {
	t.Helper()
	w := &wire{t: t, to: &net.UDPAddr{IP: net.ParseIP(addr(t, n, to)), Port: 7010}}
	for host, c := range map[string]**net.UDPConn{from: &w.out, to: &w.in} {
		err := n.Do(host, func() (err error) {
			port := 0
			if host == to {
				port = w.to.Port
			}
			*c, err = net.ListenUDP("udp4", &net.UDPAddr{Port: port})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*c).Close() })
	}
	return w
}

// passes reports whether a datagram gets through within wait, of one sent every
// few milliseconds.
func (w *wire) passes(wait time.Duration) bool {
	w.t.Helper()
	b := make([]byte, 16)
	for { // what came before does not count
		w.in.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := w.in.Read(b); err != nil {
			break
		}
	}
	for end := time.Now().Add(wait); time.Now().Before(end); {
		if _, err := w.out.WriteTo([]byte("hello"), w.to); err != nil && !strings.Contains(err.Error(), "unreachable") {
			w.t.Fatal(err)
		}
		w.in.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := w.in.Read(b); err == nil && string(b[:n]) == "hello" {
			return true
		}
	}
	return false
}

// shut is how long nothing may come through for something to be shut.
const shut = 300 * time.Millisecond

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNetwork_FaultsTakeEffectWhileItRuns(t *testing.T) {
	n := start(t, twoSites(quick()))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	there, back, inside := newWire(t, n, "paris1", "quito1"), newWire(t, n, "quito2", "paris2"), newWire(t, n, "paris2", "paris1")
	check := func(when string, a, b, c bool) {
		t.Helper()
		for _, w := range []struct {
			name string
			wire *wire
			want bool
		}{{"there", there, a}, {"back", back, b}, {"inside the site", inside, c}} {
			wait := shut
			if w.want {
				wait = patience
			}
			if got := w.wire.passes(wait); got != w.want {
				t.Errorf("%s: %s passes: %v, want %v", when, w.name, got, w.want)
			}
		}
	}
	check("before", true, true, true)
	must(t, n.Cut(ctx, "paris", "quito", true, true))
	check("cut one way", false, true, true)
	must(t, n.Cut(ctx, "paris", "quito", false, false))
	must(t, n.Off(ctx, "quito", true))
	check("site off", false, false, true)
	must(t, n.Off(ctx, "quito", false))
	must(t, n.HostLink("paris1", false))
	check("link down", false, true, false)
	must(t, n.HostLink("paris1", true))
	must(t, n.Blackout(ctx, "paris", time.Hour, 30*time.Minute))
	check("blackout", false, false, true)
	must(t, n.Blackout(ctx, "paris", time.Hour, 0))
	check("after", true, true, true)
	s, err := n.Stats(ctx)
	must(t, err)
	if c := s.Pairs[wan.Pair{From: "paris", To: "quito"}]; c.Cut == 0 || c.Off == 0 || c.Delivered == 0 {
		t.Errorf("counted %+v", c)
	}
}

func TestNetwork_RefusesWhatCannotChange(t *testing.T) {
	n := start(t, twoSites(quick()))
	ctx := context.Background()
	before, err := n.Config(ctx)
	must(t, err)
	for name, c := range map[string]struct {
		kind fault.Kind
		fn   func(*wan.Config)
	}{
		"rate 0":  {fault.Invalid, func(c *wan.Config) { c.Site("quito").Up = 0 }},
		"a host":  {fault.NotSupported, func(c *wan.Config) { c.Site("quito").Hosts[0].Name = "other" }},
		"a LAN":   {fault.NotSupported, func(c *wan.Config) { c.Site("quito").LAN = wan.Mbit }},
		"control": {fault.NotSupported, func(c *wan.Config) { c.TCP = "reno" }},
		"the run": {fault.NotSupported, func(c *wan.Config) { c.Run = "other" }},
	} {
		if err := n.Change(ctx, func(cc *wan.Config) error { c.fn(cc); return nil }); !fault.Is(err, c.kind) {
			t.Errorf("%s: got %v, want %v", name, err, c.kind)
		}
	}
	if err := n.Off(ctx, "rome", true); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	if err := n.Cut(ctx, "rome", "quito", true, true); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	if err := n.HostLink("rome1", true); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	after, err := n.Config(ctx)
	must(t, err)
	if after.Sites[1].Up != before.Sites[1].Up || after.Run != before.Run {
		t.Errorf("changed: %+v", after)
	}
}

func TestAttach_AnotherProcessCanEndIt(t *testing.T) {
	n := start(t, twoSites(quick()))
	ctx := context.Background()
	other, err := wan.Attach(ctx, prefix, n.Run().ID)
	must(t, err)
	must(t, other.Cut(ctx, "paris", "quito", false, true))
	c, err := n.Config(ctx)
	must(t, err)
	if !c.Pairs[wan.Pair{From: "quito", To: "paris"}].Cut {
		t.Error("the other's change is not in force")
	}
	if other.Namespace("quito1") != n.Namespace("quito1") {
		t.Error("other names")
	}
	must(t, other.Close())
	<-n.Gone()
	if _, err := n.Stats(ctx); !fault.Is(err, fault.Closed) {
		t.Errorf("got %v, want closed", err)
	}
	if _, err := wan.Attach(ctx, prefix, n.Run().ID); !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v, want unreachable", err)
	}
}

// TestNetwork_EmulatorEndsWithoutItsDevices takes a site's gateway away. An emulator
// that passes nothing on must not stay as if it did.
func TestNetwork_EmulatorEndsWithoutItsDevices(t *testing.T) {
	n := start(t, twoSites(quick()))
	c, err := n.Config(t.Context())
	must(t, err)
	must(t, netns.Do(wan.SiteNamespace(c, "quito"), func() error {
		l, err := netlink.LinkByName(wan.Gateway)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	}))
	select {
	case <-n.Gone():
	case <-time.After(patience):
		t.Fatal("the emulator goes on")
	}
	if _, err := n.Stats(t.Context()); !fault.Is(err, fault.Closed) {
		t.Errorf("got %v, want closed", err)
	}
}

// TestNetwork_TellsWhyAnEmulatorIsSilent has one stand still. Whoever asks hears what its
// threads do, and it does not stay.
func TestNetwork_TellsWhyAnEmulatorIsSilent(t *testing.T) {
	t.Parallel() // it waits for as long as an answer may take
	o, c := options(t), twoSites(quick())
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	must(t, err)
	defer said.Close()
	o.Stderr = said
	needRoot(t)
	n, err := wan.Start(t.Context(), c, o)
	must(t, err)
	t.Cleanup(func() { must(t, n.Close()) })
	emulators, err := netns.Processes(n.Run().Name("wan"))
	if err != nil || len(emulators) != 1 {
		t.Fatalf("emulators %v %v", emulators, err)
	}
	must(t, syscall.Kill(emulators[0], syscall.SIGSTOP))
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := n.Stats(short); err == nil || strings.Contains(err.Error(), "threads") {
		t.Errorf("who waits for a moment only hears %v", err)
	}
	if _, err := n.Stats(t.Context()); !fault.Is(err, fault.Unreachable) || !strings.Contains(err.Error(), " T do_signal_stop priority 20 policy 2; they used ") {
		t.Errorf("got %v, want what the stopped threads do", err)
	}
	must(t, syscall.Kill(emulators[0], syscall.SIGCONT))
	<-n.Gone()
	text, err := os.ReadFile(said.Name())
	if err != nil || !strings.Contains(string(text), "goroutine 1 ") {
		t.Errorf("it wrote no stacks: %q, %v", text, err)
	}
}

// TestClean_EndsWhatACrashLeft leaves processes behind. One that ignores being
// asked is killed, and so are its children.
func TestClean_EndsWhatACrashLeft(t *testing.T) {
	n := start(t, twoSites(quick()))
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	cmd := n.Command(ctx, "paris1", "sh", "-c", "trap '' TERM; sleep 1000 & wait; sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	must(t, cmd.Start())
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	wanName := n.Run().Name("wan")
	var inside []int
	eventually(t, "the shell and its child", func() bool {
		inside, _ = netns.Processes(n.Namespace("paris1"))
		return len(inside) >= 2
	})
	emulators, err := netns.Processes(wanName)
	if err != nil || len(emulators) != 1 {
		t.Fatalf("emulators %v %v", emulators, err)
	}
	must(t, syscall.Kill(emulators[0], syscall.SIGKILL))
	<-n.Gone()
	if _, err := wan.Start(ctx, named(twoSites(quick()), n.Run().ID), options(t)); !fault.Is(err, fault.Exists) {
		t.Errorf("a run of the same ID: got %v, want exists", err)
	}
	runs, ended, err := wan.Clean(ctx, prefix, n.Run().ID)
	if err != nil || len(runs) != 1 || ended < 2 {
		t.Errorf("cleaned %v, %d processes: %v", runs, ended, err)
	}
	if left, _ := netns.List(prefix, n.Run().ID); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the shell lives on")
	}
	for _, pid := range inside {
		eventually(t, "its processes end", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	}
	must(t, n.Close())
}

func named(c wan.Config, id string) wan.Config {
	c.Run = id
	return c
}

// zombie reports whether a process has ended and only its parent does not know.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestStart_FailureLeavesNothing(t *testing.T) {
	needRoot(t)
	o := options(t)
	o.Emulator = []string{"false"}
	c := named(twoSites(quick()), "failed")
	if _, err := wan.Start(context.Background(), c, o); !fault.Is(err, fault.Closed) && !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v", err)
	}
	if left, _ := netns.List(prefix, "failed"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestNetwork_AllSitesReachEachOther(t *testing.T) {
	c := wan.Config{Prefix: prefix, Seed: 1}
	for _, name := range []string{"a", "b", "c", "d"} {
		c.Sites = append(c.Sites, wan.Site{Name: name, LAN: 100 * wan.Mbit, Up: 50 * wan.Mbit, Down: 50 * wan.Mbit, Hosts: []wan.Host{{Name: name + "1"}}})
		for _, other := range c.Sites[:len(c.Sites)-1] {
			c.Both(name, other.Name, quick())
		}
	}
	n := start(t, c)
	for _, pair := range [][2]string{{"a1", "b1"}, {"c1", "a1"}, {"d1", "c1"}, {"b1", "d1"}} {
		if !newWire(t, n, pair[0], pair[1]).passes(patience) {
			t.Errorf("%v do not reach each other", pair)
		}
	}
}
