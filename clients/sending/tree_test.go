//go:build linux || darwin

package sending

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"golang.org/x/sys/unix"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// noise is content that is the same at each call.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewPCG(1, 2)
	for i := range b {
		b[i] = byte(r.Uint64())
	}
	return b
}

// world is a directory with what it was at the snapshots "one", "two" and so on, where a
// mount shows them.
type world struct {
	t   *testing.T
	dir string
	xs  bool // the file system has extended attributes
}

// plant makes a world with the snapshot "one".
func plant(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	root := w.at("one")
	must(t, os.Mkdir(root, 0o755), os.Mkdir(filepath.Join(root, "a"), 0o750), os.Mkdir(filepath.Join(root, "a/deep"), 0o755), os.Mkdir(filepath.Join(root, "b"), 0o755), os.Mkdir(filepath.Join(root, "gone"), 0o755),
		os.Mkdir(filepath.Join(root, "quiet"), 0o755))
	sparse := make([]byte, 6*pieceBytes+10)
	copy(sparse, noise(pieceBytes))
	copy(sparse[4*pieceBytes:], noise(100))
	for name, data := range map[string][]byte{
		"a/small": []byte("small"), "a/sparse": sparse, "a/empty": nil, "a/hole": make([]byte, 3*pieceBytes), "a.c": []byte("its place is behind a/"),
		"a/deep/kept": []byte("never changed"), "b/file": noise(2*pieceBytes + 7), "b/becomes a directory": []byte("x"), "gone/one": []byte("1"), "gone/two": []byte("2"), "locked": []byte("l"),
		"b/was apart": []byte("apart"), "quiet/file": []byte("before"),
	} {
		must(t, os.WriteFile(filepath.Join(root, name), data, 0o640))
	}
	must(t, os.Link(filepath.Join(root, "a/small"), filepath.Join(root, "b/other name")), os.Link(filepath.Join(root, "a/small"), filepath.Join(root, "b/third")),
		os.Symlink("../a/small", filepath.Join(root, "b/link")), os.Mkdir(filepath.Join(root, "b/becomes a file"), 0o755),
		os.WriteFile(filepath.Join(root, "b/becomes a file/x"), []byte("x"), 0o600),
		unix.Mkfifo(filepath.Join(root, "b/pipe"), 0o600), os.Chmod(filepath.Join(root, "locked"), 0o4711))
	w.xs = unix.Setxattr(filepath.Join(root, "a/small"), "user.note", []byte("old"), 0) == nil
	w.settle(root)
	return w
}

// settle gives everything times that are not now.
func (w *world) settle(root string) {
	w.t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	must(w.t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		at = at.Add(time.Second)
		if err != nil {
			return err
		}
		return setModified(path, at)
	}))
}

// at is where a snapshot is.
func (w *world) at(name string) string { return earlier.At(w.dir, name) }

// change makes the snapshot "two" of "one", with changes of every kind.
func (w *world) change() {
	w.t.Helper()
	t, root := w.t, w.at("two")
	w.receive(w.send("one", ""), root)
	must(t, os.Remove(root+receivedSuffix))
	p := func(name string) string { return filepath.Join(root, name) }
	f, err := os.OpenFile(p("b/file"), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("overwritten"), pieceBytes+5)
	must(t, err, f.Close(), os.RemoveAll(p("gone")), os.Remove(p("b/becomes a directory")), os.Mkdir(p("b/becomes a directory"), 0o711),
		os.WriteFile(p("b/becomes a directory/inside"), []byte("new"), 0o600), os.RemoveAll(p("b/becomes a file")), os.WriteFile(p("b/becomes a file"), []byte("new"), 0o600),
		os.Remove(p("b/link")), os.Symlink("elsewhere", p("b/link")), os.Chmod(p("a.c"), 0o600), os.Truncate(p("a/sparse"), 4*pieceBytes+3),
		os.Remove(p("b/was apart")), os.Link(p("a/deep/kept"), p("b/was apart")), os.WriteFile(p("quiet/file"), []byte("afterwards"), 0o640),
		os.Link(p("a/empty"), p("b/empty too")), os.Chmod(p("a"), 0o700), os.Mkdir(p("new"), 0o755), os.WriteFile(p("new/file"), []byte("new"), 0o644),
		os.Remove(p("b/pipe")), os.WriteFile(p("b/pipe"), []byte("no pipe"), 0o644))
	small, err := look(p("a/small")) // a name of it becomes another file, with the same bytes and attributes
	must(t, err, os.Remove(p("b/third")), os.WriteFile(p("b/third"), []byte("small"), 0o640))
	o, err := small.object("b/third")
	must(t, err, dress(p("b/third"), o, false))
	if w.xs {
		must(t, unix.Setxattr(p("a.c"), "user.note", []byte("new"), 0))
	}
	later := time.Date(2026, 4, 1, 12, 0, 0, 5, time.UTC)
	for _, name := range []string{"", "a", "b", "b/file", "b/becomes a directory", "b/becomes a directory/inside", "b/becomes a file", "new", "new/file", "b/link", "quiet/file", "b/pipe"} {
		must(t, setModified(p(name), later))
	}
}

