//go:build linux

package cartwheel_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// never is a limit that no test lives to see.
const never = time.Hour

// limited is a directory by a path with .MaxTime, at a client that waits for ever
// without it, and a file in it by the same path, open for reading and writing.
type limited struct {
	*testing.T
	cl     *cartwheel.Client
	plain  mount.Inode
	dir    mount.Inode
	file   mount.Inode
	link   mount.Inode
	handle mount.Handle
}

func newLimited(t *testing.T, c *servertest.Cluster, maker *cartwheel.Client) *limited {
	t.Helper()
	l := &limited{T: t, cl: opened(t, c, cartwheel.Options{Site: "a", OpTimeout: never})}
	ctx := t.Context()
	d, err := maker.Mkdir(ctx, nobody, mount.Root, filepath.Base(t.Name()), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "other", "third"} {
		put(t, maker, d.Node, name, string(noise(300<<10)), 0)
	}
	if _, err := maker.Mkdir(ctx, nobody, d.Node, "folder", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := maker.Symlink(ctx, nobody, d.Node, "link", "file"); err != nil {
		t.Fatal(err)
	}
	at := l.look(mount.Root, filepath.Base(t.Name()))
	l.plain = at
	l.dir = l.look(at, ".MaxTime=200")
	l.file, l.link = l.look(l.dir, "file"), l.look(l.dir, "link")
	o, err := l.cl.Open(ctx, nobody, l.file, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	l.handle = o.Handle
	return l
}

func (l *limited) look(dir mount.Inode, name string) mount.Inode {
	l.Helper()
	e, err := l.cl.Lookup(l.Context(), nobody, dir, name)
	if err != nil || e.Node == 0 {
		l.Fatalf("looking up %s: %+v, %v", name, e, err)
	}
	return e.Node
}

// TestMaxTime_BoundsEveryOperation cuts the only node off. Each operation by a
// path with .MaxTime then ends by itself, though the client itself would wait for
// longer than a test may run.
func TestMaxTime_BoundsEveryOperation(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	maker := clientOf(t, c, "a")
	ctx := context.Background()
	buf := make([]byte, 64)
	for name, run := range map[string]func(l *limited) error{
		"lookup": func(l *limited) error { _, err := l.cl.Lookup(ctx, nobody, l.dir, "third"); return err },
		"stat": func(l *limited) error {
			_, err := l.cl.GetAttr(ctx, nobody, l.dir, 0)
			return err
		},
		"stat of a file": func(l *limited) error { _, err := l.cl.GetAttr(ctx, nobody, l.file, 0); return err },
		"readlink":       func(l *limited) error { _, err := l.cl.Readlink(ctx, nobody, l.link); return err },
		"access":         func(l *limited) error { return l.cl.Access(ctx, nobody, l.dir, mount.AccessRead) },
		"chmod": func(l *limited) error {
			_, err := l.cl.SetAttr(ctx, nobody, l.dir, mount.SetAttr{Valid: mount.SetMode, Mode: 0o700})
			return err
		},
		"getxattr":    func(l *limited) error { _, err := l.cl.GetXattr(ctx, nobody, l.dir, "user.x", buf); return err },
		"listxattr":   func(l *limited) error { _, err := l.cl.ListXattr(ctx, nobody, l.dir, buf); return err },
		"setxattr":    func(l *limited) error { return l.cl.SetXattr(ctx, nobody, l.dir, "user.x", buf, 0) },
		"removexattr": func(l *limited) error { return l.cl.RemoveXattr(ctx, nobody, l.dir, "user.x") },
		"open":        func(l *limited) error { _, err := l.cl.Open(ctx, nobody, l.file, mount.OpenRead); return err },
		"open and truncate": func(l *limited) error {
			_, err := l.cl.Open(ctx, nobody, l.file, mount.OpenWrite|mount.OpenTruncate)
			return err
		},
		"create": func(l *limited) error {
			_, _, err := l.cl.Create(ctx, nobody, l.dir, "new", 0o644, mount.OpenRead)
			return err
		},
		"create without a name": func(l *limited) error {
			_, _, err := l.cl.CreateNameless(ctx, nobody, l.dir, 0o644, mount.OpenReadWrite)
			return err
		},
		"read": func(l *limited) error { _, err := l.cl.Read(ctx, nobody, l.file, l.handle, 200<<10, buf); return err },
		"close of what was written": func(l *limited) error {
			_, err := l.cl.Write(ctx, nobody, l.file, l.handle, 0, buf, 0)
			if err == nil {
				err = l.cl.Flush(ctx, nobody, l.file, l.handle, 1)
			}
			return err
		},
		"fsync": func(l *limited) error {
			if _, err := l.cl.Write(ctx, nobody, l.file, l.handle, 0, buf, 0); err != nil {
				return err
			}
			return l.cl.Fsync(ctx, nobody, l.file, l.handle, false)
		},
		"mkdir":   func(l *limited) error { _, err := l.cl.Mkdir(ctx, nobody, l.dir, "new", 0o755); return err },
		"symlink": func(l *limited) error { _, err := l.cl.Symlink(ctx, nobody, l.dir, "new", "x"); return err },
		"link":    func(l *limited) error { _, err := l.cl.Link(ctx, nobody, l.file, l.dir, "new"); return err },
		"unlink":  func(l *limited) error { return l.cl.Unlink(ctx, nobody, l.dir, "other") },
		"rmdir":   func(l *limited) error { return l.cl.Rmdir(ctx, nobody, l.dir, "folder") },
		"rename":  func(l *limited) error { return l.cl.Rename(ctx, nobody, l.dir, "other", l.dir, "new", 0) },
		"lock": func(l *limited) error {
			return l.cl.SetLock(ctx, nobody, l.file, l.handle, mount.Lock{Owner: 1, End: mount.LockEnd, Type: mount.WriteLock}, false)
		},
		"list": func(l *limited) error {
			o, err := l.cl.OpenDir(ctx, nobody, l.dir)
			if err != nil {
				return err
			}
			defer l.cl.ReleaseDir(l.dir, o.Handle)
			var out sink
			return l.cl.ReadDir(ctx, nobody, l.dir, o.Handle, 0, false, &out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimited(t, c, maker)
			heal := cut(c.Nodes[0])
			l.cl.DropCaches(ctx)
			began := time.Now()
			if err := run(l); !fault.Is(err, fault.TimedOut) {
				t.Errorf("got %v, want TimedOut", err)
			}
			t.Logf("it took %v", time.Since(began).Round(time.Millisecond))
			heal()
			l.cl.Release(l.file, l.handle, 1, false)
			if err := l.cl.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMaxTime_TellsProgramsAndLosesNothing writes through a mount while the only
// node is away: the program hears that the time was over, and what it wrote arrives
// once the node is back.
func TestMaxTime_TellsProgramsAndLosesNothing(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	reader := clientOf(t, c, "a")
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: 3 * time.Second}) // then it sends what was dropped again
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	at := filepath.Join(mounted(t, cl), ".MaxTime=200")
	f, err := os.Create(filepath.Join(at, "f"))
	if err != nil {
		t.Fatal(err)
	}
	heal := cut(c.Nodes[0])
	if _, err := f.Write(noise(1 << 20)); err != nil {
		t.Errorf("a write in the outage: %v", err)
	}
	if err := f.Close(); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a close in the outage: got %v, want ETIMEDOUT", err)
	}
	if _, err := os.Stat(filepath.Join(at, "unknown")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a stat in the outage: got %v, want ETIMEDOUT", err)
	}
	heal()
	// Beside the cue, a sync waits until all of it is at the nodes.
	again, err := os.OpenFile(filepath.Join(filepath.Dir(at), "f"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Sync(); err != nil {
		t.Errorf("a sync after the outage: %v", err)
	}
	if got := get(t, reader, mount.Root, "f"); got != string(noise(1<<20)) {
		t.Errorf("after the outage the file has %d other bytes", len(got))
	}
}
