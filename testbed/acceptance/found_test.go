package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/testbed/netns"
)

// lan is a switch with machines: network namespaces, each with an address
// of its own as far as the network goes. Each has its directories below dir.
type lan struct {
	t   *testing.T
	run netns.Run
	dir string
}

// startLAN makes so many machines; they end with the test.
func startLAN(t *testing.T, count int) *lan {
	t.Helper()
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	m := &lan{t: t, run: netns.Run{Prefix: "cwfound", ID: fmt.Sprint(os.Getpid())}, dir: t.TempDir()}
	names := []string{m.run.Name("switch")}
	for i := range count {
		names = append(names, m.run.Name(m.name(i)))
	}
	if err := netns.Create(names...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := netns.Delete(context.Background(), 10*time.Second, names...); err != nil {
			t.Error(err)
		}
	})
	m.in("switch", "ip", "link", "add", "bridge", "type", "bridge")
	m.in("switch", "ip", "link", "set", "bridge", "up")
	for i := range count {
		port := fmt.Sprintf("port%d", i)
		m.in("switch", "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", m.run.Name(m.name(i)))
		m.in("switch", "ip", "link", "set", port, "master", "bridge", "up")
		m.in(m.name(i), "ip", "address", "add", m.address(i)+"/24", "dev", "eth0")
		m.in(m.name(i), "ip", "link", "set", "eth0", "up")
		m.in(m.name(i), "ip", "link", "set", "lo", "up")
	}
	return m
}

func (m *lan) name(i int) string    { return fmt.Sprintf("machine%d", i) }
func (m *lan) address(i int) string { return fmt.Sprintf("10.77.0.%d", i+11) }

// path is a path of a machine's own.
func (m *lan) path(i int, words ...string) string {
	return filepath.Join(append([]string{m.dir, m.name(i)}, words...)...)
}

// in runs a command in a namespace and returns what it printed on standard output.
func (m *lan) in(role string, argv ...string) string {
	m.t.Helper()
	out, err := m.try(role, argv...)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *lan) try(role string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := netns.Command(ctx, m.run.Name(role), argv...)
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, out, told.String())
	}
	return string(out), nil
}

// cartwheel runs a command on a machine, as its administrator or user.
func (m *lan) cartwheel(i int, words ...string) string {
	m.t.Helper()
	return m.in(m.name(i), append([]string{binary(m.t, "cartwheel")}, words...)...)
}

// serve starts a daemon on a machine and waits until it is ready. It ends with
// the test.
func (m *lan) serve(i int, words ...string) {
	m.t.Helper()
	cmd := netns.Command(context.Background(), m.run.Name(m.name(i)), append([]string{binary(m.t, "cartwheeld")}, words...)...)
	log, err := os.Create(m.path(i, words[0]+".log"))
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { m.end(cmd, log) })
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- line
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case line := <-ready:
		if !strings.Contains(line, `"ready":true`) {
			text, _ := os.ReadFile(log.Name())
			m.t.Fatalf("%s on %s said %q\n%s", words[0], m.name(i), line, text)
		}
	case <-time.After(time.Minute):
		m.t.Fatalf("%s on %s is not ready", words[0], m.name(i))
	}
}

// end stops a daemon in order.
func (m *lan) end(cmd *exec.Cmd, log *os.File) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	select {
	case err := <-gone:
		if err != nil {
			m.t.Errorf("%s: %v", cmd.Args, err)
		}
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		m.t.Errorf("%s does not stop", cmd.Args)
	}
	if m.t.Failed() {
		text, _ := os.ReadFile(log.Name())
		m.t.Logf("%s\n%s", log.Name(), tail(text, 2000))
	}
	log.Close()
}

