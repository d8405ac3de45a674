package netns_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/supervisor/supervisortest"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
)

// run names this test's own namespaces.
func run(t *testing.T) netns.Run {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("this machine has no nsenter")
	}
	r := netns.Run{Prefix: "nstest", ID: strconv.Itoa(os.Getpid())}
	t.Cleanup(func() {
		names, err := netns.List(r.Prefix, r.ID)
		if err == nil {
			_, err = netns.Delete(context.Background(), 0, names...)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestMain is also what TestDelete_EndsWhatWaitsForItsOwnMount starts.
func TestMain(m *testing.M) {
	supervisortest.Main(os.Stdout)
	os.Exit(m.Run())
}

func TestRunOf_ReadsTheNameOfARun(t *testing.T) {
	r := netns.Run{Prefix: "cw", ID: "a1"}
	got, role, ok := netns.RunOf(r.Name("h.paris-1.x"))
	if !ok || got != r || role != "h.paris-1.x" {
		t.Errorf("got %v %q %v", got, role, ok)
	}
	for _, other := range []string{"blue", "cw.x", "cw-.x", "-a.x", "cw-a1"} {
		if _, _, ok := netns.RunOf(other); ok {
			t.Errorf("%q is taken for one of ours", other)
		}
	}
}

func TestCreate_MakesANetworkOfItsOwn(t *testing.T) {
	r := run(t)
	name := r.Name("one")
	if err := netns.Create(name); err != nil {
		t.Fatal(err)
	}
	if err := netns.Create(name); !fault.Is(err, fault.Exists) {
		t.Errorf("made twice: got %v", err)
	}
	if names, err := netns.List(r.Prefix, r.ID); err != nil || !slices.Equal(names, []string{name}) {
		t.Errorf("listed %v %v", names, err)
	}
	home, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var inside []net.Interface
	if err := netns.Do(name, func() (err error) { inside, err = net.Interfaces(); return err }); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(inside, func(i net.Interface) bool { return i.Flags&net.FlagUp != 0 }) {
		t.Errorf("a new namespace has %v", inside)
	}
	for range 20 { // whatever thread this is on
		if now, err := net.Interfaces(); err != nil || len(now) != len(home) {
			t.Fatalf("this process is elsewhere: %v %v", now, err)
		}
	}
	if err := netns.Do(r.Name("none"), func() error { return nil }); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

func TestDelete_EndsOnlyWhatIsInside(t *testing.T) {
	r := run(t)
	one, two := r.Name("one"), r.Name("two")
	if err := netns.Create(one, two); err != nil {
		t.Fatal(err)
	}
	ended := map[string]chan error{}
	pids := map[string]int{}
	for _, name := range []string{one, two} {
		cmd := netns.Command(context.Background(), name, "sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		ended[name], pids[name] = done, cmd.Process.Pid
		for end := time.Now().Add(10 * time.Second); ; {
			if inside, err := netns.Processes(name); err != nil || slices.Contains(inside, pids[name]) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the command never entered")
			}
		}
	}
	n, err := netns.Delete(context.Background(), 5*time.Second, one)
	if err != nil || n != 1 {
		t.Errorf("ended %d: %v", n, err)
	}
	select {
	case <-ended[one]:
	case <-time.After(10 * time.Second):
		t.Error("it lives on")
	}
	select {
	case err := <-ended[two]:
		t.Errorf("the neighbour's process ended: %v", err)
	default:
	}
	if names, _ := netns.List(r.Prefix, r.ID); !slices.Equal(names, []string{two}) {
		t.Errorf("left %v", names)
	}
	if _, err := netns.Delete(context.Background(), 0, one); err != nil {
		t.Errorf("deleted twice: %v", err)
	}
}
