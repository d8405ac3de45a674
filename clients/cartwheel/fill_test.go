//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// pages is a kernel that takes content: it keeps what it is given until it is
// told to drop it.
type pages struct {
	mu    sync.Mutex // guards below
	of    map[mount.Inode][]byte
	given int
	drops int
	// before is called in Fill, before still is asked, and after, behind it.
	before, after func()
}

var _ mount.Filler = (*pages)(nil)

func (p *pages) Fill(node mount.Inode, data []byte, still func() bool) bool {
	if p.before != nil {
		p.before()
	}
	if !still() {
		return false
	}
	if p.after != nil {
		p.after()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given++
	if p.of == nil {
		p.of = map[mount.Inode][]byte{}
	}
	p.of[node] = bytes.Clone(data)
	return true
}

func (p *pages) InvalidateInode(node mount.Inode, offset, _ int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset >= 0 {
		p.drops++
		delete(p.of, node)
	}
}

func (p *pages) InvalidateEntry(mount.Inode, string)     {}
func (p *pages) Delete(mount.Inode, mount.Inode, string) {}
func (p *pages) Drained(done func())                     { done() }
func (p *pages) seen(node mount.Inode) (data string, given, n int) { // n: times dropped
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.of[node]), p.given, p.drops
}

// filled makes a file through one client and looks it up through another, whose
// kernel takes content.
func filled(t *testing.T, content string) (maker, cl *cartwheel.Client, p *pages, e mount.Entry) {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	site := []string{"a", "b", "c"}[c.Active(ids.RootSlice).Index]
	maker, cl, p = clientOf(t, c, site), clientOf(t, c, site), &pages{}
	put(t, maker, mount.Root, "f", content, 0)
	cl.Init(p)
	return maker, cl, p, found(t, cl, "f")
}

func found(t *testing.T, cl *cartwheel.Client, name string) mount.Entry {
	t.Helper()
	e, err := cl.Lookup(t.Context(), nobody, mount.Root, name)
	if err != nil || e.Node == 0 {
		t.Fatalf("looking %s up: %+v, %v", name, e, err)
	}
	return e
}

func open(t *testing.T, cl *cartwheel.Client, e mount.Entry, flags mount.OpenFlags) (keep bool) {
	t.Helper()
	o, err := cl.Open(context.Background(), nobody, e.Node, flags)
	if err != nil {
		t.Errorf("opening: %v", err)
		return false
	}
	cl.Release(e.Node, o.Handle, 1, false)
	return o.KeepCache
}

func TestFill_FirstOpenBringsASmallFile(t *testing.T) {
	for _, each := range []struct {
		what  string
		size  int
		flags mount.OpenFlags
		want  int
	}{
		{"beside its record", 100, mount.OpenRead, 1},
		{"in chunks", 60 << 10, mount.OpenRead, 1},
		{"too large", 64<<10 + 1, mount.OpenRead, 0},
		{"empty", 0, mount.OpenRead, 0},
		{"for writing", 100, mount.OpenReadWrite, 0},
		{"past the pages", 100, mount.OpenRead | mount.OpenDirect, 0},
	} {
		t.Run(each.what, func(t *testing.T) {
			content := strings.Repeat("abcdefgh.", each.size/9+1)[:each.size]
			_, cl, p, e := filled(t, content)
			keep := open(t, cl, e, each.flags)
			data, given, _ := p.seen(e.Node)
			if given != each.want || keep != (each.want > 0) || given > 0 && data != content {
				t.Errorf("content was given %d times, want %d; %d bytes of %d; pages kept: %v", given, each.want, len(data), each.size, keep)
			}
			for range 2 { // the kernel has it, or asks
				if !open(t, cl, e, mount.OpenRead) {
					t.Error("the kernel does not keep its pages at the next open")
				}
			}
			if _, again, _ := p.seen(e.Node); again != given {
				t.Errorf("later opens gave content %d times", again-given)
			}
			cl.Forget(e.Node, 1)
			e = found(t, cl, "f")
			open(t, cl, e, mount.OpenRead)
			if _, again, _ := p.seen(e.Node); each.size > 0 && each.size <= 64<<10 && again != given+1 {
				t.Errorf("content was given %d times to a kernel that had forgotten the file", again-given)
			}
		})
	}
}

