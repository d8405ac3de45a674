//go:build linux

package cartwheel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// counted counts the requests that a node gets from clients, but for sessions.
func counted(n *servertest.Node) *atomic.Int64 {
	var asked atomic.Int64
	n.Server().Host().SetFilter(func(_ string, class wire.Class, m wire.Method) wire.Verdict {
		if class != wire.Beacon && m != 0 && m != method.Hello {
			asked.Add(1)
		}
		return wire.Verdict{}
	})
	return &asked
}

// making is an open new file.
type making struct {
	t  *testing.T
	cl *cartwheel.Client
	e  mount.Entry
	h  mount.Handle
}

// begin makes a file and leaves it open.
func begin(t *testing.T, cl *cartwheel.Client, dir mount.Inode, name, content string) *making {
	t.Helper()
	ctx := context.Background()
	e, o, err := cl.Create(ctx, nobody, dir, name, 0o640, mount.OpenReadWrite|mount.OpenExclusive)
	if err == nil && content != "" {
		_, err = cl.Write(ctx, nobody, e.Node, o.Handle, 0, []byte(content), 0)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &making{t, cl, e, o.Handle}
}

// end closes it.
func (m *making) end() error {
	err := m.cl.Flush(context.Background(), nobody, m.e.Node, m.h, 1)
	m.cl.Release(m.e.Node, m.h, 1, false)
	return err
}

func (m *making) done() {
	m.t.Helper()
	if err := m.end(); err != nil {
		m.t.Errorf("closing: %v", err)
	}
}

// ownDir makes a directory that is exclusively the client's, with room for IDs.
func ownDir(t *testing.T, cl *cartwheel.Client, name string) mount.Inode {
	t.Helper()
	d, err := cl.Mkdir(context.Background(), nobody, mount.Root, name, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	return d.Node
}

// TestExclusive_AFileIsOneOperation counts what files cost that a client makes
// in an exclusive directory.
func TestExclusive_AFileIsOneOperation(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	d := ownDir(t, cl, "d")
	asked := counted(c.Nodes[0])
	costs := func(what string, want int64) {
		t.Helper()
		if n := asked.Swap(0); n != want {
			t.Errorf("%s cost %d requests, want %d", what, n, want)
		}
	}
	m := begin(t, cl, d, "f", "content")
	costs("an open file", 0)
	if e, err := cl.Lookup(ctx, nobody, d, "f"); err != nil || e.Node != m.e.Node || e.Attr.Size != 7 || e.Attr.Mode&0o777 != 0o640 {
		t.Errorf("before it is closed: %+v, %v", e, err)
	}
	if got := get(t, cl, d, "f"); got != "content" {
		t.Errorf("before it is closed another open reads %q", got)
	}
	costs("looking at it", 0)
	m.done()
	costs("closing it", 1)
	begin(t, cl, d, "empty", "").done()
	costs("an empty file", 1)
	m = begin(t, cl, d, "mail", "a letter")
	if err := cl.Fsync(ctx, nobody, m.e.Node, m.h, false); err != nil {
		t.Fatal(err)
	}
	m.done()
	if err := cl.Rename(ctx, nobody, d, "mail", d, "delivered", 0); err != nil {
		t.Fatal(err)
	}
	costs("delivering a mail", 1)
	quorum, err := cl.Lookup(ctx, nobody, d, ".SyncLevel=quorum")
	if err != nil {
		t.Fatal(err)
	}
	m = begin(t, cl, quorum.Node, "hasty", "content")
	costs("an open file that need not be on all disks", 0)
	m.done()
	costs("closing that, behind the name of the mail", 2)
	for i := range 100 {
		begin(t, cl, d, fmt.Sprint("n", i), strings.Repeat("x", i*500)).done()
	}
	costs("a hundred files", 100)
	m = begin(t, cl, d, "removed", "x")
	if err := cl.Unlink(ctx, nobody, d, "removed"); err != nil {
		t.Error(err)
	}
	m.done()
	if e, err := cl.Lookup(ctx, nobody, d, "removed"); err != nil || e.Node != 0 {
		t.Errorf("what was removed while it was new is there: %+v, %v", e, err)
	}
	c.Nodes[0].Server().Host().SetFilter(nil)
	cl.DropCaches(context.Background())
	for i := range 100 {
		if got := get(t, cl, d, fmt.Sprint("n", i)); got != strings.Repeat("x", i*500) {
			t.Errorf("n%d has %d bytes, want %d", i, len(got), i*500)
		}
	}
}

// TestExclusive_LargeFilesAreReadBack makes files whose chunks go first.
func TestExclusive_LargeFilesAreReadBack(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	d := ownDir(t, cl, "d")
	content := strings.Repeat("0123456789abcdef", 1<<16)
	begin(t, cl, d, "f", content).done()
	m := begin(t, cl, d, "g", "")
	for i := range 40 {
		if _, err := cl.Write(context.Background(), nobody, m.e.Node, m.h, int64(i*len(content)), []byte(content), 0); err != nil {
			t.Fatal(err)
		}
	}
	m.done()
	other := clientOf(t, c, "a")
	if got := get(t, other, d, "f"); got != content {
		t.Errorf("f has %d bytes, want %d", len(got), len(content))
	}
	if got := get(t, other, d, "g"); got != strings.Repeat(content, 40) {
		t.Errorf("g has %d bytes, want %d", len(got), 40*len(content))
	}
}

// TestExclusive_OthersSeeOpenFiles looks from another client at files that were
// made and not closed. It finds each, in whatever way.
func TestExclusive_OthersSeeOpenFiles(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) { conf.Shared = 0 }})
	a, b := clientOf(t, c, "a"), clientOf(t, c, "a")
	ctx := context.Background()
	for i, see := range []func(d mount.Inode, name string) error{
		func(d mount.Inode, name string) error {
			e, err := b.Lookup(ctx, nobody, d, name)
			if err == nil && e.Node == 0 {
				err = errors.New("a lookup does not find it")
			}
			return err
		},
		func(d mount.Inode, name string) error {
			names, err := list(b, d)
			if err == nil && !strings.Contains(names, name) {
				err = fmt.Errorf("the listing is %s", names)
			}
			return err
		},
		func(d mount.Inode, name string) error {
			if _, _, err := b.Create(ctx, nobody, d, name, 0o600, mount.OpenWrite|mount.OpenExclusive); !fault.Is(err, fault.Exists) {
				return fmt.Errorf("an exclusive open answers %w", err)
			}
			return nil
		},
		func(d mount.Inode, name string) error {
			if _, err := b.Mkdir(ctx, nobody, d, name, 0o700); !fault.Is(err, fault.Exists) {
				return fmt.Errorf("mkdir answers %w", err)
			}
			return nil
		},
		func(d mount.Inode, name string) error { return b.Unlink(ctx, nobody, d, name) },
		func(d mount.Inode, name string) error { return b.Rename(ctx, nobody, d, name, mount.Root, "moved", 0) },
		func(d mount.Inode, _ string) error {
			e, err := b.GetAttr(ctx, nobody, d, 0)
			if err == nil && time.Since(time.Unix(0, e.Attr.Mtime)) > time.Minute {
				err = errors.New("the directory's time stands still")
			}
			return err
		},
	} {
		d := ownDir(t, a, fmt.Sprint("d", i))
		m := begin(t, a, d, "new", "content")
		if a.Pending() != 1 {
			t.Fatal("the file was not made here")
		}
		if err := see(d, "new"); err != nil {
			t.Errorf("way %d: %v", i, err)
		}
		if a.Pending() != 0 {
			t.Errorf("way %d: the active has not heard of the file", i)
		}
		m.done()
	}
	d := ownDir(t, a, "full")
	m := begin(t, a, d, "new", "")
	if err := b.Rmdir(ctx, nobody, mount.Root, "full"); !fault.Is(err, fault.NotEmpty) {
		t.Errorf("removing the directory answers %v, want NotEmpty", err)
	}
	m.done()
}

