package command

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	gslices "slices"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
)

// newWalk is a walk over files whose names say what they are: the letter before a dash
// stands for a file with several names, "7" begins those of slice 7, and "away" is another
// file system. The name of each other file is its number.
func newWalk(t *testing.T) *walk {
	t.Helper()
	numbers := map[string]uint64{}
	return &walk{ctx: t.Context(), open: os.Open, slices: map[ids.Slice]*treePart{}, linked: map[uint64]bool{},
		object: func(info fs.FileInfo) (object, bool) {
			name, slice := info.Name(), ids.Slice(1)
			if strings.HasPrefix(name, "7") {
				slice = 7
			}
			o := object{links: 1, stored: uint64(info.Size() / 2)}
			if first, _, linked := strings.Cut(name, "-"); linked {
				name, o.links = first, 2
			}
			if name == "away" {
				o.device = 1
			}
			if numbers[name] == 0 {
				numbers[name] = uint64(len(numbers) + 20)
			}
			o.number = uint64(ids.NewObject(slice, numbers[name]))
			return o, true
		}}
}

// plantTree makes files of some sizes below a directory; 0 makes a directory.
func plantTree(t *testing.T, files map[string]int) string {
	t.Helper()
	root := t.TempDir()
	for name, n := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && n == 0 {
			err = os.MkdirAll(path, 0o700)
		} else if err == nil {
			err = os.WriteFile(path, make([]byte, n), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWalk_CountsEachObjectOnceAndInItsSlice(t *testing.T) {
	root := plantTree(t, map[string]int{"a": 10, "dir/b": 20, "dir/l-1": 100, "dir/sub/l-2": 100, "dir/7c": 40, "7dir/d": 80, "away/e": 1000})
	if err := os.Symlink("a", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	w := newWalk(t)
	if err := w.run(root); err != nil {
		t.Fatal(err)
	}
	v := w.view("/m")
	want := []treePart{{Files: 4, Directories: 3, Others: 1, Bytes: 210, Stored: 105}, {Files: 1, Directories: 1, Bytes: 40, Stored: 20}}
	if len(v.Slices) != 2 || v.Slices[0].Slice != 1 || v.Slices[0].Tree != want[0] || v.Slices[1].Slice != 7 || v.Slices[1].Tree != want[1] {
		t.Errorf("got %+v, want %+v", v.Slices, want)
	}
	if sum := (treePart{Files: 5, Directories: 4, Others: 1, Bytes: 250, Stored: 125}); v.Tree != sum {
		t.Errorf("got %+v in all, want %+v", v.Tree, sum)
	}
	if v.OtherMounts != 1 || v.Unread != 0 {
		t.Errorf("got %d other mounts and %d directories unread, want 1 and 0", v.OtherMounts, v.Unread)
	}
}

func TestWalk_LooksAtManyNamesInTurn(t *testing.T) {
	files := map[string]int{}
	for i := range 2*namesAtOnce + 5 {
		files[fmt.Sprint("f", i)] = 1
	}
	w := newWalk(t)
	if err := w.run(plantTree(t, files)); err != nil {
		t.Fatal(err)
	}
	if got := w.view("").Tree.Files; got != uint64(len(files)) {
		t.Errorf("got %d files, want %d", got, len(files))
	}
}

func TestWalk_NamesWhatItMayNotRead(t *testing.T) {
	root := plantTree(t, map[string]int{"a": 10, "secret/b": 20, "gone/c": 40})
	w := newWalk(t)
	w.open = func(path string) (*os.File, error) {
		switch filepath.Base(path) {
		case "secret":
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		case "gone":
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return os.Open(path)
	}
	if err := w.run(root); err != nil {
		t.Fatal(err)
	}
	v := w.view(root)
	if v.Unread != 1 || v.UnreadFirst != filepath.Join(root, "secret") || v.Tree.Files != 1 || v.Tree.Directories != 3 {
		t.Errorf("got %+v, want one file, three directories, and secret unread", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w = newWalk(t)
	w.ctx = ctx
	if err := w.run(root); !fault.Is(err, fault.Canceled) {
		t.Errorf("given up: got %v, want Canceled", err)
	}
}

// TestSpace_AsksEveryReplicaOfTheSlicesOfATree asks a cluster of three nodes, as an
// administrator and as a user, and then without one of the nodes.
func TestSpace_AsksEveryReplicaOfTheSlicesOfATree(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	var list []sliceView
	a.await("the root's slice to be whole", func() bool { a.json(&list, "slice", "ls"); return len(list) == 1 && list[0].lacks() == "" })
	cl := c.Connect("root")
	for _, op := range []*pb.Operation{
		{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte("f"), Mode: tree.TypeRegular | 0o600}}},
		{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte("f")}}},
	} {
		if r, err := cl.Operate(t.Context(), ids.RootSlice, op, nil); err != nil || r.Kind != 0 {
			t.Fatalf("%v %v", r, err)
		}
	}
	ask := func(user string) (spaceView, error) {
		v := spaceView{Slices: []sliceSpace{{Slice: ids.RootSlice}}}
		e := &env{ctx: t.Context(), stdio: Stdio{Err: &strings.Builder{}}}
		e.flags.Contact = askerOf(t, c, user).contact
		return v, e.askSlices(&v)
	}
	a.await("three normal replicas with the root directory and a deleted file", func() bool {
		v, err := ask("root")
		if err != nil || v.Withheld || v.All.Replicas != 3 || len(v.Slices[0].Replicas) != 3 {
			t.Fatalf("got %+v, %v, want three replicas", v, err)
		}
		return !gslices.ContainsFunc(v.Slices[0].Replicas, func(r replicaSpace) bool {
			return r.Site == "" || r.State != "N" || r.Objects != 1 || r.Deleted.Count != 1 || r.Error != ""
		})
	})
	if v, err := ask("ann"); err != nil || !v.Withheld || v.All.Replicas != 0 || len(v.Slices[0].Replicas) != 0 {
		t.Errorf("a user got %+v, %v, want the figures withheld", v, err)
	}
	for _, n := range c.Nodes {
		if n.ID() != list[0].Active.Node {
			n.Stop()
			break
		}
	}
	if v, err := ask("root"); err != nil || v.All.Replicas != 2 {
		t.Errorf("without a node: got %+v, %v, want the sum of two", v.All, err)
	}
}

func TestSpaceText_SaysWhatIsOfThePathAndWhatIsNot(t *testing.T) {
	tokyo, oslo := member{Node: "12D3KooWabcdefgh", Site: "tokyo", State: "N"}, member{Node: "12D3KooWijklmnop", Site: "oslo", State: "R"}
	usage := tree.Usage{Named: tree.Amount{Count: 4, Bytes: 4096}, Repeated: 1024, Older: tree.Amount{Count: 1, Bytes: 512}, Waiting: tree.Amount{Count: 1, Bytes: 100},
		Deleted: tree.Amount{Count: 2, Bytes: 2048}, Replaced: tree.Amount{Count: 3, Bytes: 300}, Missing: 5, Unwalked: 2, WaitingWalks: 1}
	v := spaceView{Path: "/m", Tree: treePart{3, 2, 1, 5000, 4608}, Unread: 1, UnreadFirst: "/m/secret", OtherMounts: 1,
		Slices: []sliceSpace{{Slice: 7, Tree: treePart{3, 2, 1, 5000, 4608}, Replicas: []replicaSpace{
			{member: tokyo, Objects: 9, Stored: 6000, Usage: usage}, {member: oslo, Error: "it does not answer"}}}}}
	v.sum()
	var out strings.Builder
	v.text(&out)
	want := `/m
  has     3 files, 2 directories, 1 others
  size    4.9 KiB
  stored  4.5 KiB, without holes and before deduplication
Not counted: 1 directories that cannot be read, such as /m/secret
Not counted: 1 directories that are other file systems

SLICE  FILES  DIRECTORIES  SIZE     STORED
7      3      2            4.9 KiB  4.5 KiB

The figures above are of this tree. Those below are of whole slices, with what other trees have in them.
SLICE  REPLICA            STATE  LIVE     CHUNKS   SHARING SAVES  DELETED     OLDER     OLDER ALONE  WAITING
7      tokyo (…abcdefgh)  N      5.9 KiB  4.0 KiB  1.0 KiB        2: 2.0 KiB  3: 300 B  512 B        100 B
all    1 replicas                5.9 KiB  4.0 KiB  1.0 KiB        2: 2.0 KiB  3: 300 B  512 B        100 B
Slice 7 at tokyo (…abcdefgh) lacks 5 chunks that follow or are sought
Not in the sum: slice 7 at oslo (…ijklmnop): it does not answer
Slice 7: CHUNKS has those of 2 contents that were deleted or replaced as a whole, 1 of which wait for collection
` + spaceKey + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	v.Withheld = true
	out.Reset()
	v.text(&out)
	if text := out.String(); strings.Contains(text, "tokyo") || !strings.Contains(text, "is told to administrators") {
		t.Errorf("to a user: got\n%s", text)
	}
}