// TestCluster_ThreeMachinesByCommands founds a cluster on one machine, has two
// others join with tokens, mounts it at the last, and administers it.
func TestCluster_ThreeMachinesByCommands(t *testing.T) {
	m := startLAN(t, 3)
	sites := []string{"tokyo", "boston", "paris"}
	for i := range sites {
		if err := os.MkdirAll(m.path(i), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var made struct {
		GeoConfigData   string `json:"geo_config_data"`
		GeoConfigListen string `json:"geo_config_listen"`
		NodeConfig      string `json:"node_config"`
		AdminFile       string `json:"admin_file"`
		Contact         string `json:"contact"`
	}
	text := m.cartwheel(0, "cluster", "init", "--site", sites[0], "--address", m.address(0), "--etc", m.path(0, "etc"), "--data", m.path(0, "data"), "--json")
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	m.serve(0, "geo-config", "--data", made.GeoConfigData, "--listen", made.GeoConfigListen)
	m.serve(0, "node", "--config", made.NodeConfig)
	for i := 1; i < len(sites); i++ {
		var token struct {
			Token string `json:"token"`
		}
		text := m.cartwheel(0, "cluster", "token", sites[i], "--admin", made.AdminFile, "--json")
		if err := json.Unmarshal([]byte(text), &token); err != nil {
			t.Fatal(err)
		}
		m.in(m.name(i), binary(t, "cartwheeld"), "join", token.Token, "--address", m.address(i), "--data", m.path(i, "data"), "--config", m.path(i, "node.yaml"))
		m.serve(i, "node", "--config", m.path(i, "node.yaml"))
	}
	d := &demo{t: t}
	d.await("all three to be protected", time.Minute, func() error {
		text, err := m.try(m.name(2), binary(t, "cartwheel"), "status", "--contact", made.Contact)
		if err == nil && !strings.HasPrefix(text, "All well: 3 nodes at 3 sites") {
			err = fmt.Errorf("status says: %s", text)
		}
		return err
	})
	m.useMount(made.Contact)
	m.administer(made.AdminFile)
}

// useMount writes and reads a file through a mount on the last machine.
func (m *lan) useMount(contact string) {
	m.t.Helper()
	point := m.path(2, "mnt")
	if err := os.Mkdir(point, 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.cartwheel(2, "mount", contact, point, "--site", "paris", "--daemon", "--log-file", m.path(2, "mount.log"), "--debug")
	defer m.cartwheel(2, "umount", point)
	file := filepath.Join(point, "hello")
	if err := os.WriteFile(file, []byte("from paris"), 0o644); err != nil {
		text, _ := os.ReadFile(m.path(2, "mount.log"))
		where, _ := m.try(m.name(2), binary(m.t, "cartwheel"), "slice", "ls", "--contact", contact)
		m.t.Fatalf("%v\n%s\n%s", err, text, where)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "from paris" {
		m.t.Errorf("read %q, %v", got, err)
	}
}

// administer adds and revokes a user, and looks for what was done in the audit
// log.
func (m *lan) administer(admin string) {
	m.t.Helper()
	as := func(words ...string) string {
		m.t.Helper()
		return m.cartwheel(1, append(words, "--admin", admin)...)
	}
	key := strings.TrimSpace(m.cartwheel(1, "key", m.path(1, "ann.key")))
	as("user", "add", "ann", "--key", key, "--uid", "1000", "--gid", "1000")
	as("user", "role", "ann", "administrator")
	if list := as("user", "ls"); !strings.Contains(list, "ann") || strings.Count(list, "administrator") != 2 {
		m.t.Errorf("the users are\n%s", list)
	}
	as("user", "revoke", "ann")
	as("site", "set", "paris", "--location", "Paris, France")
	if list := as("site", "ls"); !strings.Contains(list, "Paris, France") {
		m.t.Errorf("the sites are\n%s", list)
	}
	if _, err := m.try(m.name(1), binary(m.t, "cartwheel"), "node", "remove", m.nodeOf(admin), "--admin", admin); err == nil || !strings.Contains(err.Error(), "is a member of slices") {
		m.t.Errorf("a node in use was removed: %v", err)
	}
	log := as("audit")
	for _, want := range []string{"cluster.found", "token.create", "node.join", "user.add", "user.role", "user.revoke", "site.set"} {
		if !strings.Contains(log, want) {
			m.t.Errorf("the audit log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "node.remove") {
		m.t.Errorf("the audit log has what was refused:\n%s", log)
	}
}

// nodeOf returns the ID of a node.
func (m *lan) nodeOf(admin string) string {
	m.t.Helper()
	var nodes []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(m.cartwheel(1, "node", "ls", "--admin", admin, "--json")), &nodes); err != nil || len(nodes) != 3 {
		m.t.Fatalf("%v: %+v", err, nodes)
	}
	return nodes[0].ID
}
