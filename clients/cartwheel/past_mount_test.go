//go:build linux

package cartwheel_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/history"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// must fails the test with the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// described tells of each path below a folder what stat shows, its links, extended
// attributes and content.
func described(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		what := fmt.Sprintf("mode %o uid %d gid %d size %d links %d mtime %d.%09d ctime %d.%09d", st.Mode, st.Uid, st.Gid, st.Size, st.Nlink,
			st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " to " + target
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" content %x", sha256.Sum256(data))
		}
		buf := make([]byte, 256)
		if n, err := unix.Lgetxattr(path, "user.note", buf); err == nil {
			what += " note " + string(buf[:n])
		}
		name, _ := filepath.Rel(root, path)
		out[name] = what
		return nil
	})
	must(t, err)
	return out
}

// sameTree wants two descriptions to be the same.
func sameTree(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	names := maps.Clone(got)
	maps.Copy(names, want)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if got[name] != want[name] {
			t.Errorf("%s: %s is\n  %q, want\n  %q", what, name, got[name], want[name])
		}
	}
}

// plantPast makes a tree with objects at two sites, as seen from a mount.
func plantPast(t *testing.T, tree string) {
	t.Helper()
	large := noise(3<<20 + 17)
	must(t, os.Mkdir(tree, 0o755), os.Mkdir(filepath.Join(tree, ".Site=a", "near"), 0o750), os.Mkdir(filepath.Join(tree, ".Site=b", "far"), 0o755),
		os.MkdirAll(filepath.Join(tree, "near/deep/deeper"), 0o755),
		os.WriteFile(filepath.Join(tree, "near/small"), []byte("as it was\n"), 0o640),
		os.WriteFile(filepath.Join(tree, "near/deep/large"), large, 0o644),
		os.WriteFile(filepath.Join(tree, "far/middle"), large[:100_000], 0o600),
		os.WriteFile(filepath.Join(tree, "far/empty"), nil, 0o644),
		os.WriteFile(filepath.Join(tree, "far/kept"), []byte("never changed"), 0o644),
		os.Symlink("../near/small", filepath.Join(tree, "far/link")),
		os.Link(filepath.Join(tree, "near/small"), filepath.Join(tree, "near/other name")),
		unix.Setxattr(filepath.Join(tree, "near/small"), "user.note", []byte("old"), 0))
	for i := range 40 {
		must(t, os.WriteFile(filepath.Join(tree, fmt.Sprintf("near/deep/deeper/%02d", i)), fmt.Appendf(nil, "file %d", i), 0o644))
	}
}

// changePast changes everything of that tree, but what is kept.
func changePast(t *testing.T, tree string) {
	t.Helper()
	part, err := os.OpenFile(filepath.Join(tree, "near/deep/large"), os.O_WRONLY, 0)
	must(t, err)
	_, err = part.WriteAt([]byte("overwritten in the middle"), 1<<20)
	must(t, err, part.Close(),
		os.WriteFile(filepath.Join(tree, "near/small"), []byte("as it is now"), 0o640),
		unix.Setxattr(filepath.Join(tree, "near/small"), "user.note", []byte("new"), 0),
		os.Chmod(filepath.Join(tree, "near"), 0o700),
		os.Truncate(filepath.Join(tree, "far/middle"), 5),
		os.Remove(filepath.Join(tree, "far/empty")),
		os.Remove(filepath.Join(tree, "far/link")), os.Symlink("elsewhere", filepath.Join(tree, "far/link")),
		os.RemoveAll(filepath.Join(tree, "near/deep/deeper")),
		os.Rename(filepath.Join(tree, "near/deep"), filepath.Join(tree, "far/moved")),
		os.Rename(filepath.Join(tree, "near/other name"), filepath.Join(tree, "far/other name")),
		os.WriteFile(filepath.Join(tree, "far/new"), []byte("new"), 0o644))
}

// TestPast_IsTheTreeAsItWas compares a changed tree with what it was before, by way of
// .Snapshot, at two mounts, after a takeover of the root's slice, and with diff.
func TestPast_IsTheTreeAsItWas(t *testing.T) {
	t.Parallel()
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{})
	one, two := mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b"))
	tree := filepath.Join(one, "tree")
	plantPast(t, tree)
	want := described(t, filepath.Join(two, "tree")) // all of it is at the actives then
	copied := filepath.Join(t.TempDir(), "copy")
	output(t, "cp", "-a", filepath.Join(two, "tree"), copied)
	at := ".Snapshot=" + time.Now().Format(time.RFC3339Nano)

	changePast(t, filepath.Join(two, "tree"))
	now := described(t, tree)
	for _, past := range []string{filepath.Join(tree, at), filepath.Join(two, at, "tree")} {
		sameTree(t, past, described(t, past), want)
		output(t, "diff", "-r", "--no-dereference", copied, past)
	}
	sameTree(t, "the present", described(t, tree), now)
	refusesChanges(t, filepath.Join(tree, at), tree)
	output(t, "cp", "-a", filepath.Join(tree, at, "near/deep/large"), filepath.Join(tree, "restored"))
	output(t, "cmp", filepath.Join(copied, "near/deep/large"), filepath.Join(tree, "restored"))

	c.Active(ids.RootSlice).Kill()
	three := mounted(t, clientOf(t, c, "c"))
	sameTree(t, "after a takeover", described(t, filepath.Join(three, at, "tree")), want)
}

