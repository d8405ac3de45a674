package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/geo-config/storetest/postgrestest"
	"cartwheel.dev/node/server/servertest"
)

// TestRebuild_WritesWhatTheNodesRemember rebuilds the store of a running cluster after
// every mistake that can be made with the command.
func TestRebuild_WritesWhatTheNodesRemember(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	dir := filepath.Join(t.TempDir(), "store")
	refused := func(a asker, status int, say string, words ...string) {
		t.Helper()
		code, out, said := a.run(append([]string{"geo-config", "rebuild"}, words...)...)
		if code != status || !strings.Contains(said, say) {
			t.Errorf("%q: status %d, %s%s; want %d and %q", words, code, out, said, status, say)
		}
	}
	refused(askerOf(t, c, "ann"), fault.ExitPermission, "only an administrator", "--data", dir)
	refused(a, fault.ExitRefused, "nothing is lost", "--data", dir)
	c.Away(true)
	refused(a, fault.ExitUsage, "seven is no slice", "--data", dir, "--accept-loss", "seven")
	refused(a, fault.ExitNotFound, "no node that answered knows this slice", "--data", dir, "--accept-loss", "99")
	refused(a, fault.ExitUsage, "name the database")
	var plan rebuiltView
	a.json(&plan, "geo-config", "rebuild", "--data", dir, "--dry-run")
	if _, err := os.Stat(dir); !os.IsNotExist(err) || plan.Generation != 2 || !plan.DryRun {
		t.Errorf("a dry run: %+v, %v", plan, err)
	}
	full := filledStore(t)
	refused(a, fault.ExitRefused, "holds cluster other", "--data", full)
	for _, n := range c.Nodes {
		if floor := n.Server().Directory().Floor(); floor != 1 {
			t.Errorf("a rebuild that was refused had a node promise generation %d", floor)
		}
	}

	var v rebuiltView
	a.json(&v, "geo-config", "rebuild", "--data", dir)
	if v.Generation != 2 || v.Answered != 3 || len(v.Silent)+len(v.Strangers) != 0 || len(v.Slices) != 1 || v.Slices[0].Verdict != rebuild.Kept || v.Server == "" {
		t.Errorf("got %+v", v)
	}
	sameTables(t, c, dir)
	refused(a, fault.ExitRefused, "holds cluster test at generation 2", "--data", dir)
	var again rebuiltView
	a.json(&again, "geo-config", "rebuild", "--data", filepath.Join(t.TempDir(), "again"))
	if again.Generation != 3 {
		t.Errorf("the second rebuild is of generation %d, want 3", again.Generation)
	}

	c.Away(false) // the lost store is back
	d := c.Nodes[0].Server().Directory()
	a.await("a refusal", func() bool { return d.Refused() != nil })
	code, out, said := a.run("status")
	if code != 0 || strings.HasPrefix(out, "All well") || !strings.Contains(out, "was replaced") {
		t.Errorf("status: %d, %s%s", code, out, said)
	}
	raise(t, c, 3) // as if it were the one that was rebuilt last, with a slice that waits
	a.await("word of the slice that waits", func() bool {
		code, out, said = a.run("status")
		return code == 0 && strings.Contains(out, "slice 1 waits since geo-config was rebuilt") && !strings.Contains(out, "All well")
	})
}

// raise gives the cluster's store another generation.
func raise(t *testing.T, c *servertest.Cluster, g ids.Generation) {
	t.Helper()
	servertest.Await(t.Context(), t, "the store to change", func() error {
		rows, err := c.Store.Read(t.Context(), geoconfig.Query{})
		if err != nil {
			return err
		}
		rows.Cluster.Generation = g
		_, err = c.Store.Apply(t.Context(), geoconfig.Batch{Key: "raise", Cluster: rows.Cluster})
		return err
	})
}

