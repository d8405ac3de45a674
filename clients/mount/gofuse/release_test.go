//go:build linux

package gofuse

import (
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// pruning is a kernel that gives up nodes by number, or does not know how.
type pruning struct {
	recorder
	answer fuse.Status
}

func (p *pruning) PruneNotify(node uint64) fuse.Status {
	p.note("prune %d", node)
	return p.answer
}

// TestRelease_GivesUpInodesOrElseNames asks kernels of three kinds to give up
// two files and a folder.
func TestRelease_GivesUpInodesOrElseNames(t *testing.T) {
	plain := &recorder{}
	able, busy, old := &pruning{answer: fuse.OK}, &pruning{answer: fuse.ENOENT}, &pruning{answer: fuse.EINVAL}
	for what, each := range map[string]struct {
		kernel kernel
		notes  *recorder
		want   []string
	}{
		"by number":   {able, &able.recorder, []string{"prune 8", "prune 9", "prune 10"}},
		"in use":      {busy, &busy.recorder, []string{"prune 8", "prune 9", "prune 10"}},
		"not known":   {old, &old.recorder, []string{"prune 8", "entry 7 a", "entry 7 b"}},
		"names alone": {plain, plain, []string{"entry 7 a", "entry 7 b"}},
	} {
		n := newNotifier()
		n.start(each.kernel)
		n.Release(8, 7, "a")
		n.Release(9, 7, "b")
		n.Release(10, 7, "") // a folder
		drained(t, n)
		if got := each.notes.list(); !slices.Equal(got, each.want) {
			t.Errorf("%s: the kernel is told %q, want %q", what, got, each.want)
		}
		n.close()
		n.wait()
	}
}

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}
