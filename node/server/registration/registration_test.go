package registration

import (
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// fakeStore has rows, and refuses the first batches.
type fakeStore struct {
	rows    geoconfig.Rows
	refuse  fault.Kind
	refused int // how many batches it refuses yet
	batches []geoconfig.Batch
}

func (s *fakeStore) Read(context.Context, geoconfig.Query) (geoconfig.Rows, error) {
	return s.rows, nil
}

func (s *fakeStore) Apply(_ context.Context, b geoconfig.Batch) (ids.Revision, error) {
	s.batches = append(s.batches, b)
	if s.refused > 0 {
		s.refused--
		return 0, fault.E(s.refuse, "", "", "")
	}
	return 1, nil
}

// fakeRoster knows the cluster's secret, and its nodes.
type fakeRoster struct {
	secret    string
	nodes     []ids.Node
	away      time.Time
	refreshed int
}

func (r *fakeRoster) Node(id ids.Node) (geoconfig.Node, bool) {
	return geoconfig.Node{ID: id}, slices.Contains(r.nodes, id)
}

func (r *fakeRoster) Cluster() geoconfig.Cluster { return geoconfig.Cluster{Secret: r.secret} }

func (r *fakeRoster) Away() time.Time { return r.away }

func (r *fakeRoster) Refresh(context.Context) error {
	r.refreshed++
	return nil
}

func newRegistrar(s *fakeStore, r *fakeRoster) *Registrar {
	return New(Options{Self: "a", Site: "here", Store: s, Roster: r, Key: func(kind string) string { return kind },
		Describe: func(n *geoconfig.Node) { n.Version = "new" }, Logger: slog.New(slog.DiscardHandler)})
}

func TestRegister_AddsWhatIsMissing(t *testing.T) {
	s, r := &fakeStore{rows: geoconfig.Rows{Cluster: &geoconfig.Cluster{ID: "x"}}}, &fakeRoster{}
	if err := newRegistrar(s, r).Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[0]
	if len(s.batches) != 1 || len(b.Sites) != 1 || len(b.Nodes) != 1 || b.Cluster == nil || len(b.Cluster.Secret) == 0 {
		t.Errorf("got %+v, want a site, a node and a secret", s.batches)
	}
	if s.rows.Cluster.Secret != "" || r.refreshed != 1 {
		t.Errorf("the row that was read changed, or the configuration was read %d times anew, want once", r.refreshed)
	}
}

func TestRegister_KeepsWhatIsThere(t *testing.T) {
	s := &fakeStore{rows: geoconfig.Rows{Cluster: &geoconfig.Cluster{ID: "x", Secret: "s"}, Sites: []geoconfig.Site{{Name: "here"}},
		Nodes: []geoconfig.Node{{ID: "b"}, {ID: "a", Incarnation: 7, Version: "old"}}}}
	r := &fakeRoster{secret: "s"}
	if err := newRegistrar(s, r).Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[0]
	if len(b.Sites) != 0 || b.Cluster != nil || len(b.Nodes) != 1 || b.Nodes[0].Incarnation != 7 || b.Nodes[0].Version != "new" || r.refreshed != 0 {
		t.Errorf("got %+v, want the node's row alone, on top of the one that is there", b)
	}
}

func TestRegister_WritesAnewAfterAConflict(t *testing.T) {
	s, r := &fakeStore{refuse: fault.Conflict, refused: 3}, &fakeRoster{secret: "s"}
	if err := newRegistrar(s, r).Register(t.Context()); err != nil || len(s.batches) != 4 {
		t.Errorf("got %d batches, %v, want four", len(s.batches), err)
	}
	s = &fakeStore{refuse: fault.Conflict, refused: 1000}
	if err := newRegistrar(s, r).Register(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v where every batch conflicts, want a conflict", err)
	}
}

func TestRegister_GoesOnWithoutTheStoreOnceKnown(t *testing.T) {
	s, r := &fakeStore{}, &fakeRoster{secret: "s", nodes: []ids.Node{"a"}, away: time.Unix(1, 0)}
	if err := newRegistrar(s, r).Register(t.Context()); err != nil || len(s.batches) != 0 {
		t.Errorf("got %d batches, %v while the store is away, want none", len(s.batches), err)
	}
	s, r.away = &fakeStore{refuse: fault.Unreachable, refused: 1}, time.Time{}
	if err := newRegistrar(s, r).Register(t.Context()); err != nil || len(s.batches) != 1 {
		t.Errorf("got %d batches, %v where the store is lost, want one try", len(s.batches), err)
	}
}

// listening is a host that listens at a network address and at a socket.
type listening struct{}

func (listening) ListenLocal(string, fs.FileMode) error { return nil }

func (listening) Addresses() []string {
	return []string{"/ip4/10.0.0.1/tcp/7400", "/unix/run/node.sock"}
}

func TestAdvertised_KeepsTheSockets(t *testing.T) {
	e := &Endpoint{Host: listening{}}
	if got := e.Advertised(); !slices.Equal(got, listening{}.Addresses()) {
		t.Errorf("got %q, want where the host listens", got)
	}
	e.Advertise = []string{"/ip4/192.0.2.1/tcp/9"}
	if got, want := e.Advertised(), []string{"/ip4/192.0.2.1/tcp/9", "/unix/run/node.sock"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSocket_IsBesideTheDataWhereItFits(t *testing.T) {
	if wire.MaxSocketPath == 0 {
		t.Skip("this system has no such sockets")
	}
	dir := filepath.Join(t.TempDir(), "d")
	for _, c := range []struct {
		name, data, socket, want string
		mode                     fs.FileMode
	}{
		{"the default", "/d", "", "/d/sock/wire.sock", wire.PrivateSocket},
		{"the operator's", "/d", "/run/x.sock", "/run/x.sock", wire.SharedSocket},
		{"none", "/d", NoSocket, "", 0},
		{"a long path", "/" + strings.Repeat("x", 200), "", filepath.Join(dir, "cartwheel-a", "wire.sock"), wire.PrivateSocket},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", dir)
			e := &Endpoint{Self: "a", Data: c.data, Socket: c.socket}
			if path, mode := e.socket(); path != c.want || mode != c.mode {
				t.Errorf("got %s with mode %v, want %s with %v", path, mode, c.want, c.mode)
			}
		})
	}
}

func TestRegister_RaisesTheLevelThatAllKnow(t *testing.T) {
	for _, c := range []struct {
		name            string
		now, other      int
		incarnation     ids.Incarnation
		secret          string
		batches, raised int
		want            fault.Kind
	}{
		{"all know more", 1, 3, 1, "s", 2, 2, fault.None},
		{"another one knows less", 1, 1, 1, "s", 1, 0, fault.None},
		{"another one never started", 1, 0, 0, "s", 2, 2, fault.None},
		{"it is that already", 2, 2, 1, "s", 1, 0, fault.None},
		{"the secret comes first", 1, 2, 1, "", 1, 0, fault.None},
		{"this program is too old", 3, 3, 1, "s", 0, 0, fault.NewerVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &fakeStore{rows: geoconfig.Rows{Cluster: &geoconfig.Cluster{ID: "x", Secret: c.secret, Feature: c.now},
				Nodes: []geoconfig.Node{{ID: "b", Feature: c.other, Incarnation: c.incarnation}}}}
			r := newRegistrar(s, &fakeRoster{secret: "s"})
			r.o.Feature = 2
			if err := r.Register(t.Context()); fault.KindOf(err) != c.want {
				t.Fatalf("got %v, want kind %v", err, c.want)
			}
			if len(s.batches) != c.batches || c.batches > 0 && s.batches[0].Nodes[0].Feature != 2 {
				t.Fatalf("got %+v, want %d batches, the first with the node's level", s.batches, c.batches)
			}
			if c.raised > 0 && s.batches[1].Cluster.Feature != c.raised {
				t.Errorf("got level %d, want %d", s.batches[1].Cluster.Feature, c.raised)
			}
		})
	}
}
