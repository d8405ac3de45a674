package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/bootstrap"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// adminOf serves a cluster's store, and returns the file of its administrator.
func adminOf(t *testing.T, c *servertest.Cluster) string {
	t.Helper()
	host := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 1), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Limits: wire.DefaultLimits(), Times: wiretest.Times()})
	s := serve.Serve(host, c.Store, serve.Options{})
	t.Cleanup(func() { s.Close() })
	file := filepath.Join(filepath.Dir(askerOf(t, c, "root").contact), "admin.json")
	a := bootstrap.Admin{Cluster: servertest.ClusterID, GeoConfig: []string{host.Addresses()[0] + "/p2p/" + host.KeyID()}, Key: "user.key"}
	if err := a.Save(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSliceRecover_GoesOnFromAJunior loses both up-to-date members of the root slice,
// and recovers it from the one that missed the last file. When a lost one returns, it
// has to take the recovered state.
func TestSliceRecover_GoesOnFromAJunior(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"},
		Configure: func(_ int, c *server.Config) { c.Lease, c.Session = time.Second, time.Second }})
	a := askerOf(t, c, "root")
	admin := adminOf(t, c)
	cl := c.Connect("root")
	create := func(name string) {
		t.Helper()
		r, err := cl.Operate(t.Context(), ids.RootSlice, &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: &pb.Create{
			Dir: uint64(ids.RootObject), Name: []byte(name), Mode: tree.TypeRegular | 0o644}}}, nil)
		if err != nil || r.Kind != 0 {
			t.Fatalf("create %s: %v %v", name, r, err)
		}
	}
	inState := func(n *servertest.Node, want geoconfig.MemberState) {
		t.Helper()
		servertest.Await(t.Context(), t, fmt.Sprint(n.Index, " to be ", want), func() error {
			row, err := c.Row(t.Context(), ids.RootSlice)
			if m, _ := row.Member(n.ID()); err == nil && m.State != want {
				err = fmt.Errorf("it is %v", m.State)
			}
			return err
		})
	}
	for _, n := range c.Nodes {
		inState(n, geoconfig.Normal)
	}
	create("kept")
	active := c.Active(ids.RootSlice)
	junior, other := c.Nodes[(active.Index+1)%3], c.Nodes[(active.Index+2)%3]
	junior.Kill()
	inState(junior, geoconfig.Failed)
	create("lost")
	if code, out, said := a.run("slice", "recover", "1", "--admin", admin, "--accept-loss"); code != fault.ExitRefused || !strings.Contains(said, "is up to date and answers") {
		t.Errorf("while members are there: status %d, %s%s", code, out, said)
	}
	active.Kill()
	other.Kill()
	junior.Start()
	if code, out, said := a.run("slice", "recover", "1", "--admin", admin); code != fault.ExitRefused || !strings.Contains(said, "may come back") || !strings.Contains(said, "Lost, too") {
		t.Errorf("without the word: status %d, %s%s", code, out, said)
	}
	var plan, done recovery
	a.json(&plan, "slice", "recover", "1", "--admin", admin, "--dry-run")
	if row, _ := c.Row(t.Context(), ids.RootSlice); row.Active != active.ID() || plan.From.Node != junior.ID() || len(plan.Silent) != 2 {
		t.Fatalf("a dry run: %+v, and the row is %+v", plan, row)
	}
	if age := time.Since(plan.Time); plan.Serial == 0 || plan.Time.IsZero() || age < 0 || age > time.Minute {
		t.Errorf("the last change that is kept was made %v ago", age)
	}
	a.json(&done, "slice", "recover", "1", "--admin", admin, "--accept-loss")
	if row, err := c.Row(t.Context(), ids.RootSlice); err != nil || row.Active != junior.ID() || len(row.Members) != 1 {
		t.Errorf("the row is %+v, %v, want the junior alone", row, err)
	}
	c.AwaitRoot(t.Context())
	create("after")
	active.Start()
	other.Start()
	for _, n := range c.Nodes {
		inState(n, geoconfig.Normal)
		for name, want := range map[string]bool{"kept": true, "lost": false, "after": true} {
			servertest.Await(t.Context(), t, name, func() error {
				if err := n.Server().CheckCopy(ids.RootObject, []byte(name)); (err == nil) != want {
					return fmt.Errorf("node %d: %w, want it there: %v", n.Index, err, want)
				}
				return nil
			})
		}
	}
	rows, err := c.Store.Read(t.Context(), geoconfig.Query{Audit: 100})
	if text, _ := json.Marshal(rows.Audit); err != nil || strings.Count(string(text), `"slice.recover"`) != 1 {
		t.Errorf("the audit log is %s, %v", text, err)
	}
	raise(t, c, 2)
	if code, out, said := a.run("slice", "recover", "1", "--admin", admin, "--accept-loss"); code != fault.ExitRefused || !strings.Contains(said, "geo-config settle") {
		t.Errorf("a slice that waits: status %d, %s%s", code, out, said)
	}
	if code, out, said := a.run("geo-config", "settle", "--admin", admin); code != 0 || !strings.Contains(out, "1 of 1 slices go on") {
		t.Errorf("settling: status %d, %s%s", code, out, said)
	}
	if row, err := c.Row(t.Context(), ids.RootSlice); err != nil || row.Generation != 2 {
		t.Errorf("the row is %+v, %v, want one of generation 2", row, err)
	}
	if code, _, _ := a.run("slice", "recover", "99", "--admin", admin, "--accept-loss"); code != fault.ExitNotFound {
		t.Errorf("a slice that is not there: status %d", code)
	}
}

