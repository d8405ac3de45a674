//go:build linux

package cartwheel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
	"golang.org/x/sys/unix"
)

// orderSnapshot has a node make or delete a snapshot, and returns its time.
func orderSnapshot(t *testing.T, c *servertest.Cluster, req *pb.SnapshotRequest) hlc.Time {
	t.Helper()
	var made pb.SnapshotResponse
	b, err := c.Connect("root").Call(t.Context(), c.Nodes[0].ID(), wire.Operation, method.Snapshot, req, nil, &made)
	b.Release()
	must(t, err)
	return hlc.Time(made.Snapshot.Hlc)
}

// TestSnapshot_IsTheTreeAsItWas makes a snapshot of a tree over two sites, changes all of
// it and retains nothing. What is below its name is a copy that was made then, at two mounts
// and after a takeover. It tells what changed, and a restore is the same again. Once it is
// deleted, its name is refused.
func TestSnapshot_IsTheTreeAsItWas(t *testing.T) {
	t.Parallel()
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) {
		c.Lease, c.Session, c.Retention, c.UploadGrace = time.Second, time.Second, 0, time.Second
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	one, two := mounted(t, clientOf(t, c, "a")), mounted(t, clientOf(t, c, "b"))
	tree := filepath.Join(one, "tree")
	plantPast(t, tree)
	want := described(t, filepath.Join(two, "tree")) // all of it is at the actives then
	copied := filepath.Join(t.TempDir(), "copy")
	output(t, "cp", "-a", filepath.Join(two, "tree"), copied)
	at := orderSnapshot(t, c, &pb.SnapshotRequest{Make: "before"})

	for _, dir := range []string{"near", "far"} { // what no snapshot shows
		name := filepath.Join(two, "tree", dir, "brief")
		must(t, os.WriteFile(name, noise(100_000), 0o644))
		_, err := os.ReadFile(filepath.Join(tree, dir, "brief")) // and all is at the active
		must(t, err, os.Remove(filepath.Join(tree, dir, "brief")))
	}
	changePast(t, filepath.Join(two, "tree"))
	now := described(t, tree)
	// A moment later is given up in the slices of both sites, so what goes is collected there.
	// Each look takes another moment, since a mount keeps what it was shown of the past. All
	// of them are before the horizon of the first collection.
	moment := at.Wall()
	for _, dir := range []string{"near", "far"} {
		servertest.Await(ctx, t, "a time after the snapshot to be given up", func() error {
			moment = moment.Add(20 * time.Microsecond)
			if _, err := os.ReadDir(filepath.Join(tree, dir, ".Snapshot="+moment.Format(time.RFC3339Nano))); !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("in %s as of %v: got %w", dir, moment, err)
			}
			return nil
		})
	}
	for _, past := range []string{filepath.Join(tree, ".Snapshot=before"), filepath.Join(two, ".Snapshot=before", "tree")} {
		sameTree(t, past, described(t, past), want)
		output(t, "diff", "-r", "--no-dereference", copied, past)
	}
	sameTree(t, "the present", described(t, tree), now)
	tellsChanges(t, tree)
	restores(t, tree, copied, want)

	c.Active(ids.RootSlice).Kill()
	three := mounted(t, clientOf(t, c, "c"))
	sameTree(t, "after a takeover", described(t, filepath.Join(three, ".Snapshot=before", "tree")), want)

	other := c.Nodes[0]
	if other.Server() == nil {
		other.Start()
	}
	orderSnapshot(t, c, &pb.SnapshotRequest{Delete: "before"})
	servertest.Await(ctx, t, "the name to be unknown", func() error {
		if _, err := os.Stat(filepath.Join(three, ".Snapshot=before")); !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// tellsChanges compares what changePast did with what a comparison tells.
func tellsChanges(t *testing.T, tree string) {
	t.Helper()
	changes, err := earlier.Diff(t.Context(), tree, "before", earlier.Now)
	must(t, err)
	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.What, c.From, c.Path, c.Also)))
	}
	text := strings.Join(lines, "\n")
	for _, line := range []string{
		"content  near/small", "moved near/other name far/other name content", "attributes  near", "content  far/middle", "removed  far/empty",
		"added  far/link", "removed  far/link", "moved near/deep far/moved", "moved near/deep/large far/moved/large content", "removed  near/deep/deeper/07", "added  far/new",
	} {
		if !strings.Contains(text+"\n", line+"\n") {
			t.Errorf("the comparison does not say %q:\n%s", line, text)
			return
		}
	}
	if strings.Contains(text, "far/kept") {
		t.Errorf("the comparison names what did not change:\n%s", text)
	}
	same, err := earlier.Diff(t.Context(), tree, "before", "before")
	if err != nil || len(same) > 0 {
		t.Errorf("a snapshot compared with itself: %v, %v", same, err)
	}
}

// restores restores the tree beside itself and over itself.
func restores(t *testing.T, tree, copied string, want map[string]string) {
	t.Helper()
	ctx, to := t.Context(), tree+"-as-it-was"
	dry, err := earlier.Restore(ctx, tree, "before", to, earlier.How{DryRun: true})
	if _, bad := os.Lstat(to); err != nil || !errors.Is(bad, unix.ENOENT) {
		t.Errorf("a dry run: %v, and the place: %v", err, bad)
	}
	got, err := earlier.Restore(ctx, tree, "before", to, earlier.How{})
	if err != nil || got.Names != dry.Names || got.Bytes != dry.Bytes || got.Names < 50 {
		t.Fatalf("got %+v, %v, and said %+v before", got, err, dry)
	}
	output(t, "diff", "-r", "--no-dereference", copied, to)
	sameAttributes(t, to, want)
	if _, err := earlier.Restore(ctx, tree, "before", to, earlier.How{}); !fault.Is(err, fault.Exists) {
		t.Errorf("over live data: got %v, want Exists", err)
	}
	must(t, os.WriteFile(filepath.Join(to, "live"), []byte("live"), 0o644))
	again, err := earlier.Restore(ctx, tree, "before", to, earlier.How{Replace: true})
	must(t, err)
	if _, err := os.Stat(filepath.Join(again.Aside, "live")); err != nil {
		t.Errorf("what was replaced is not beside: %v", err)
	}
	output(t, "diff", "-r", "--no-dereference", copied, to)
	gone := filepath.Join(tree, "near/deep/deeper") // its parent is gone, too
	if _, err := earlier.Restore(ctx, gone, "before", filepath.Join(tree, "deeper"), earlier.How{}); err != nil {
		t.Errorf("what was removed: %v", err)
	}
	output(t, "diff", "-r", filepath.Join(copied, "near/deep/deeper"), filepath.Join(tree, "deeper"))
}

// sameAttributes compares what a copy keeps of attributes.
func sameAttributes(t *testing.T, got string, want map[string]string) {
	t.Helper()
	strip := func(tree map[string]string) map[string]string {
		tree = maps.Clone(tree)
		for path, text := range tree {
			head, tail, _ := strings.Cut(text, " ctime ")
			_, tail, _ = strings.Cut(tail, " ")
			if strings.HasPrefix(head, "mode 4") { // sizes of directories are the file system's
				head = strings.Split(head, " size ")[0]
			}
			tree[path] = head + " " + tail
		}
		return tree
	}
	sameTree(t, "restored", strip(described(t, got)), strip(want))
}
