package tree

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// TestBatch_CarriesSmallContentOnce makes files of 4 KiB in one batch, and counts
// what its entry has with the results that are kept for retries.
func TestBatch_CarriesSmallContentOnce(t *testing.T) {
	const files, size = 200, MaxInline
	entry := func(keeps bool) (bytes, kept int) {
		c := newClerk(t)
		var all []*pb.Operation
		for i := range files {
			op := c.create(rootID, fmt.Sprint(i), TypeRegular|0o644)
			op.GetCreate().Commit = &pb.Commit{Keeps: keeps, Extents: []*pb.Extent{{Length: size, Source: &pb.Extent_BodyOffset{BodyOffset: uint64(i)}}}}
			all = append(all, op)
		}
		o := c.batch(alice, list(all...), make([]byte, size+files))
		if n := len(o.Result.Results); n != files {
			t.Fatalf("%d files of %d", n, files)
		}
		return len(AppendData(nil, o.Mutations, o.Inline)) + o.Beside, proto.Size(o.Result)
	}
	before, keptBefore := entry(false)
	after, kept := entry(true)
	t.Logf("%d files of %d bytes: the entry has %d bytes with results of %d, %d with %d where the caller keeps what it sent", files, size, before, keptBefore, after, kept)
	if keptBefore < files*size || kept > files*size/10 || after > before-files*size {
		t.Errorf("an entry of %d bytes with results of %d; where the caller keeps what it sent %d with %d", before, keptBefore, after, kept)
	}
}

// TestBatch_TakesAsManyFilesAsItsContentHasRoom counts files of 4 KiB.
func TestBatch_TakesAsManyFilesAsItsContentHasRoom(t *testing.T) {
	fits := func(keeps bool) int {
		c := newClerk(t)
		var all []*pb.Operation
		for i := range 1000 {
			op := c.create(rootID, fmt.Sprint(i), TypeRegular|0o644)
			op.GetCreate().Commit = &pb.Commit{Keeps: keeps, Extents: []*pb.Extent{{Length: MaxInline, Source: &pb.Extent_BodyOffset{}}}}
			all = append(all, op)
		}
		return len(c.batch(alice, list(all...), make([]byte, MaxInline)).Result.Results)
	}
	before, after := fits(false), fits(true)
	t.Logf("%d files of 4 KiB in a batch, %d where the caller keeps what it sent", before, after)
	if after < 2*before {
		t.Errorf("%d files, then %d", before, after)
	}
}

// TestCommit_LeavesOutOnlyWhatTheCallerSent commits parts of a small file.
func TestCommit_LeavesOutOnlyWhatTheCallerSent(t *testing.T) {
	w := newWorld(t, 1, 1)
	p := w.places[1]
	r, _ := w.run(rootID, Principal{}, 0, createOp(rootID, "f", TypeRegular|0o644), nil)
	size := func(n uint64) *uint64 { return &n }
	part := func(offset, length uint64) []*pb.Extent {
		return []*pb.Extent{{Offset: offset, Length: length, Source: &pb.Extent_BodyOffset{}}}
	}
	for _, x := range []struct {
		what   string
		commit *pb.Commit
		sent   bool
		want   string
	}{
		{"what an empty file gets", &pb.Commit{Keeps: true, Extents: part(0, 4)}, true, "wxyz"},
		{"a part of what is there", &pb.Commit{Keeps: true, Extents: part(1, 2)}, false, "wwxz"},
		{"all of what is there", &pb.Commit{Keeps: true, Extents: part(0, 4)}, true, "wxyz"},
		{"all, but the caller keeps nothing", &pb.Commit{Extents: part(0, 4)}, false, "wxyz"},
		{"the start, and no more is left", &pb.Commit{Keeps: true, Size: size(0), Extents: part(0, 2)}, true, "wx"},
		{"what is appended", &pb.Commit{Keeps: true, Append: true, Extents: part(0, 2)}, false, "wxwx"},
		{"an end behind a gap", &pb.Commit{Keeps: true, Size: size(0), Extents: part(3, 1)}, true, "\x00\x00\x00w"},
		{"more than lies beside the record", &pb.Commit{Keeps: true, Extents: part(0, MaxInline+1)}, false, strings.Repeat("0", MaxInline+1)},
	} {
		x.commit.Object = r.Attr.Object
		body := []byte("wxyz")
		if n := x.commit.Extents[0].Length; n > MaxInline {
			body = bytes.Repeat([]byte("0"), int(n))
		}
		c := w.context(p, Principal{})
		o := Evaluate(p.over, w, c, &pb.Operation{Op: &pb.Operation_Commit{Commit: x.commit}}, body)
		if !o.Done() {
			t.Fatalf("%s: not done: %+v", x.what, o)
		}
		w.commit(p, c, o)
		got := o.Result.Attr.Content
		if got.Sent != x.sent || x.sent && len(got.Inline) > 0 {
			t.Errorf("%s: got %v", x.what, got)
		}
		a, err := GetAttr(p.over, ids.Object(r.Attr.Object), true, false)
		if err != nil || string(w.content(a)) != x.want {
			t.Errorf("%s: the file has %q, want %q (%v)", x.what, w.content(a), x.want, err)
		}
	}
}