// source is what is sent.
func (w *world) source(name, since string) Source {
	times := map[string]hlc.Time{"one": 100, "two": 200, "three": 300}
	return Source{Path: w.dir, Root: "/tree", Snapshot: name, Since: since, Moment: func(path string) (earlier.Moment, error) {
		for name, at := range times {
			if path == w.at(name) {
				return earlier.Moment{Time: at, Object: 7}, nil
			}
		}
		return earlier.Moment{}, fault.E(fault.NotFound, "", path, "")
	}}
}

// send returns a stream.
func (w *world) send(name, since string) []byte {
	w.t.Helper()
	var out bytes.Buffer
	sent, err := Send(w.t.Context(), &out, 0, w.source(name, since))
	must(w.t, err)
	if sent.Size != int64(out.Len()) {
		w.t.Errorf("it says %d bytes, and wrote %d", sent.Size, out.Len())
	}
	return out.Bytes()
}

// try receives a stream.
func (w *world) try(stream []byte, to string, from int64, dry bool) (Received, error) {
	return Receive(w.t.Context(), bytes.NewReader(stream), Place{Path: to, From: from, DryRun: dry, unsynced: true})
}

// receive receives a stream that fits.
func (w *world) receive(stream []byte, to string) Received {
	w.t.Helper()
	got, err := w.try(stream, to, 0, false)
	must(w.t, err)
	if left, err := exists(to + receivingSuffix); err != nil || left {
		w.t.Errorf("something is left beside %s: %v", to, err)
	}
	return got
}

// described tells of each path below a root what there is to know.
func described(t *testing.T, root string) map[string]string {
	t.Helper()
	out, first := map[string]string{}, map[uint64]string{}
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := look(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		o, err := f.object(name)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%o %d:%d %d %v %q", o.mode, o.uid, o.gid, o.size, o.modified().UTC(), o.target)
		for _, x := range o.xattrs {
			text += fmt.Sprintf(" %s=%x", x.name, x.value)
		}
		if f.isRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		if !f.isDir() {
			if first[f.Number] == "" {
				first[f.Number] = name
			}
			text += fmt.Sprintf(" %d names, of %s", f.Links, first[f.Number])
		}
		out[name] = text
		return nil
	}))
	return out
}

// same wants a tree to be as described.
func same(t *testing.T, what, root string, want map[string]string) {
	t.Helper()
	got := described(t, root)
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if got[name] != want[name] {
			t.Errorf("%s: %s is\n  %q, want\n  %q", what, name, got[name], want[name])
		}
	}
}

// ends returns where the records of a stream end.
func ends(t *testing.T, stream []byte) []int64 {
	t.Helper()
	r := reader{in: bytes.NewReader(stream)}
	_, err := r.begin()
	must(t, err)
	out := []int64{r.end}
	for {
		rec, err := r.next()
		must(t, err)
		out = append(out, r.end)
		if rec.kind == recordEnd {
			return out
		}
	}
}

// absent wants nothing at a path.
func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s: got %v, want nothing there", path, err)
	}
}

// refused wants an error of a kind that says something.
func refused(t *testing.T, what string, err error, kind fault.Kind, says string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Explain(err), says) {
		t.Errorf("%s: got %v, want %v that says %q", what, err, kind, says)
	}
}

// failing fails behind so many bytes.
type failing struct {
	in   io.Reader
	left int
}

func (f *failing) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, errors.New("the line is gone")
	}
	n, err := f.in.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}