type sink struct{ names []string }

func (s *sink) Add(e mount.DirEntry) bool                     { s.names = append(s.names, e.Name); return true }
func (s *sink) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return s.Add(e) }

func list(cl *cartwheel.Client, dir mount.Inode) (string, error) {
	ctx := context.Background()
	o, err := cl.OpenDir(ctx, nobody, dir)
	if err != nil {
		return "", err
	}
	defer cl.ReleaseDir(dir, o.Handle)
	var s sink
	err = cl.ReadDir(ctx, nobody, dir, o.Handle, 0, false, &s)
	return strings.Join(s.names, " "), err
}

// TestExclusive_OneClientMakesAName has clients race for names. Exactly one
// makes each of them.
func TestExclusive_OneClientMakesAName(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) { conf.Shared = 0 }})
	const rivals, names = 3, 60
	clients := make([]*cartwheel.Client, rivals)
	for i := range clients {
		clients[i] = clientOf(t, c, "a")
	}
	d := ownDir(t, clients[0], "d")
	var won [names]atomic.Int64
	var local atomic.Int64
	var wg sync.WaitGroup
	for i, cl := range clients {
		wg.Go(func() {
			ctx := context.Background()
			for k := range names {
				name := fmt.Sprint("n", (k+i*names/rivals)%names)
				e, o, err := cl.Create(ctx, nobody, d, name, 0o600, mount.OpenWrite|mount.OpenExclusive)
				if fault.Is(err, fault.Exists) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				local.Add(int64(cl.Pending()))
				won[(k+i*names/rivals)%names].Add(1)
				if err := cl.Flush(ctx, nobody, e.Node, o.Handle, 1); err != nil {
					t.Errorf("closing %s: %v", name, err)
				}
				cl.Release(e.Node, o.Handle, 1, false)
			}
		})
	}
	wg.Wait()
	for i := range won {
		if n := won[i].Load(); n != 1 {
			t.Errorf("%d clients made name %d, want one", n, i)
		}
	}
	t.Logf("%d of %d were made where their active did not hear of them at once", local.Load(), names)
}

