//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// program does random operations by path, as one process after the other would: on
// one of several file systems each time.
type program struct {
	*rand.Rand
	root string // below which it works
	user mount.Caller
}

// at finds a path.
func at(fs mount.FileSystem, p string) (mount.Entry, error) {
	e := mount.Entry{Node: mount.Root}
	for i, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if i > 0 && e.Attr.Mode&mount.TypeMask != mount.TypeDir { // no kernel looks below it
			return e, fault.E(fault.NotDirectory, "test", p, "")
		}
		next, err := fs.Lookup(context.Background(), mount.Caller{}, e.Node, name)
		if err == nil && next.Node == 0 {
			err = fault.E(fault.NotFound, "test", p, "")
		}
		if err != nil {
			return next, err
		}
		e = next
	}
	return e, nil
}

// step is one operation: it returns what a program would see of it.
type step struct {
	what string
	run  func(fs mount.FileSystem) (string, error)
}

// outcome is what a step came to, to be compared.
func (s step) outcome(fs mount.FileSystem) string {
	got, err := s.run(fs)
	if err != nil {
		return fault.KindOf(err).String()
	}
	return got
}

// somewhere is a random path, seldom three names deep.
func (p *program) somewhere() string {
	out, depth := p.root, 1+p.IntN(2)
	if p.IntN(5) == 0 {
		depth = 3
	}
	for range depth {
		out += "/" + string(rune('a'+p.IntN(3)))
	}
	return out
}

// in runs fn with the directory of a path, and its last name.
func in(fs mount.FileSystem, where string, fn func(dir mount.Inode, name string) error) (string, error) {
	d, err := at(fs, path.Dir(where))
	if err == nil && d.Attr.Mode&mount.TypeMask != mount.TypeDir && path.Dir(where) != "." {
		err = fault.E(fault.NotDirectory, "test", where, "")
	}
	if err == nil {
		err = fn(d.Node, path.Base(where))
	}
	return "", err
}

// next is the next step of a program.
func (p *program) next(n int) step {
	ctx, who, where := context.Background(), p.user, p.somewhere()
	changed := func(what string, fn func(fs mount.FileSystem, dir mount.Inode, name string) error) step {
		return step{what + " " + where, func(fs mount.FileSystem) (string, error) {
			return in(fs, where, func(dir mount.Inode, name string) error { return fn(fs, dir, name) })
		}}
	}
	switch p.IntN(12) {
	case 0, 1:
		return changed("mkdir", func(fs mount.FileSystem, dir mount.Inode, name string) error {
			_, err := fs.Mkdir(ctx, who, dir, name, 0o755)
			return err
		})
	case 2:
		return changed("rmdir", func(fs mount.FileSystem, dir mount.Inode, name string) error { return fs.Rmdir(ctx, who, dir, name) })
	case 3, 4:
		return changed("unlink", func(fs mount.FileSystem, dir mount.Inode, name string) error { return fs.Unlink(ctx, who, dir, name) })
	case 5, 6:
		w := writing{content: fmt.Sprintf("%d%s", n, strings.Repeat("x", n*37%6000)), lazy: p.IntN(2) == 0}
		if p.IntN(2) == 0 {
			w.set = mount.SetAttr{Valid: mount.SetMode | mount.SetMtime | mount.SetAtime, Mode: uint32(0o600 + p.IntN(64)), Mtime: int64(n) * 1e9, Atime: 1}
		}
		return changed(fmt.Sprintf("write (%v, %v)", w.lazy, w.set.Valid), func(fs mount.FileSystem, dir mount.Inode, name string) error {
			return w.run(fs, who, dir, name)
		})
	case 7:
		return changed("symlink", func(fs mount.FileSystem, dir mount.Inode, name string) error {
			_, err := fs.Symlink(ctx, who, dir, name, fmt.Sprint("to ", n))
			return err
		})
	case 8:
		return p.attributes(n, where)
	case 9:
		return step{"list " + where, func(fs mount.FileSystem) (string, error) { return state(fs, where) }}
	default:
		return p.moved(where)
	}
}

// moved renames one path to another one, or links it there.
func (p *program) moved(where string) step {
	ctx, who, to, link := context.Background(), p.user, p.somewhere(), p.IntN(4) == 0
	if strings.HasPrefix(to+"/", where+"/") || strings.HasPrefix(where+"/", to+"/") { // a kernel asks for none of these
		to = p.root + "/d"
	}
	return step{fmt.Sprint("move ", where, " to ", to, ", as a link: ", link), func(fs mount.FileSystem) (string, error) {
		return in(fs, where, func(dir mount.Inode, name string) error {
			e, err := at(fs, where)
			if err != nil {
				return err
			}
			_, err = in(fs, to, func(toDir mount.Inode, toName string) error {
				switch {
				case !link:
					return fs.Rename(ctx, who, dir, name, toDir, toName, 0)
				case e.Attr.Mode&mount.TypeMask == mount.TypeDir:
					return nil
				}
				_, err := fs.Link(ctx, who, e.Node, toDir, toName)
				return err
			})
			return err
		})
	}}
}

