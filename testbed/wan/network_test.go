package wan_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/wan"
	"cartwheel.dev/testbed/wan/emulator"
)

// role makes the test's own binary the emulator.
const role = "CARTWHEEL_WAN_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "emulator" {
		if err := emulator.Run(context.Background(), os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func options(t *testing.T) wan.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return wan.Options{Emulator: []string{self}, Env: []string{role + "=emulator"}, Stderr: os.Stderr}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("this machine has no TUN device")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("this machine has no nsenter")
	}
}

// prefix tells this package's namespaces from those of others.
const prefix = "cwtest"

func twoSites(p wan.Path) wan.Config {
	c := wan.Config{Prefix: prefix, Seed: 1}
	for _, name := range []string{"paris", "quito"} {
		c.Sites = append(c.Sites, wan.Site{Name: name, LAN: wan.Unlimited, Up: wan.Unlimited, Down: wan.Unlimited,
			Hosts: []wan.Host{{Name: name + "1"}, {Name: name + "2"}}})
	}
	c.Both("paris", "quito", p)
	return c
}

func start(t *testing.T, c wan.Config) *wan.Network {
	t.Helper()
	needRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n, err := wan.Start(ctx, c, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		left, err := netns.List(n.Run().Prefix, n.Run().ID)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	return n
}

func addr(t *testing.T, n *wan.Network, host string) string {
	t.Helper()
	c, err := n.Config(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range c.Hosts() {
		if h.Name == host {
			return h.Addr.String()
		}
	}
	t.Fatalf("no host %s", host)
	return ""
}

// listen opens a listener inside a host.
func listen(t *testing.T, n *wan.Network, host string) net.Listener {
	t.Helper()
	var l net.Listener
	err := n.Do(host, func() (err error) {
		l, err = net.Listen("tcp4", ":7000")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dial(t *testing.T, n *wan.Network, host, to string) net.Conn {
	t.Helper()
	var c net.Conn
	err := n.Do(host, func() (err error) {
		c, err = net.DialTimeout("tcp4", to, 10*time.Second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func TestNetwork_CarriesBytesUnchanged(t *testing.T) {
	n := start(t, twoSites(wan.Path{Delay: 5 * time.Millisecond, Rate: 50 * wan.Mbit}))
	l := listen(t, n, "quito1")
	sent := bytes.Repeat([]byte("the quick brown fox "), 100_000)
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- nil
			return
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		all, _ := io.ReadAll(c)
		got <- all
	}()
	c := dial(t, n, "paris2", addr(t, n, "quito1")+":7000")
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if all := <-got; !bytes.Equal(all, sent) {
		t.Fatalf("%d bytes arrived of %d, or others", len(all), len(sent))
	}
	var s *wan.Stats
	eventually(t, "nothing is held", func() bool {
		var err error
		if s, err = n.Stats(context.Background()); err != nil {
			t.Fatal(err)
		}
		return s.Held == 0
	})
	there := s.Pairs[wan.Pair{From: "paris", To: "quito"}]
	if there.Through < uint64(len(sent)) || there.Queue+there.Loss > 0 {
		t.Errorf("counted %+v", there)
	}
	t.Logf("late p50 %v p99 %v longest %v, waited p99 %v, %d packets, %.1f %% of a core, priority %d", s.Late.Quantile(0.5), s.Late.Quantile(0.99), s.Late.Longest, s.Wait.Quantile(0.99), there.Packets, 100*s.Load(), s.Priority)
}

func TestNetwork_HostsUseTheCongestionControl(t *testing.T) {
	c := twoSites(wan.Path{Rate: wan.Unlimited})
	c.TCP = "reno" // every kernel has it, for every namespace
	n := start(t, c)
	for _, host := range []string{"paris1", "quito2"} {
		got, err := n.Command(context.Background(), host, "cat", "/proc/sys/net/ipv4/tcp_congestion_control").Output()
		if strings.TrimSpace(string(got)) != c.TCP || err != nil {
			t.Errorf("%s: got %q, %v; want %s", host, got, err, c.TCP)
		}
	}
	c = named(c, "control")
	c.TCP = "none"
	if _, err := wan.Start(context.Background(), c, options(t)); !fault.Is(err, fault.NotSupported) {
		t.Errorf("an unknown one: got %v", err)
	}
}

func TestCommand_RunsInItsHost(t *testing.T) {
	n := start(t, twoSites(wan.Path{Rate: wan.Unlimited}))
	var out bytes.Buffer
	cmd := n.Command(context.Background(), "quito2", "cat", "/proc/net/fib_trie")
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), addr(t, n, "quito2")) {
		t.Errorf("%v: its addresses are %s", err, out.String())
	}
	if err := n.Command(context.Background(), "rome", "true").Run(); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want not found", err)
	}
}
