package acceptance

import (
	"bufio"
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
)

// founders are the machines on which a cluster is founded, each with directories
// of its own.
type founders struct {
	*lan
	t      *testing.T
	dir    string
	nodes  map[string]*exec.Cmd // by the names of their machines
	geo    *exec.Cmd            // geo-config, on the first machine
	killed map[*exec.Cmd]bool
}

// kill ends the node of a machine as a crash does.
func (m *founders) kill(name string) {
	m.t.Helper()
	m.crash(m.nodes[name])
}

// crash ends a daemon as a crash does.
func (m *founders) crash(cmd *exec.Cmd) {
	m.t.Helper()
	m.killed[cmd] = true
	if err := cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
}

// path is a path of a machine's own.
func (m *founders) path(name string, words ...string) string {
	return filepath.Join(append([]string{m.dir, name}, words...)...)
}

// cartwheel runs a command on a machine, as its administrator or user.
func (m *founders) cartwheel(name string, words ...string) string {
	m.t.Helper()
	return m.must(name, append([]string{binary(m.t, "cartwheel")}, words...)...)
}

// serve starts a daemon on a machine and waits until it is ready. It ends with
// the test, unless the test has killed it.
func (m *founders) serve(name string, words ...string) *exec.Cmd {
	m.t.Helper()
	argv := m.command(name, append([]string{binary(m.t, "cartwheeld")}, words...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	log, err := os.Create(m.path(name, words[0]+".log"))
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
			m.t.Fatalf("%s on %s said %q\n%s", words[0], name, line, text)
		}
	case <-time.After(time.Minute):
		m.t.Fatalf("%s on %s is not ready", words[0], name)
	}
	return cmd
}