// output runs a program that must succeed.
func output(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// refusesChanges wants EROFS for every change of the past.
func refusesChanges(t *testing.T, past, present string) {
	t.Helper()
	open := func(path string, flags int) error {
		f, err := os.OpenFile(path, flags, 0o644)
		if err == nil {
			must(t, f.Close())
		}
		return err
	}
	file := filepath.Join(past, "near/small")
	for what, err := range map[string]error{
		"create":      open(filepath.Join(past, "new"), os.O_CREATE|os.O_WRONLY),
		"open":        open(file, os.O_WRONLY),
		"truncate":    os.Truncate(file, 0),
		"mkdir":       os.Mkdir(filepath.Join(past, "d"), 0o755),
		"remove":      os.Remove(file),
		"rmdir":       unix.Rmdir(filepath.Join(past, "near/deep/deeper")),
		"rename":      os.Rename(file, filepath.Join(past, "other")),
		"rename out":  os.Rename(file, filepath.Join(present, "taken")),
		"rename in":   os.Rename(filepath.Join(present, "far/kept"), filepath.Join(past, "kept")),
		"link out":    os.Link(file, filepath.Join(present, "linked")),
		"symlink":     os.Symlink("x", filepath.Join(past, "l")),
		"chmod":       os.Chmod(file, 0o777),
		"chown":       os.Chown(file, 1, 1),
		"times":       os.Chtimes(file, time.Now(), time.Now()),
		"setxattr":    unix.Setxattr(file, "user.note", []byte("x"), 0),
		"removexattr": unix.Removexattr(file, "user.note"),
		"mknod":       unix.Mknod(filepath.Join(past, "p"), unix.S_IFIFO|0o644, 0),
	} {
		if !errors.Is(err, unix.EROFS) {
			t.Errorf("%s below .Snapshot: got %v, want EROFS", what, err)
		}
	}
}

// TestPast_RefusesTimesThatCannotBeHad names the errors of bad times.
func TestPast_RefusesTimesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	point := mounted(t, clientOf(t, c, "a"))
	for name, want := range map[string]error{
		".Snapshot=2001-01-01T10:00": unix.EINVAL, // before the cluster
		".Snapshot=-1h":              unix.EINVAL,
		".Snapshot=" + time.Now().Add(time.Hour).Format(time.RFC3339): unix.EINVAL,
		".Snapshot=-1x":     unix.EINVAL,
		".Snapshot=nightly": unix.ENOENT,
		".Snapshot=" + time.Now().Format(time.RFC3339Nano) + "/none":           unix.ENOENT,
		".Snapshot=" + time.Now().Format(time.RFC3339Nano) + "/.Snapshot=-52w": unix.EINVAL,
	} {
		if _, err := os.Stat(filepath.Join(point, name)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

// kindsOf is what a name's history says, newest first.
func kindsOf(t *testing.T, path string) (history.History, string) {
	t.Helper()
	dir, name := filepath.Split(path)
	buf := make([]byte, 1<<16)
	n, err := unix.Getxattr(dir, history.Attribute+name, buf)
	must(t, err)
	h, err := history.Parse(path, buf[:n])
	must(t, err)
	var kinds []string
	for _, v := range h.Versions {
		kinds = append(kinds, fmt.Sprintf("%s %d", v.What, v.Size))
	}
	return h, strings.Join(kinds, ", ")
}

// TestHistory_FollowsANameOverSites makes, writes, removes and renames files of one name,
// and reads each version where its history says that it is.
func TestHistory_FollowsANameOverSites(t *testing.T) {
	t.Parallel()
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{})
	one, two := mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b"))
	dir := filepath.Join(one, "d")
	must(t, os.Mkdir(filepath.Join(one, ".Site=b", "d"), 0o755), os.Mkdir(filepath.Join(one, ".Site=c", "e"), 0o755))
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "second"} {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := os.ReadFile(filepath.Join(two, "d/f")) // and all is at the active
		must(t, err)
	}
	must(t, os.Remove(path))
	// The first content may come with the file, and the second behind a truncation.
	if _, got := kindsOf(t, path); !regexp.MustCompile(`^removed 0, written 6, (written 0, )?(written 3, created 0|created 3)$`).MatchString(got) {
		t.Errorf("after the removal: got %q", got)
	}
	must(t, os.WriteFile(filepath.Join(two, "e/other"), []byte("moved here"), 0o644), os.Rename(filepath.Join(two, "e/other"), filepath.Join(two, "d/f")))
	h, got := kindsOf(t, path)
	if !strings.HasPrefix(got, "renamed here 10, removed 0, written 6") {
		t.Errorf("after a rename: got %q", got)
	}
	for _, v := range h.Versions {
		if v.Snapshot == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, v.Snapshot, "f"))
		if err != nil || uint64(len(data)) != v.Size {
			t.Errorf("%s %d: got %q, %v below %s", v.What, v.Size, data, err, v.Snapshot)
		}
	}
	if _, got := kindsOf(t, filepath.Join(dir, "none")); got != "" {
		t.Errorf("a name that never was: got %q", got)
	}
	if _, err := unix.Getxattr(dir, history.Attribute, nil); !errors.Is(err, unix.ENODATA) {
		t.Errorf("without a name: got %v, want ENODATA", err)
	}
}
