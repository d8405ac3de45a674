package acceptance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/testbed/netns"
)

// lan is a switch with machines: network namespaces, each with an address of its
// own. They share everything else, as the tree of files, with this machine.
type lan struct {
	t         *testing.T
	run       netns.Run
	addresses map[string]string
}

// startLAN makes machines with addresses in 192.0.2.0/24, by their names. They end
// with the test, after what it started later.
func startLAN(t *testing.T, addresses map[string]string) *lan {
	t.Helper()
	l := &lan{t: t, run: netns.Run{Prefix: "cwlan", ID: fmt.Sprint(os.Getpid())}, addresses: addresses}
	names := []string{l.run.Name("switch")}
	for name := range addresses {
		names = append(names, l.run.Name(name))
	}
	slices.Sort(names)
	if err := netns.Create(names...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := netns.Delete(context.Background(), 10*time.Second, names...); err != nil {
			t.Error(err)
		}
	})
	l.must("switch", "ip", "link", "add", "bridge", "type", "bridge")
	l.must("switch", "ip", "link", "set", "bridge", "up")
	for name, address := range addresses {
		l.must("switch", "ip", "link", "add", "to-"+name, "type", "veth", "peer", "name", "eth0", "netns", l.run.Name(name))
		l.must("switch", "ip", "link", "set", "to-"+name, "master", "bridge", "up")
		l.must(name, "ip", "address", "add", address+"/24", "dev", "eth0")
		l.must(name, "ip", "link", "set", "eth0", "up")
		l.must(name, "ip", "link", "set", "lo", "up")
	}
	return l
}

// command is how a command is started on a machine.
func (l *lan) command(name string, argv ...string) []string {
	return netns.Command(context.Background(), l.run.Name(name), argv...).Args
}

// must runs a command on a machine and returns what it prints on standard output.
func (l *lan) must(name string, argv ...string) string {
	l.t.Helper()
	out, err := l.try(name, argv...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (l *lan) try(name string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	words := l.command(name, argv...)
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, out, exit.Stderr)
	}
	return string(out), err
}
