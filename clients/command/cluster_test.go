package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	gslices "slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// asker runs commands against a cluster in this process.
type asker struct {
	t       *testing.T
	contact string
}

func askerOf(t *testing.T, c *servertest.Cluster, user string) asker {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "user.key")
	encoded, err := c.Users[user].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	a := asker{t, filepath.Join(dir, "contact.json")}
	if err == nil {
		err = f.Save(a.contact)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run answers with the exit code and what was printed.
func (a asker) run(words ...string) (code int, out, said string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code = Run(ctx, append([]string{"cartwheel", "--contact", a.contact}, words...), Stdio{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func (a asker) json(v any, words ...string) {
	a.t.Helper()
	code, out, said := a.run(append(words, "--json")...)
	if err := json.Unmarshal([]byte(out), v); code != 0 || err != nil {
		a.t.Fatalf("%q: exit code %d, %v: %s%s", words, code, err, out, said)
	}
}

func (a asker) await(what string, ok func() bool) {
	a.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			a.t.Fatalf("waited 20 s for %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestStatus_ShowsNodesSitesAndSlices(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	var v statusView
	a.await("all to be well", func() bool { a.json(&v, "status"); return v.Healthy })
	if v.Cluster != servertest.ClusterID || len(v.Nodes) != 3 || len(v.Sites) != 3 || !v.GeoConfig.Reachable || v.GeoConfig.Kind == "" {
		t.Errorf("got %+v, want three nodes at three sites and the kind of the store", v)
	}
	for _, n := range v.Nodes {
		if !n.Reachable || n.Site == "" || len(n.Addresses) == 0 || n.Capacity <= 0 {
			t.Errorf("got node %+v, want it reachable with site, addresses and capacity", n)
		}
	}
	var list []sliceView
	a.json(&list, "slice", "ls")
	if len(list) != 1 || list[0].ID != 1 || len(list[0].Members) != 3 || list[0].Serving == nil || !*list[0].Serving {
		t.Fatalf("got %+v, want the root's slice with three members, served", list)
	}
	for _, words := range [][]string{{"status"}, {"slice", "ls"}} {
		code, out, said := a.run(words...)
		for _, site := range []string{"tokyo", "boston", "paris"} {
			if code != 0 || !strings.Contains(out, site) {
				t.Errorf("%q: exit code %d, does not show %s: %s%s", words, code, site, out, said)
			}
		}
	}
}

func TestHandOver_GoesWhereItIsAskedTo(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	var before []sliceView
	a.await("the root's slice to be whole", func() bool {
		a.json(&before, "slice", "ls")
		return len(before) == 1 && before[0].lacks() == ""
	})
	i := gslices.IndexFunc(before[0].Members, func(m member) bool { return m.Site != before[0].Active.Site })
	to := string(before[0].Members[i].Site)
	if code, _, said := askerOf(t, c, "ann").run("slice", "hand-over", "1", "--to", to); code != fault.ExitPermission {
		t.Errorf("a user who is no trusted host: exit code %d, %s; want %d", code, said, fault.ExitPermission)
	}
	if code, _, said := a.run("slice", "hand-over", "1", to, "--to", "atlantis"); code != fault.ExitUsage {
		t.Errorf("two sites: exit code %d, %s; want %d", code, said, fault.ExitUsage)
	}
	if code, out, said := a.run("slice", "hand-over", "1", to); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	var after []sliceView
	a.await("the other site to act", func() bool { a.json(&after, "slice", "ls"); return string(after[0].Active.Site) == to })
	for words, want := range map[string]int{"slice hand-over 99": fault.ExitNotFound, "slice hand-over 1 --to atlantis": fault.ExitNotFound, "slice hand-over 1 atlantis": fault.ExitNotFound} {
		if code, _, said := a.run(strings.Fields(words)...); code != want {
			t.Errorf("%s: exit code %d, %s; want %d", words, code, said, want)
		}
	}
}

func TestStatus_NamesWhatIsWrong(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	c.Away(true)
	// The nodes wait for a change: this one ends that wait, and the next fails.
	if _, err := c.Store.Apply(context.Background(), geoconfig.Batch{Key: "nudge", Sites: []geoconfig.Site{{Name: "rome"}}}); err != nil {
		t.Fatal(err)
	}
	var v statusView
	a.await("the store's absence to be told", func() bool { a.json(&v, "status"); return !v.GeoConfig.Reachable })
	if v.Healthy || !strings.Contains(v.Sentence, "geo-config is away") {
		t.Errorf("got %q, want a word on geo-config", v.Sentence)
	}
	c.Away(false)
	victim := c.Nodes[2]
	victim.Kill()
	a.json(&v, "status")
	if v.Healthy || !strings.Contains(v.Sentence, "paris does not answer") {
		t.Errorf("got %q, want a word on paris", v.Sentence)
	}
	for _, n := range v.Nodes {
		if n.ID == victim.ID() && (n.Reachable || n.Error == "") {
			t.Errorf("got %+v, want it unreachable with the reason", n)
		}
	}
}
