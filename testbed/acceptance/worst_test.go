package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestWorstDay_GeoConfigIsRebuilt loses the data of geo-config for good, kills all nodes,
// and rebuilds it from what their disks have: they start without it. The tree is whole and grows, and when the old database
// comes back, its server ends and no node obeys it.
func TestWorstDay_GeoConfigIsRebuilt(t *testing.T) {
	m, made := foundCluster(t, "tokyo", "boston", "paris")
	point := m.path("paris", "mnt")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	m.cartwheel("paris", "mount", made.Contact, point, "--site", "paris", "--daemon", "--log-file", m.path("paris", "mount.log"))
	defer m.cartwheel("paris", "umount", point)
	m.put(filepath.Join(point, ".Site=boston", "before"), "before")
	m.cartwheel("tokyo", "snapshot", "create", "kept", "--contact", made.Contact)
	old := m.path("tokyo", "old")
	m.awaitSnapshot(made, "boston", "kept")
	m.awaitSnapshot(made, "paris", "kept")

	rebuild := []string{binary(t, "cartwheel"), "geo-config", "rebuild", "--data", made.GeoConfigData, "--contact", made.Contact}
	if _, err := m.try("tokyo", rebuild...); err == nil || !strings.Contains(err.Error(), "nothing is lost") {
		t.Errorf("a geo-config that answers was rebuilt: %v", err)
	}
	m.crash(m.geo)
	_ = m.geo.Wait() // it was killed
	if _, err := m.try("tokyo", rebuild...); err == nil || !strings.Contains(err.Error(), "holds cluster") {
		t.Errorf("a store that holds a cluster was overwritten: %v", err)
	}
	m.move(made.GeoConfigData, old, "geo-config.db*", "founding.json")
	configs := map[string]string{"tokyo": made.NodeConfig, "boston": m.path("boston", "node.yaml"), "paris": m.path("paris", "node.yaml")}
	for name := range configs {
		m.kill(name)
		_ = m.nodes[name].Wait() // it was killed
	}
	for name, config := range configs {
		m.nodes[name] = m.serve(name, "node", "--config", config)
	}
	if plan := m.must("tokyo", append(rebuild, "--dry-run")...); !strings.Contains(plan, "generation 2, from what 3 nodes") || !strings.Contains(plan, "Nothing was written") {
		t.Errorf("the plan is\n%s", plan)
	}
	if told := m.must("tokyo", rebuild...); !strings.Contains(told, "slices go on with all their members") || strings.Contains(told, "geo_config end in") {
		t.Errorf("the rebuilding says\n%s", told)
	}
	serve := []string{"geo-config", "--data", made.GeoConfigData, "--listen", made.GeoConfigListen}
	rebuilt := m.serve("tokyo", serve...)
	m.awaitStatus("tokyo", made, "All well: 3 nodes at 3 sites")
	m.get(filepath.Join(point, "before", "file"), "before")
	m.put(filepath.Join(point, "after"), "after")
	// No slice has this policy: it is a new one, once the nodes follow the new store.
	end := time.Now().Add(time.Minute)
	for i := 0; ; i++ {
		m.put(filepath.Join(point, ".RepLevel=2", fmt.Sprint("more", i)), "more")
		log := m.cartwheel("tokyo", "audit", "--admin", made.AdminFile)
		if strings.Contains(log, "geo-config.rebuild") && strings.Contains(log, "slice.create") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the audit log is\n%s", log)
		}
		<-time.After(500 * time.Millisecond)
	}
	m.awaitSnapshot(made, "tokyo", "kept")

	m.crash(rebuilt)
	_ = rebuilt.Wait() // it was killed
	m.move(made.GeoConfigData, m.path("tokyo", "rebuilt"), "geo-config.db*")
	m.move(old, made.GeoConfigData, "geo-config.db*")
	_, err := m.try("tokyo", append([]string{binary(t, "cartwheeld")}, serve...)...)
	if err == nil || !strings.Contains(err.Error(), "exit status 6") || !strings.Contains(err.Error(), "this configuration was rebuilt") {
		t.Errorf("the old database: %v", err)
	}
	m.get(filepath.Join(point, "after", "file"), "after")
	if text := m.cartwheel("tokyo", "status", "--contact", made.Contact); !strings.Contains(text, "geo-config") || strings.HasPrefix(text, "All well") {
		t.Errorf("status says\n%s", text)
	}
}