// filledStore returns the directory of a store that holds another cluster.
func filledStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := embedded.Open(t.Context(), dir)
	if err == nil {
		_, err = s.Apply(t.Context(), geoconfig.Batch{Key: "k", Cluster: &geoconfig.Cluster{ID: "other", Generation: 1}})
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sameTables compares a rebuilt store with the one that the cluster had.
func sameTables(t *testing.T, c *servertest.Cluster, dir string) {
	t.Helper()
	s, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := geoconfig.Query{Sites: true, Nodes: true, Users: true, Slices: 10, Audit: 1}
	got, err := s.Read(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.Store.Read(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Sites) != len(want.Sites) || len(got.Nodes) != len(want.Nodes) || len(got.Users) != len(want.Users) || len(got.Slices) != len(want.Slices) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i, u := range want.Users {
		if got.Users[i].Key != u.Key || got.Users[i].Admin != u.Admin {
			t.Errorf("got user %+v, want %+v", got.Users[i], u)
		}
	}
	if got.Cluster.Secret != want.Cluster.Secret || got.Cluster.Generation != 2 || got.Audit[0].Who != "root" {
		t.Errorf("got %+v by %s", got.Cluster, got.Audit[0].Who)
	}
	for i, r := range want.Slices {
		if got.Slices[i].Active != r.Active || got.Slices[i].Epoch != r.Epoch+rebuild.EpochLeap {
			t.Errorf("got %+v, want %+v", got.Slices[i], r)
		}
	}
}

func TestRebuiltText_SaysWhatToDo(t *testing.T) {
	slice := func(id ids.Slice, v rebuild.Verdict, hopeless bool) rebuild.Slice {
		s := rebuild.Slice{Was: geoconfig.SliceRow{ID: id}, Verdict: v, Hopeless: hopeless}
		if v != rebuild.Kept {
			s.Silent = append(s.Silent, "12D3KooWabcdefgh")
		}
		return s
	}
	v := rebuiltView{Cluster: "c1", Generation: 2, Answered: 2, into: "/data/geo-config.db", Server: "12D3KooWnew",
		Cut:    time.Date(2026, 11, 22, 10, 0, 0, 123_900_000, time.UTC),
		Silent: []silentView{{Node: "12D3KooWabcdefgh", Site: "paris", Why: "does not answer"}},
		Slices: []rebuild.Slice{slice(1, rebuild.Kept, false), slice(2, rebuild.Reduced, false), slice(3, rebuild.Waiting, false), slice(4, rebuild.Waiting, true), slice(5, rebuild.Lossy, false)}}
	want := `Cluster c1, generation 2, from what 2 nodes remember.
Silent: node abcdefgh at paris: does not answer
slice 2  goes on without abcdefgh, which catches up later
slice 3  waits for abcdefgh
slice 4  waits for abcdefgh, its only up-to-date members
slice 5  goes on without abcdefgh; what only that has is lost
1 of 5 slices go on with all their members.
The whole tree as it was then is below .Snapshot=2026-11-22T10:00:00.123Z, for as long as old versions are kept; ` + "`cartwheel snapshot restore`" + ` copies from there.
Written to /data/geo-config.db. Start cartwheeld geo-config with it.
Slices that wait go on as their old members allow. Once silent nodes are back, run ` + "`cartwheel geo-config settle`" + `; where they are gone for good, with --accept-loss.
`
	var out strings.Builder
	if v.write(&out); out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRebuild_FillsADatabase(t *testing.T) {
	url := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(url, []byte(postgrestest.Start(t)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := servertest.Start(t, servertest.Options{})
	c.Away(true)
	a := askerOf(t, c, "root")
	words := []string{"geo-config", "rebuild", "--database-file", url}
	if code, out, said := a.run(words...); code != fault.ExitUsage || !strings.Contains(said, "geo-config init") || c.Nodes[0].Server().Directory().Floor() != 1 {
		t.Errorf("without tables: status %d, %s%s", code, out, said)
	}
	if code, out, said := a.run("geo-config", "init", "--database-file", url); code != 0 {
		t.Fatalf("init: status %d, %s%s", code, out, said)
	}
	var v rebuiltView
	a.json(&v, words...)
	if v.Generation != 2 || v.Answered != 3 || v.Server != "" || len(v.Slices) != 1 {
		t.Errorf("got %+v", v)
	}
	if code, out, said := a.run(words...); code != fault.ExitRefused || !strings.Contains(said, "the database: holds cluster test at generation 2") {
		t.Errorf("once more: status %d, %s%s", code, out, said)
	}
}
