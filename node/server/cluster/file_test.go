package cluster_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/cluster"
)

// reopened is a directory over the file alone, without a store.
func reopened(t *testing.T, file string) *cluster.Directory {
	t.Helper()
	return open(t, func(o *cluster.Options) { o.File = file })
}

// known is all that a directory answers.
func known(d *cluster.Directory) []any {
	ann, _ := d.User("k1")
	return []any{d.Cluster(), d.Revision(), d.Slices(), d.Nodes(), d.Sites(), ann}
}

func TestFile_KeepsEverythingBetweenLives(t *testing.T) {
	b := newBench(t)
	b.apply(made(7, 8))
	file := filepath.Join(t.TempDir(), "rows.json")
	d := b.open(func(o *cluster.Options) { o.File = file })
	refresh(t, d)
	b.apply(moved(8, 1))
	refresh(t, d) // replaces the file
	if got, want := known(reopened(t, file)), known(d); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("there are %d files beside, want none (%v)", len(left)-1, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v (%v), want 0600: it holds the cluster's secret", info.Mode(), err)
	}
}

func TestFile_IsFollowedFromItsRevision(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "rows.json")
	refresh(t, b.open(func(o *cluster.Options) { o.File = file }))
	b.apply(geoconfig.Batch{Sites: []geoconfig.Site{{Name: "rome"}}})
	var heard told
	d := b.open(func(o *cluster.Options) {
		o.File = file
		heard.hear(o)
	})
	refresh(t, d)
	if len(d.Sites()) != 3 || heard.nodes != 0 || heard.users != 0 {
		t.Errorf("got sites %v and told %+v, want only rome to be new", d.Sites(), heard)
	}
}

func TestFile_ReadsVersion1(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.json")
	const text = `{"version":1,"cluster":{"id":"c1","generation":2,"created_ns":3,"revision":4},"revision":9,
		"sites":[{"name":"paris","revision":5}],
		"nodes":[{"id":"n1","site":"paris","incarnation":2,"revision":6}],
		"slices":[{"id":7,"epoch":3,"active":"n1","members":[{"node":"n1","state":1,"incarnation":2}],"revision":8}],
		"users":[{"name":"ann","key":"k1","uid":1000,"gids":[100],"revision":7}]}`
	write(t, file, text)
	want := []any{
		geoconfig.Cluster{ID: "c1", Generation: 2, CreatedNS: 3, Revision: 4}, ids.Revision(9),
		[]geoconfig.SliceRow{{ID: 7, Epoch: 3, Active: "n1", Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal, Incarnation: 2}}, Revision: 8}},
		[]geoconfig.Node{{ID: "n1", Site: "paris", Incarnation: 2, Revision: 6}},
		[]geoconfig.Site{{Name: "paris", Revision: 5}},
		geoconfig.User{Name: "ann", Key: "k1", UID: 1000, GIDs: []uint32{100}, Revision: 7},
	}
	if got := known(reopened(t, file)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatalf("writing %s: %v", file, err)
	}
}

func TestNew_RefusesAFileItCannotRead(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		want fault.Kind
	}{
		"half a file":     {`{"version":1,"nodes":[`, fault.Corrupt},
		"an empty file":   {"", fault.Corrupt},
		"a later version": {`{"version":2}`, fault.NewerVersion},
	} {
		file := filepath.Join(dir, "rows.json")
		write(t, file, c.text)
		if _, err := cluster.New(cluster.Options{File: file}); !fault.Is(err, c.want) || fault.SubjectOf(err) != file {
			t.Errorf("%s: got %v, want kind %v of the file", name, err, c.want)
		}
	}
	if _, err := cluster.New(cluster.Options{File: dir}); !fault.Is(err, fault.IO) {
		t.Errorf("a folder: got %v, want kind %v", err, fault.IO)
	}
}

func TestFile_IsTriedAgainAfterAFailure(t *testing.T) {
	b := newBench(t)
	folder := filepath.Join(t.TempDir(), "later")
	file := filepath.Join(folder, "rows.json")
	var log bytes.Buffer
	d := b.open(func(o *cluster.Options) {
		o.File, o.Logger = file, slog.New(slog.NewTextHandler(&log, nil))
	})
	refresh(t, d) // the directory goes on without its file
	if d.Revision() != 1 || log.Len() == 0 {
		t.Errorf("got revision %d and the log %q, want 1 and a line about the file", d.Revision(), &log)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	refresh(t, d)
	if got := reopened(t, file); got.Revision() != 1 || len(got.Nodes()) != 3 {
		t.Errorf("the file is of revision %d with %d nodes, want 1 with 3", got.Revision(), len(got.Nodes()))
	}
}

func TestFile_ReplacesWhatACrashLeft(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "rows.json")
	write(t, file+".new", `{"version":1,"nodes":[{"id":"`) // the file itself was not written yet
	d := b.open(func(o *cluster.Options) { o.File = file })
	if d.Revision() != 0 {
		t.Errorf("half a file counts: revision %d", d.Revision())
	}
	refresh(t, d)
	if got := reopened(t, file); got.Revision() != 1 {
		t.Errorf("the file is of revision %d, want 1", got.Revision())
	}
}

func TestRun_KeepsWhatAPeerToldAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		file := filepath.Join(t.TempDir(), "rows.json")
		d := b.open(func(o *cluster.Options) { o.File = file })
		stop := follow(t, d)
		synctest.Wait()
		if got := reopened(t, file); got.Revision() != 1 {
			t.Errorf("the file is of revision %d, want 1", got.Revision())
		}
		d.Learn(row(7, 2))
		stop()
		if r, ok := reopened(t, file).Slice(7); !ok || r.Epoch != 2 {
			t.Errorf("got %+v, %v, want slice 7 in epoch 2", r, ok)
		}
	})
}
