//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// walker is a file system that knows paths.
type walker interface {
	mount.FileSystem
	mount.PathWalker
}

// readPath reads a whole file of a path.
func readPath(t *testing.T, f mount.FileSystem, who mount.Caller, path string) ([]byte, error) {
	t.Helper()
	ctx := context.Background()
	e, err := f.(walker).Walk(ctx, who, mount.Root, path)
	if err == nil && e.Node == 0 {
		err = fault.E(fault.NotFound, "test.Walk", path, "")
	}
	if err != nil {
		return nil, err
	}
	defer f.Forget(e.Node, 1)
	o, err := f.Open(ctx, who, e.Node, mount.OpenRead)
	if err != nil {
		return nil, err
	}
	defer f.Release(e.Node, o.Handle, 1, false)
	buf := make([]byte, e.Attr.Size+1)
	n, err := f.Read(ctx, who, e.Node, o.Handle, 0, buf)
	return buf[:n], err
}

// TestPast_AnAgeIsFixedWhileItIsUsed looks at one age again and again while the file
// below it changes, and once more after a rest.
func TestPast_AnAgeIsFixedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	const hour = time.Hour
	began := time.Now()
	var passed time.Duration
	cl := opened(t, c, cartwheel.Options{Site: "a", Wall: func() time.Time { return time.Now().Add(hour) }, Simulated: cartwheel.Simulated{},
		Clock: func() time.Duration { return time.Since(began) + passed }})
	t.Cleanup(func() { _ = cl.Close() })
	fs := cl.FileSystem()
	put(t, cl, mount.Root, "f", "first", 0)
	first := time.Now()
	read := func(want string) {
		t.Helper()
		if got, err := readPath(t, fs, nobody, ".Snapshot=-1h/f"); err != nil || string(got) != want {
			t.Errorf("an hour ago the file was %q, %v, want %q", got, err, want)
		}
	}
	read("first")
	put(t, cl, mount.Root, "f", "second", mount.OpenTruncate)
	read("first")
	passed += 59 * time.Second
	read("first")
	passed += 59 * time.Second
	read("first")
	passed += time.Minute
	read("second")
	at := ".Snapshot=" + first.UTC().Format(time.RFC3339Nano)
	if got, err := readPath(t, fs, nobody, at+"/f"); err != nil || string(got) != "first" {
		t.Errorf("at its time the file was %q, %v", got, err)
	}
	if got, err := readPath(t, fs, nobody, ".Snapshot=-1h/.MaxTime=10000/"+at+"/f"); err != nil || string(got) != "first" {
		t.Errorf("with several cues the file was %q, %v", got, err)
	}
}

// TestPast_IsForUsersToo reads an old version with the tickets of a user, of a directory
// that is closed to the user now.
func TestPast_IsForUsersToo(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	admin := clientOf(t, c, "a")
	user := openedAs(t, c, "ann", cartwheel.Options{Site: ids.Site("b")})
	t.Cleanup(func() { _ = user.Close() })
	ctx := context.Background()
	d, err := admin.Mkdir(ctx, nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	old := noise(2<<20 + 5)
	put(t, admin, d.Node, "large", string(old), 0)
	put(t, admin, d.Node, "small", "little", 0)
	shut := put(t, admin, d.Node, "shut", "secret", 0)
	if _, err := admin.SetAttr(ctx, nobody, shut.Node, mount.SetAttr{Valid: mount.SetMode, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	ann := mount.Caller{UID: 1000, GID: 1000}
	fs := user.FileSystem()
	if _, err := readPath(t, fs, ann, "d/small"); err != nil { // with that, all before is at the active
		t.Fatal(err)
	}
	at := ".Snapshot=" + time.Now().UTC().Format(time.RFC3339Nano)
	put(t, admin, d.Node, "large", "changed", mount.OpenTruncate)
	if _, err := admin.SetAttr(ctx, nobody, d.Node, mount.SetAttr{Valid: mount.SetMode, Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"large": old, "small": []byte("little")} {
		if got, err := readPath(t, fs, ann, at+"/d/"+name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(want))
		}
	}
	if got, err := readPath(t, fs, ann, at+"/d/shut"); !fault.Is(err, fault.Permission) {
		t.Errorf("a file that was not the user's to read: got %q, %v", got, err)
	}
	if got, err := readPath(t, fs, ann, "d/small"); !fault.Is(err, fault.Permission) {
		t.Errorf("the present: got %q, %v", got, err)
	}
}
