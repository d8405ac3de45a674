//go:build linux

package load

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// contactOf writes the contact file of a cluster.
func contactOf(t *testing.T, c *servertest.Cluster) string {
	t.Helper()
	dir := t.TempDir()
	key, err := c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "user.key"), key, 0o600)
	}
	file := contact.File{Cluster: servertest.ClusterID, UserKey: filepath.Join(dir, "user.key")}
	for _, n := range c.Nodes {
		file.Nodes = append(file.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	path := filepath.Join(dir, "contact.yaml")
	if err == nil {
		err = file.Save(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBoxes_WorkInVolumesAndDirectories does each mix in volumes and in directories of
// one cluster. All that was acknowledged shows.
func TestBoxes_WorkInVolumesAndDirectories(t *testing.T) {
	path := contactOf(t, servertest.Start(t, servertest.Options{}))
	for _, plain := range []bool{false, true} {
		o := BoxOptions{Contact: path, Site: "a", Folder: map[bool]string{false: "/volumes", true: "/plain"}[plain], Plain: plain, Boxes: 2, Planted: 2,
			Sizes: MailSizesBox, Seed: 7, Worker: "w", Workers: 3, Each: 40, Create: 4, Read: 2, Delete: 3}
		if _, err := WorkInBoxes(t.Context(), o); !fault.Is(err, fault.NotFound) {
			t.Errorf("plain %v: before the boxes are made: got %v, want NotFound", plain, err)
		}
		if err := MakeBoxes(t.Context(), o, "/"); err != nil {
			t.Fatal(err)
		}
		r, err := WorkInBoxes(t.Context(), o)
		if err != nil || r.Failed > 0 || len(r.Lost) > 0 {
			t.Fatalf("plain %v: %v, %+v", plain, err, r)
		}
		if len(r.Create) == 0 || len(r.Read) == 0 || len(r.Delete) == 0 || r.Checked == 0 || r.Bytes == 0 || r.Ended <= r.Began {
			t.Errorf("plain %v: something was not done: %+v", plain, r)
		}
	}
}

// lossy are boxes that keep nothing of some names, and forget no deletion.
type lossy struct {
	mu    sync.Mutex
	files map[string][]byte
	loses func(name string) bool
	keeps bool // what is deleted
	wrong bool // reads give something else
}

func (f *lossy) create(_ context.Context, _ int, name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loses == nil || !f.loses(name) {
		f.files[name] = data
	}
	return nil
}

func (f *lossy) read(_ context.Context, _ int, name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, is := f.files[name]
	switch {
	case !is:
		return nil, fault.E(fault.NotFound, "test", name, "")
	case f.wrong:
		return []byte("something else"), nil
	}
	return data, nil
}

func (f *lossy) remove(_ context.Context, _ int, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.keeps {
		delete(f.files, name)
	}
	return nil
}

func (f *lossy) close() {}

// TestBoxes_FindWhatIsLost has boxes that do not do what they acknowledge.
func TestBoxes_FindWhatIsLost(t *testing.T) {
	for want, change := range map[string]func(*lossy){
		"":                          func(*lossy) {},
		"is not there":              func(f *lossy) { f.loses = func(name string) bool { return strings.HasSuffix(name, "3") } },
		"was deleted, and is there": func(f *lossy) { f.keeps = true },
		"holds something else":      func(f *lossy) { f.wrong = true },
	} {
		b := &lossy{files: map[string][]byte{}}
		change(b)
		w := &boxWork{o: BoxOptions{Boxes: 2, Planted: 1, Sizes: SmallSizesBox, Seed: 1, Worker: "w", Create: 4, Delete: 2}, b: b}
		chance := rand.New(rand.NewPCG(1, 1))
		for range 60 {
			w.one(t.Context(), chance)
		}
		if err := w.look(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.r.Lost, "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if w.r.Checked == 0 || len(w.r.Create)+len(w.r.Delete) == 0 {
			t.Errorf("nothing was looked for: %+v", w.r)
		}
	}
}

func TestBoxes_NeedSomethingToDo(t *testing.T) {
	good := BoxOptions{Create: 1, Boxes: 1, Workers: 1, Planted: 1}
	for name, change := range map[string]func(*BoxOptions){
		"no create": func(o *BoxOptions) { o.Create = 0 }, "no box": func(o *BoxOptions) { o.Boxes = 0 }, "no worker": func(o *BoxOptions) { o.Workers = 0 },
		"no file": func(o *BoxOptions) { o.Planted = 0 }, "reads below none": func(o *BoxOptions) { o.Read = -1 },
	} {
		o := good
		change(&o)
		if _, err := WorkInBoxes(t.Context(), o); !fault.Is(err, fault.Usage) {
			t.Errorf("%s: got %v, want a usage error", name, err)
		}
	}
}

// TestBoxSizes_AreThePapers draws the sizes of many files of e-mail, and compares them
// with what BeanFS's paper tells.
func TestBoxSizes_AreThePapers(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	const n = 400_000
	var all, small, below55, below100 float64
	for range n {
		size := float64(MailSizesBox.draw(chance.Float64(), chance.Float64()))
		all += size
		if size < 55e3 {
			below55++
		}
		if size < 100e3 {
			below100++
			small += size
		}
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"below 55 kB", below55 / n, 0.95}, {"below 100 kB", below100 / n, 0.985}, {"bytes of those below 100 kB", small / all, 0.623}} {
		if c.got < c.want-0.01 || c.got > c.want+0.01 {
			t.Errorf("%s: %.3f, want %.3f", c.what, c.got, c.want)
		}
	}
	for range 1000 {
		if size := PhotoSizesBox.draw(chance.Float64(), chance.Float64()); size < 16e3-1 || size > 512e3 {
			t.Fatalf("a photo has %d bytes, want 16 to 512 kB", size)
		}
	}
}