// TestExclusive_DeadClientHoldsUpNoOthers cuts a client off that has files not
// published yet. Others wait for its session at most. The client learns at the
// close that its name was taken, and keeps the bytes.
func TestExclusive_DeadClientHoldsUpNoOthers(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	a, b := clientOf(t, c, "a"), clientOf(t, c, "a")
	d := ownDir(t, a, "d")
	m, late := begin(t, a, d, "f", "mine"), begin(t, a, d, "g", "late")
	host := c.Nodes[0].Server().Host()
	cut := a.Host().KeyID()
	host.SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict { return wire.Verdict{Drop: peer == cut} })
	a.Host().SetFilter(func(string, wire.Class, wire.Method) wire.Verdict { return wire.Verdict{Drop: true} })
	began := time.Now()
	put(t, b, d, "f", "theirs", mount.OpenExclusive)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("another client waited %v for one that is cut off, with sessions of 1 s", took)
	}
	host.SetFilter(nil)
	a.Host().SetFilter(nil)
	if err := m.end(); !fault.Is(err, fault.Exists) {
		t.Errorf("closing a file whose name was taken answers %v, want Exists", err)
	}
	late.done()
	for name, want := range map[string]string{"f": "theirs", "g": "late"} {
		if got := get(t, b, d, name); got != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
		if got := get(t, a, d, name); got != want {
			t.Errorf("for the one that was cut off %s reads %q, want %q", name, got, want)
		}
	}
	names, err := list(b, d)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(names, "f.conflict-")
	if i < 0 {
		t.Fatalf("no copy is kept: %s", names)
	}
	copied, _, _ := strings.Cut(names[i:], " ")
	servertest.Await(withTimeout(t), t, "the copy has the bytes", func() error {
		if got := get(t, b, d, copied); got != "mine" {
			return fmt.Errorf("it reads %q", got)
		}
		return nil
	})
}

// TestExclusive_TakeoverLearnsOfNewFiles kills the active while files are open
// that were not published to it. Its successor learns of them.
func TestExclusive_TakeoverLearnsOfNewFiles(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: quick})
	active := c.Active(ids.RootSlice)
	cl, other := clientOf(t, c, ""), clientOf(t, c, "")
	d := ownDir(t, cl, "d")
	var open []*making
	for i := range 5 {
		open = append(open, begin(t, cl, d, fmt.Sprint("f", i), fmt.Sprint("content ", i)))
	}
	if cl.Pending() != 5 {
		t.Fatalf("%d files were made here, want 5", cl.Pending())
	}
	active.Kill()
	for _, m := range open {
		m.done()
	}
	for i := range 5 {
		if got, want := get(t, other, d, fmt.Sprint("f", i)), fmt.Sprint("content ", i); got != want {
			t.Errorf("f%d reads %q, want %q", i, got, want)
		}
	}
}

// TestExclusive_PublishesNewFilesByItself leaves a file open, and closes a
// client with one open.
func TestExclusive_PublishesNewFilesByItself(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	d := ownDir(t, cl, "d")
	begin(t, cl, d, "open", "x")
	if cl.Pending() != 1 {
		t.Fatal("the file was not made here")
	}
	servertest.Await(withTimeout(t), t, "the active hears of the file", func() error {
		if n := cl.Pending(); n != 0 {
			return fmt.Errorf("%d files are left", n)
		}
		return nil
	})
	begin(t, cl, d, "closing", "y")
	if err := cl.Close(); err != nil {
		t.Fatal(err)
	}
	other := clientOf(t, c, "a")
	for name, want := range map[string]string{"open": "x", "closing": "y"} {
		if got := get(t, other, d, name); got != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
	}
}