// TestFill_MeetsAWriteElsewhere writes from another machine right before the
// content is given and while it is. The kernel is left with none of the old.
func TestFill_MeetsAWriteElsewhere(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "while"} {
		t.Run(when, func(t *testing.T) {
			maker, cl, p, e := filled(t, "old")
			write := func() { put(t, maker, mount.Root, "f", "new", mount.OpenTruncate) }
			if when == "before" {
				p.before = write
			} else {
				p.after = write // its notice comes before the pages here; a binding sees that it does not
			}
			keep := open(t, cl, e, mount.OpenRead)
			data, given, drops := p.seen(e.Node)
			if when == "before" && (given != 0 || keep) {
				t.Errorf("%q was given to the kernel, which keeps it: %v", data, keep)
			}
			if drops == 0 {
				t.Error("the kernel is not told to drop what it has")
			}
			p.before, p.after = nil, nil
			if got := get(t, cl, mount.Root, "f"); got != "new" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// answeredLate is how long a request is given to be answered that should not be
// before a fill has ended: one that waits as it should never fails this test.
const answeredLate = 200 * time.Millisecond

// TestFill_ExcludesChanges sends requests that would change the file, or have it
// open, while its content is given. They wait.
func TestFill_ExcludesChanges(t *testing.T) {
	t.Parallel()
	for what, request := range map[string]func(*testing.T, *cartwheel.Client, mount.Entry){
		"an open for writing": func(t *testing.T, cl *cartwheel.Client, e mount.Entry) { open(t, cl, e, mount.OpenReadWrite) },
		"an open for reading": func(t *testing.T, cl *cartwheel.Client, e mount.Entry) {
			if !open(t, cl, e, mount.OpenRead) {
				t.Error("the kernel does not keep what it was given")
			}
		},
		"an open that truncates": func(t *testing.T, cl *cartwheel.Client, e mount.Entry) {
			open(t, cl, e, mount.OpenWrite|mount.OpenTruncate)
		},
		"a create of a name that is there": func(t *testing.T, cl *cartwheel.Client, e mount.Entry) {
			_, o, err := cl.Create(context.Background(), nobody, mount.Root, "f", 0o644, mount.OpenWrite|mount.OpenTruncate)
			if err != nil {
				t.Error(err)
				return
			}
			cl.Release(e.Node, o.Handle, 1, false)
		},
		"a truncate": func(t *testing.T, cl *cartwheel.Client, e mount.Entry) {
			if _, err := cl.SetAttr(context.Background(), nobody, e.Node, mount.SetAttr{Valid: mount.SetSize, Size: 1}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			_, cl, p, e := filled(t, "content")
			answered := make(chan struct{})
			p.after = func() {
				go func() {
					defer close(answered)
					request(t, cl, e)
				}()
				late := time.NewTimer(answeredLate)
				defer late.Stop()
				select {
				case <-answered:
					t.Error("it was answered before the kernel had the content")
				case <-late.C:
				}
			}
			open(t, cl, e, mount.OpenRead)
			<-answered
			if _, given, _ := p.seen(e.Node); given != 1 {
				t.Errorf("content was given %d times, want once", given)
			}
		})
	}
}

// TestFill_SkipsWrittenFiles opens a file for writing, or sets its size, since
// the kernel knows it. Such a file is read as before.
func TestFill_SkipsWrittenFiles(t *testing.T) {
	_, cl, p, e := filled(t, "content")
	open(t, cl, e, mount.OpenReadWrite)
	open(t, cl, e, mount.OpenRead)
	cl.Forget(e.Node, 1)
	e = found(t, cl, "f")
	if _, err := cl.SetAttr(t.Context(), nobody, e.Node, mount.SetAttr{Valid: mount.SetSize, Size: 3}); err != nil {
		t.Fatal(err)
	}
	open(t, cl, e, mount.OpenRead)
	if data, given, _ := p.seen(e.Node); given != 0 {
		t.Errorf("%q was given to the kernel", data)
	}
}

// TestFill_DoesNotWaitForFarContent opens a file whose content is far. An open
// does not ask for it. Once it is here, it goes with the next first open.
func TestFill_DoesNotWaitForFarContent(t *testing.T) {
	c, active, _ := farActive(t, 20*time.Millisecond)
	content := strings.Repeat("0123456789abcdef", 1<<10)
	home := opened(t, c, cartwheel.Options{Site: []ids.Site{"a", "b", "c"}[active.Index]})
	put(t, home, mount.Root, "f", content, 0)
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
	cl := met(t, c, cartwheel.Options{Far: cartwheel.Far{AheadFrom: 1}})
	p := &pages{}
	cl.Init(p)
	e := found(t, cl, "f")
	open(t, cl, e, mount.OpenRead)
	if _, given, _ := p.seen(e.Node); given != 0 {
		t.Error("the open waited for content that is far")
	}
	if got := get(t, cl, mount.Root, "f"); got != content {
		t.Fatalf("read %d bytes, or others", len(got))
	}
	cl.Forget(e.Node, 2)
	e = found(t, cl, "f")
	open(t, cl, e, mount.OpenRead)
	if data, given, _ := p.seen(e.Node); given != 1 || data != content {
		t.Errorf("content that is here was given %d times, %d bytes", given, len(data))
	}
}