// end stops a daemon in order.
func (m *founders) end(cmd *exec.Cmd, log *os.File) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have been killed
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	select {
	case err := <-gone:
		if err != nil && !m.killed[cmd] {
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

// founded says where the first machine's files are.
type founded struct {
	GeoConfigData     string   `json:"geo_config_data"`
	GeoConfigListen   string   `json:"geo_config_listen"`
	GeoConfigDatabase []string `json:"geo_config_database"`
	NodeConfig        string   `json:"node_config"`
	AdminFile         string   `json:"admin_file"`
	Contact           string   `json:"contact"`
}

// foundCluster founds a cluster on the first machine, and has the others join with
// tokens, each at a site of its name.
func foundCluster(t *testing.T, sites ...string) (*founders, founded) {
	t.Helper()
	return foundClusterOn(t, "", sites...)
}

// foundClusterOn is foundCluster with the configuration in a database; empty: in
// the embedded store.
func foundClusterOn(t *testing.T, database string, sites ...string) (*founders, founded) {
	t.Helper()
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	m := &founders{lan: startLAN(t, addresses), t: t, dir: t.TempDir(), nodes: map[string]*exec.Cmd{}, killed: map[*exec.Cmd]bool{}}
	for _, name := range sites {
		if err := os.MkdirAll(m.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var made founded
	first := sites[0]
	words := []string{"cluster", "init", "--site", first, "--address", addresses[first], "--etc", m.path(first, "etc"), "--data", m.path(first, "data"), "--json"}
	if database != "" {
		words = append(words, "--database", database)
	}
	text := m.cartwheel(first, words...)
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	m.geo = m.serve(first, append([]string{"geo-config", "--data", made.GeoConfigData, "--listen", made.GeoConfigListen}, made.GeoConfigDatabase...)...)
	m.nodes[first] = m.serve(first, "node", "--config", made.NodeConfig)
	for _, name := range sites[1:] {
		m.join(name, made)
	}
	m.awaitStatus(sites[len(sites)-1], made, fmt.Sprintf("All well: %d nodes at %d sites", len(sites), len(sites)))
	return m, made
}

// join has a machine join as a node at the site of its name.
func (m *founders) join(name string, made founded) {
	m.t.Helper()
	var token struct {
		Token string `json:"token"`
	}
	if err := os.MkdirAll(m.path(name), 0o700); err != nil {
		m.t.Fatal(err)
	}
	text := m.cartwheel("tokyo", "cluster", "token", name, "--admin", made.AdminFile, "--json")
	if err := json.Unmarshal([]byte(text), &token); err != nil {
		m.t.Fatal(err)
	}
	m.must(name, binary(m.t, "cartwheeld"), "join", token.Token, "--address", addresses[name], "--data", m.path(name, "data"), "--config", m.path(name, "node.yaml"))
	m.nodes[name] = m.serve(name, "node", "--config", m.path(name, "node.yaml"))
}

// awaitStatus waits until the status begins with some words.
func (m *founders) awaitStatus(name string, made founded, want string) {
	m.t.Helper()
	d := &demo{t: m.t}
	d.await(want, time.Minute, func() error {
		text, err := m.try(name, binary(m.t, "cartwheel"), "status", "--contact", made.Contact)
		if err == nil && !strings.HasPrefix(text, want) {
			err = fmt.Errorf("status says: %s", text)
		}
		return err
	})
}

// TestCluster_ThreeMachinesByCommands founds a cluster on one machine, has two
// others join with tokens, mounts it at the last, and administers it.
func TestCluster_ThreeMachinesByCommands(t *testing.T) {
	m, made := foundCluster(t, "tokyo", "boston", "paris")
	m.useMount(made.Contact)
	m.administer(made.AdminFile)
}

// TestCluster_DrainsANodeUnderWrites drains the node that leads the root while a
// mount writes, and removes it then.
func TestCluster_DrainsANodeUnderWrites(t *testing.T) {
	m, made := foundCluster(t, "tokyo", "boston", "paris")
	drained := m.nodeAt(made.AdminFile, "tokyo")
	admin := []string{"--admin", made.AdminFile, "--contact", made.Contact}
	text, err := m.try("tokyo", append([]string{binary(t, "cartwheel"), "node", "drain", drained}, admin...)...)
	if err == nil || !strings.Contains(err.Error(), "needs 3 copies") {
		t.Fatalf("draining one of three nodes: %s, %v", text, err)
	}
	m.join("laptop", made)
	m.awaitStatus("tokyo", made, "All well: 4 nodes at 4 sites")
	point := m.path("paris", "mnt")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	m.cartwheel("paris", "mount", made.Contact, point, "--site", "paris", "--daemon", "--log-file", m.path("paris", "mount.log"))
	defer m.cartwheel("paris", "umount", point)
	if plan := m.cartwheel("tokyo", append([]string{"node", "drain", drained, "--dry-run"}, admin...)...); !strings.Contains(plan, "Nothing is in the way.") {
		t.Errorf("the plan is\n%s", plan)
	}
	done := make(chan error, 1)
	go func() {
		_, err := m.try("tokyo", append([]string{binary(t, "cartwheel"), "node", "drain", drained, "--wait"}, admin...)...)
		done <- err
	}()
	files := 0
	for left := false; !left; files++ {
		select {
		case err := <-done:
			if left = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		if err := os.WriteFile(filepath.Join(point, fmt.Sprint("file", files)), []byte(fmt.Sprint("text ", files)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if list := m.cartwheel("tokyo", append([]string{"node", "ls"}, admin[:2]...)...); !strings.Contains(list, "0, drained") {
		t.Errorf("the nodes are\n%s", list)
	}
	m.cartwheel("tokyo", append([]string{"node", "remove", drained}, admin[:2]...)...)
	for i := range files {
		if got, err := os.ReadFile(filepath.Join(point, fmt.Sprint("file", i))); err != nil || string(got) != fmt.Sprint("text ", i) {
			t.Fatalf("file %d: read %q, %v", i, got, err)
		}
	}
	t.Logf("%d files were written meanwhile", files)
}

// nodeAt returns the ID of a site's node.
func (m *founders) nodeAt(admin, site string) string {
	m.t.Helper()
	var nodes []struct {
		ID   string `json:"id"`
		Site string `json:"site"`
	}
	if err := json.Unmarshal([]byte(m.cartwheel("tokyo", "node", "ls", "--admin", admin, "--json")), &nodes); err != nil {
		m.t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Site == site {
			return n.ID
		}
	}
	m.t.Fatalf("no node at %s in %+v", site, nodes)
	return ""
}

// useMount writes and reads a file through a mount on the last machine.
func (m *founders) useMount(contact string) {
	m.t.Helper()
	point := m.path("paris", "mnt")
	if err := os.Mkdir(point, 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.cartwheel("paris", "mount", contact, point, "--site", "paris", "--daemon", "--log-file", m.path("paris", "mount.log"), "--debug")
	defer m.cartwheel("paris", "umount", point)
	file := filepath.Join(point, "hello")
	if err := os.WriteFile(file, []byte("from paris"), 0o644); err != nil {
		text, _ := os.ReadFile(m.path("paris", "mount.log"))
		where, _ := m.try("paris", binary(m.t, "cartwheel"), "slice", "ls", "--contact", contact)
		m.t.Fatalf("%v\n%s\n%s", err, text, where)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "from paris" {
		m.t.Errorf("read %q, %v", got, err)
	}
}

// administer adds and revokes a user, and looks for what was done in the audit
// log.
func (m *founders) administer(admin string) {
	m.t.Helper()
	as := func(words ...string) string {
		m.t.Helper()
		return m.cartwheel("boston", append(words, "--admin", admin)...)
	}
	key := strings.TrimSpace(m.cartwheel("boston", "key", m.path("boston", "ann.key")))
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
	if _, err := m.try("boston", binary(m.t, "cartwheel"), "node", "remove", m.nodeOf(admin), "--admin", admin); err == nil || !strings.Contains(err.Error(), "is a member of slices") {
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
func (m *founders) nodeOf(admin string) string {
	m.t.Helper()
	var nodes []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(m.cartwheel("boston", "node", "ls", "--admin", admin, "--json")), &nodes); err != nil || len(nodes) != 3 {
		m.t.Fatalf("%v: %+v", err, nodes)
	}
	return nodes[0].ID
}
