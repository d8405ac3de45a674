package earlier

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// Restored is what a restore wrote, or would write.
type Restored struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Names int    `json:"names"`
	Bytes int64  `json:"size_bytes"` // of files, each counted once
	// Aside is where what was at To is now; empty: nothing was there.
	Aside string `json:"aside,omitempty"`
}

// How says how a restore goes.
type How struct {
	// Replace moves aside what is at the place. Without it, that is refused.
	Replace bool
	// DryRun writes nothing.
	DryRun bool
}

// aside and unfinished end the names that a restore uses beside its place.
const (
	aside      = ".replaced"
	unfinished = ".restoring"
)

// Restore copies what was at a path at a time to a place: content, attributes, links,
// extended attributes and ACLs. What is there only appears under its name once it is whole.
// Errors: Exists, where something is at the place and How does not allow that, or where names
// that the restore needs beside it are taken; NotFound, where nothing was there at the time;
// and those of the files. A copy that failed is removed.
func Restore(ctx context.Context, path, when, to string, how How) (Restored, error) {
	const op fault.Op = "earlier.Restore"
	from, err := Inside(path, when)
	if err != nil {
		return Restored{}, err
	}
	out := Restored{From: from, To: to}
	if _, err := os.Lstat(from); err != nil {
		return out, fault.FromOS(op, from, err)
	}
	_, err = os.Lstat(to)
	live := err == nil
	if live && !how.Replace {
		return out, fault.E(fault.Exists, op, to, "something is there now, and a restore writes over nothing: name another place with --to, or say --replace, which moves it to "+to+aside)
	}
	if live {
		out.Aside = to + aside
	}
	for _, name := range []string{to + unfinished, out.Aside} {
		if name == "" {
			continue
		}
		if _, err := os.Lstat(name); err == nil {
			return out, fault.E(fault.Exists, op, name, "is needed for the restore and is there: move it away first")
		}
	}
	c := copying{ctx: ctx, out: &out, dry: how.DryRun, linked: map[uint64]string{}}
	if err := c.tree(from, to+unfinished); err != nil || how.DryRun {
		if !how.DryRun {
			_ = os.RemoveAll(to + unfinished) // the first error is the one to act on
		}
		return out, err
	}
	if live {
		if err := os.Rename(to, out.Aside); err != nil {
			return out, fault.FromOS(op, to, err)
		}
	}
	return out, fault.FromOS(op, to, os.Rename(to+unfinished, to))
}

// copying is a copy of a tree as it goes.
type copying struct {
	ctx    context.Context
	out    *Restored
	dry    bool
	linked map[uint64]string // where files with several names were copied to
}

// tree copies what is at a path, and all below it.
func (c *copying) tree(from, to string) error {
	const op fault.Op = "earlier.tree"
	if c.ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, op, to, c.ctx.Err())
	}
	info, err := os.Lstat(from)
	if err != nil {
		return fault.FromOS(op, from, err)
	}
	c.out.Names++
	s := StampOf(info)
	if !info.IsDir() && s.Links > 1 {
		if first, ok := c.linked[s.Number]; ok {
			if c.dry {
				return nil
			}
			return fault.FromOS(op, to, os.Link(first, to))
		}
		c.linked[s.Number] = to
	}
	if info.Mode().IsRegular() {
		c.out.Bytes += info.Size()
	}
	if !c.dry {
		if err := c.make(from, to, info); err != nil {
			return err
		}
	}
	if info.IsDir() {
		list, err := os.ReadDir(from)
		if err != nil {
			return fault.FromOS(op, from, err)
		}
		for _, d := range list {
			if err := c.tree(filepath.Join(from, d.Name()), filepath.Join(to, d.Name())); err != nil {
				return err
			}
		}
	}
	if c.dry {
		return nil
	}
	return fault.FromOS(op, to, dress(from, to, info)) // behind what is below: that changes its times
}

// make makes an object with its content. Others can do nothing with it before it has its
// attributes.
func (c *copying) make(from, to string, info fs.FileInfo) error {
	const op fault.Op = "earlier.make"
	var err error
	switch m := info.Mode(); {
	case m.IsDir():
		err = os.Mkdir(to, 0o700)
	case m.IsRegular():
		err = copyFile(from, to)
	case m&fs.ModeSymlink != 0:
		var target string
		if target, err = os.Readlink(from); err == nil {
			err = os.Symlink(target, to)
		}
	default:
		err = MakeSpecial(to, m, StampOf(info).Device)
	}
	return fault.FromOS(op, to, err)
}

// copyFile copies the content of a file.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}