// attributes sets a mode and a time.
func (p *program) attributes(n int, where string) step {
	change := mount.SetAttr{Valid: mount.SetMode, Mode: uint32(0o700 + p.IntN(64))}
	if p.IntN(2) == 0 {
		change = mount.SetAttr{Valid: mount.SetMtime | mount.SetAtime, Mtime: int64(n) * 1e9, Atime: int64(n) * 2e9}
	}
	return step{"attributes of " + where, func(fs mount.FileSystem) (string, error) {
		e, err := at(fs, where)
		if err != nil || e.Attr.Mode&mount.TypeMask == mount.TypeSymlink {
			return "", err
		}
		a, err := fs.SetAttr(context.Background(), p.user, e.Node, change)
		return fmt.Sprintf("%o", a.Attr.Mode), err
	}}
}

// writing makes a file with content, or replaces the content of one.
type writing struct {
	content string
	lazy    bool          // its close waits for no node, where the file system knows that cue
	set     mount.SetAttr // of the open file, once it is written
}

func (w writing) run(fs mount.FileSystem, who mount.Caller, dir mount.Inode, name string) error {
	ctx := context.Background()
	if _, cues := fs.(*cartwheel.Client); cues && w.lazy {
		below, err := fs.Lookup(ctx, who, dir, ".SyncLevel=0")
		if err != nil {
			return err
		}
		dir = below.Node
	}
	e, err := fs.Lookup(ctx, who, dir, name)
	if err != nil {
		return err
	}
	var o mount.Opened
	switch {
	case e.Node == 0:
		e, o, err = fs.Create(ctx, who, dir, name, 0o644, mount.OpenWrite|mount.OpenExclusive)
	case e.Attr.Mode&mount.TypeMask != mount.TypeRegular:
		return fault.E(fault.IsDirectory, "test", name, "")
	default:
		o, err = fs.Open(ctx, who, e.Node, mount.OpenWrite|mount.OpenTruncate)
	}
	if err != nil {
		return err
	}
	if _, err = fs.Write(ctx, who, e.Node, o.Handle, 0, []byte(w.content), 0); err == nil && w.set.Valid != 0 {
		_, err = fs.SetAttr(ctx, who, e.Node, w.set)
	}
	if err == nil {
		err = fs.Flush(ctx, who, e.Node, o.Handle, 1)
	}
	fs.Release(e.Node, o.Handle, 1, false)
	return err
}

// nameSink takes names.
type nameSink []string

func (s *nameSink) Add(e mount.DirEntry) bool {
	if e.Name != "." && e.Name != ".." {
		*s = append(*s, e.Name)
	}
	return true
}

func (s *nameSink) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return s.Add(e) }

// state describes all that is below a path.
func state(fs mount.FileSystem, where string) (string, error) {
	ctx := context.Background()
	e, err := at(fs, where)
	if err != nil {
		return "", err
	}
	r, err := fs.GetAttr(ctx, mount.Caller{}, e.Node, 0)
	if err != nil {
		return "", err
	}
	a := r.Attr
	out := fmt.Sprintf("%s %o %d %d:%d", path.Base(where), a.Mode, a.Nlink, a.UID, a.GID)
	if a.Mtime < 1e14 { // set by the program, not by a clock
		out += fmt.Sprint(" at ", a.Mtime)
	}
	switch a.Mode & mount.TypeMask {
	case mount.TypeRegular:
		content, err := read(fs, e.Node, int(a.Size))
		return fmt.Sprintf("%s %d %.20q\n", out, a.Size, content), err
	case mount.TypeSymlink:
		to, err := fs.Readlink(ctx, mount.Caller{}, e.Node)
		return fmt.Sprintf("%s %q\n", out, to), err
	}
	h, err := fs.OpenDir(ctx, mount.Caller{}, e.Node)
	if err != nil {
		return "", err
	}
	defer fs.ReleaseDir(e.Node, h.Handle)
	var list nameSink
	if err := fs.ReadDir(ctx, mount.Caller{}, e.Node, h.Handle, 0, false, &list); err != nil {
		return "", err
	}
	slices.Sort(list)
	out += " {\n"
	for _, name := range list {
		below, err := state(fs, where+"/"+name)
		if err != nil {
			return "", fault.Wrap(fault.Other, "test.state", where+"/"+name, err)
		}
		out += below
	}
	return out + "}\n", nil
}

// read reads a file.
func read(fs mount.FileSystem, node mount.Inode, size int) (string, error) {
	ctx := context.Background()
	o, err := fs.Open(ctx, mount.Caller{}, node, mount.OpenRead)
	if err != nil {
		return "", err
	}
	defer fs.Release(node, o.Handle, 1, false)
	buf := make([]byte, size+1)
	n, err := fs.Read(ctx, mount.Caller{}, node, o.Handle, 0, buf)
	return string(buf[:n]), err
}