// TestWorstDay_SlicesWaitForSilentNodes loses geo-config together with a node. What
// two other nodes have goes on, what only that node has waits until it is back, and a
// pair of which it is one goes on without it at an administrator's word.
func TestWorstDay_SlicesWaitForSilentNodes(t *testing.T) {
	m, made := foundCluster(t, "tokyo", "boston", "paris")
	point := m.path("tokyo", "mnt")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	m.cartwheel("tokyo", "mount", made.Contact, point, "--site", "tokyo", "--daemon", "--log-file", m.path("tokyo", "mount.log"))
	defer m.cartwheel("tokyo", "umount", point)
	m.put(filepath.Join(point, ".Site=paris", ".RepLevel=1", "alone"), "alone")
	alone := m.sliceOf(made, filepath.Join(point, "alone"))
	m.crash(m.geo)
	_ = m.geo.Wait() // it was killed
	m.kill("paris")
	m.move(made.GeoConfigData, m.path("tokyo", "old"), "*")
	told := m.cartwheel("tokyo", "geo-config", "rebuild", "--data", made.GeoConfigData, "--contact", made.Contact, "--accept-loss", "all", "--json")
	var v rebuiltView
	if err := json.Unmarshal([]byte(told), &v); err != nil {
		t.Fatal(err)
	}
	if v.verdict(1) != "reduced" || v.verdict(alone) != "waiting" || len(v.Silent) != 1 || len(v.Strangers) != 2 {
		t.Fatalf("the root is %s, slice %d %s: %s", v.verdict(1), alone, v.verdict(alone), told)
	}
	// The server's key went with its data: the nodes and the administrator trust it by
	// their files.
	for _, file := range []string{made.NodeConfig, made.AdminFile, m.path("boston", "node.yaml"), m.path("paris", "node.yaml")} {
		m.edit(file, v.Server)
	}
	m.serve("tokyo", "geo-config", "--data", made.GeoConfigData, "--listen", made.GeoConfigListen)
	for name, config := range map[string]string{"tokyo": made.NodeConfig, "boston": m.path("boston", "node.yaml")} {
		m.kill(name)
		_ = m.nodes[name].Wait() // it was killed
		m.nodes[name] = m.serve(name, "node", "--config", config)
	}
	m.put(filepath.Join(point, ".Site=tokyo", "after"), "after")
	settle := []string{"geo-config", "settle", "--admin", made.AdminFile, "--contact", made.Contact}
	if told := m.cartwheel("tokyo", settle...); !strings.Contains(told, fmt.Sprintf("slice %d  waits for", alone)) {
		t.Errorf("while the node is away: %s", told)
	}
	m.nodes["paris"] = m.serve("paris", "node", "--config", m.path("paris", "node.yaml"))
	if told := m.cartwheel("tokyo", settle...); !strings.Contains(told, "1 of 1 slices go on") {
		t.Errorf("once the node is back: %s", told)
	}
	if told := m.cartwheel("tokyo", settle...); told != "No slice waits.\n" {
		t.Errorf("when all is settled: %s", told)
	}
	d := &demo{t: t}
	d.await("the file that only paris has", time.Minute, func() error {
		got, err := os.ReadFile(filepath.Join(point, "alone", "file"))
		if err == nil && string(got) != "alone" {
			err = fmt.Errorf("read %q", got)
		}
		return err
	})
	m.awaitStatus("tokyo", made, "All well: 3 nodes at 3 sites")
}

// rebuiltView is what geo-config rebuild prints.
type rebuiltView struct {
	Server    string     `json:"server"`
	Silent    []struct{} `json:"silent"`
	Strangers []string   `json:"strangers"`
	Slices    []struct {
		Verdict string `json:"verdict"`
		Was     struct {
			ID int `json:"id"`
		} `json:"was"`
	} `json:"slices"`
}

// verdict is what became of a slice.
func (v *rebuiltView) verdict(id int) string {
	for _, s := range v.Slices {
		if s.Was.ID == id {
			return s.Verdict
		}
	}
	return "unknown"
}

// sliceOf returns the slice of a path.
func (m *founders) sliceOf(made founded, path string) int {
	m.t.Helper()
	var where struct {
		Slice int `json:"slice"`
	}
	text := m.cartwheel("tokyo", "where", path, "--contact", made.Contact, "--json")
	if err := json.Unmarshal([]byte(text), &where); err != nil || where.Slice == 0 {
		m.t.Fatalf("%v: %s", err, text)
	}
	return where.Slice
}

// edit has a file name another geo-config server.
func (m *founders) edit(file, server string) {
	m.t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		peer := regexp.MustCompile(`(/tcp/7300/p2p/)\w+`)
		err = os.WriteFile(file, peer.ReplaceAll(text, []byte("${1}"+server)), 0o600)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// put makes a directory with a file in it.
func (m *founders) put(dir, content string) {
	m.t.Helper()
	d := &demo{t: m.t}
	d.await("a directory", time.Minute, func() error {
		err := os.Mkdir(dir, 0o755)
		if os.IsExist(err) {
			err = nil
		}
		return err
	})
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// get reads a file.
func (m *founders) get(path, want string) {
	m.t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		m.t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

// move moves the files of patterns from one directory to another, which it makes.
func (m *founders) move(from, to string, patterns ...string) {
	m.t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		m.t.Fatal(err)
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			m.t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Rename(name, filepath.Join(to, filepath.Base(name))); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

// awaitSnapshot waits until the list of snapshots beside a node's data has a name.
func (m *founders) awaitSnapshot(made founded, site, name string) {
	m.t.Helper()
	file := m.path(site, "data", "snapshots.json")
	if site == "tokyo" {
		file = m.path(site, "data", "node", "snapshots.json")
	}
	d := &demo{t: m.t}
	d.await("the snapshot at "+site, time.Minute, func() error {
		text, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(text), name) {
			err = fmt.Errorf("%s has %s", file, text)
		}
		return err
	})
}
