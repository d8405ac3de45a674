package cartwheel_test

import (
	"fmt"
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server/servertest"
)

// TestRmdir_OfWhatItEmptiedInAnotherSlice empties a directory that the client has
// exclusively, in a slice that the parent's active leads as well, and removes it at once.
// The names that went before may still be on their way.
func TestRmdir_OfWhatItEmptiedInAnotherSlice(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	ctx := t.Context()
	for round := range 5 {
		name := fmt.Sprint("d", round)
		d, err := cl.Mkdir(ctx, nobody, below(t, cl, ".RepLevel=1"), name, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			begin(t, cl, d.Node, fmt.Sprint(i), "content").done()
		}
		for i := range 20 {
			if err := cl.Unlink(ctx, nobody, d.Node, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := cl.Rmdir(ctx, nobody, mount.Root, name); err != nil {
			t.Errorf("round %d: removing the empty directory: %v", round, err)
		}
	}
}