func TestPlanRecovery_TakesTheFreshestWholeCopy(t *testing.T) {
	row := geoconfig.SliceRow{ID: 7, Active: "a", Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Failed},
		{Node: "c", State: geoconfig.Recovering}, {Node: "d", State: geoconfig.Migrating}}}
	answer := func(id ids.Node, whole bool, applied, commit ids.Serial) asked[[]status.Slice] {
		return asked[[]status.Slice]{id: id, value: []status.Slice{{SliceRow: row, Whole: whole, Applied: applied, Commit: commit}}}
	}
	for name, c := range map[string]struct {
		answers []asked[[]status.Slice]
		from    ids.Node
		known   ids.Serial
		want    fault.Kind
	}{
		"the longest":            {[]asked[[]status.Slice]{answer("b", true, 5, 5), answer("c", true, 8, 9)}, "c", 9, fault.None},
		"an unfinished copy":     {[]asked[[]status.Slice]{answer("b", true, 5, 5), answer("d", false, 90, 90)}, "b", 5, fault.None},
		"a normal one answers":   {[]asked[[]status.Slice]{answer("a", true, 9, 9), answer("b", true, 5, 5)}, "", 0, fault.NotEmpty},
		"a normal one was wiped": {[]asked[[]status.Slice]{answer("a", false, 0, 0), answer("b", true, 5, 5)}, "b", 5, fault.None},
		"nobody has a copy":      {[]asked[[]status.Slice]{answer("d", false, 9, 9), answer("x", true, 9, 9)}, "", 0, fault.NotFound},
	} {
		r, err := planRecovery(row, c.answers, func(ids.Node) ids.Site { return "s" })
		if fault.KindOf(err) != c.want || err == nil && (r.From.Node != c.from || r.Known != c.known || len(r.Silent) != 1) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func TestCheckGone_BelievesNodesThatReachAMember(t *testing.T) {
	r := recovery{Slice: 7, Silent: []member{{Node: "a"}}}
	of := func(id ids.Node, up bool) asked[status.Node] {
		return asked[status.Node]{id: id, value: status.Node{Peers: []status.Peer{{ID: "a", Connected: up}}}}
	}
	for name, c := range map[string]struct {
		answers []asked[status.Node]
		want    fault.Kind
	}{
		"nobody reaches it": {[]asked[status.Node]{of("b", false), of("c", false)}, fault.None},
		"one node does":     {[]asked[status.Node]{of("b", false), of("c", true)}, fault.NotEmpty},
		"it answers, wiped": {[]asked[status.Node]{of("a", false), of("c", true)}, fault.None},
	} {
		if err := r.checkGone(c.answers); fault.KindOf(err) != c.want {
			t.Errorf("%s: got %v, want kind %v", name, err, c.want)
		}
	}
}