// TestExclusive_LostAnswerMakesNothingTwice loses answers of operations that
// publish new files.
func TestExclusive_LostAnswerMakesNothingTwice(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	d := ownDir(t, cl, "d")
	var lost atomic.Int64
	c.Nodes[0].Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: m == method.Operate && lost.Add(1) == 1}
	})
	m := begin(t, cl, d, "f", "once")
	m.done()
	c.Nodes[0].Server().Host().SetFilter(nil)
	if lost.Load() == 0 {
		t.Fatal("no answer was lost")
	}
	if names, err := list(clientOf(t, c, "a"), d); err != nil || names != ". .. f" {
		t.Errorf("the directory has %s (%v)", names, err)
	}
	if got := get(t, cl, d, "f"); got != "once" {
		t.Errorf("it reads %q", got)
	}
}

// TestExclusive_NewFilesSurviveACrash ends a client that could not publish its
// files. The next one with its folder does, content and all.
func TestExclusive_NewFilesSurviveACrash(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	o := cartwheel.Options{Site: "a", CacheDir: t.TempDir(), OpTimeout: 2 * time.Second}
	cl := opened(t, c, o)
	d := ownDir(t, cl, "d")
	begin(t, cl, d, "told", "told").done()
	for _, name := range []string{"f", "taken"} {
		begin(t, cl, d, name, "written to "+name)
	}
	begin(t, cl, d, "empty", "")
	if n := cl.Pending(); n != 3 {
		t.Fatalf("%d files were made here, want 3", n)
	}
	cl.Host().SetFilter(func(string, wire.Class, wire.Method) wire.Verdict { return wire.Verdict{Drop: true} })
	if err := cl.Close(); err == nil {
		t.Fatal("a client that is cut off closes as if all was committed")
	}
	other := clientOf(t, c, "a")
	put(t, other, d, "taken", "theirs", mount.OpenExclusive)
	again := opened(t, c, o)
	// The client that recovers them shows them at once; it commits them for the
	// others in the background.
	for name, want := range map[string]string{"told": "told", "f": "written to f", "empty": "", "taken": "theirs"} {
		if got := get(t, again, d, name); got != want {
			t.Errorf("%s reads %q where it was recovered, want %q", name, got, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		servertest.Await(ctx, t, "another client to see "+name, func() error {
			if got := get(t, other, d, name); got != want {
				return fmt.Errorf("it reads %q, want %q", got, want)
			}
			return nil
		})
		cancel()
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	kept, err := filepath.Glob(filepath.Join(o.CacheDir, "conflicts", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("conflict copies: %v, %v; want one", kept, err)
	}
	if got, err := os.ReadFile(kept[0]); err != nil || string(got) != "written to taken" {
		t.Errorf("the conflict copy reads %q, %v", got, err)
	}
	if third := opened(t, c, o); third.Close() != nil {
		t.Error("it does not close")
	}
	if kept, _ = filepath.Glob(filepath.Join(o.CacheDir, "conflicts", "*")); len(kept) != 1 {
		t.Errorf("the journal was not given back: %v", kept)
	}
}

// TestObjects_PutGetListDelete puts, gets, lists and deletes whole objects, each
// with one request, and from another client.
func TestObjects_PutGetListDelete(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	ownDir(t, cl, "bucket")
	objects := func(cl *cartwheel.Client) *cartwheel.Objects {
		b, err := cl.Objects(ctx, nobody, "/bucket/")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := objects(cl)
	asked := counted(c.Nodes[0])
	once := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := asked.Swap(0); n != 1 {
			t.Errorf("%s took %d requests, want one", what, n)
		}
	}
	large := strings.Repeat("large ", 200_000)
	once("putting one", b.Put(ctx, "x", []byte("first")))
	once("putting another content", b.Put(ctx, "x", []byte("two")))
	once("putting a middling one", b.Put(ctx, "m", []byte(large[:200<<10])))
	once("putting an empty one", b.Put(ctx, "e", nil))
	if err := b.Put(ctx, "l", []byte(large)); err != nil {
		t.Error(err)
	}
	other := objects(clientOf(t, c, "a"))
	asked.Store(0)
	got, err := other.Get(ctx, "x")
	once("getting one", err)
	if string(got) != "two" {
		t.Errorf("it is %q", got)
	}
	for name, want := range map[string]string{"m": large[:200<<10], "l": large, "e": ""} {
		if got, err := other.Get(ctx, name); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	names, err := other.List(ctx)
	if slices.Sort(names); err != nil || strings.Join(names, " ") != "e l m x" {
		t.Errorf("listed are %v, %v", names, err)
	}
	asked.Store(0)
	once("deleting one", other.Delete(ctx, "x"))
	if _, err := b.Get(ctx, "x"); !fault.Is(err, fault.NotFound) {
		t.Errorf("getting what was deleted answers %v", err)
	}
	if _, err := cl.Objects(ctx, nobody, "/bucket/m"); !fault.Is(err, fault.NotDirectory) {
		t.Errorf("the objects of a file: %v", err)
	}
}
