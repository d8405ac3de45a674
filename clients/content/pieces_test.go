package content_test

import (
	"bytes"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
)

// TestReadPieces_EqualReadAt reads a file in order, by pieces, under every
// read path, clean and with bytes that are not committed, and with a hole.
func TestReadPieces_EqualReadAt(t *testing.T) {
	const size, step, hole = 8<<20 + 4321, 256 << 10, 5 << 20
	tests := []struct {
		name       string
		o          content.Options
		dirty      bool
		some, none bool // whether pieces must come, or must not
	}{
		{name: "range map and read-ahead", some: true},
		{name: "no range map", o: content.Options{NoRangeMap: true}, none: true},
		{name: "no read-ahead", o: content.Options{ReadAhead: -1}, none: true},
		{name: "dirty", dirty: true, none: true},
		{name: "a cache that holds little", o: content.Options{CacheBytes: 2 << 20}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cluster := contenttest.New()
			want := big(t, cluster, size)
			e, ctx := newEngine(t, cluster, tt.o)
			h := e.Open(object, cluster.Attr(object), content.Open{})
			defer h.Close()
			must(t, h.Allocate(ctx, 0x3, hole, step/2)) // a hole is punched
			must(t, h.Flush(ctx))
			clear(want[hole : hole+step/2])
			if tt.dirty {
				must(t, h.WriteAt(ctx, []byte("not committed"), 3<<20))
				copy(want[3<<20:], "not committed")
			}
			buf := make([]byte, step)
			came := 0
			for off := 0; off < size; off += step {
				pieces, n, err := h.ReadPieces(ctx, buf, uint64(off))
				must(t, err)
				got := buf[:n]
				if pieces != nil {
					came++
					if got = bytes.Join(pieces, nil); len(got) != n {
						t.Fatalf("%d bytes are said to come, %d came", n, len(got))
					}
				}
				if !bytes.Equal(got, want[off:min(off+step, size)]) {
					t.Fatalf("the bytes at %d are wrong (by pieces: %v)", off, pieces != nil)
				}
			}
			if tt.some && came < size/step/2 || tt.none && came > 0 {
				t.Errorf("%d of %d reads were answered by pieces", came, size/step+1)
			}
			if pieces, n, err := h.ReadPieces(ctx, buf, size); pieces != nil || n != 0 || err != nil {
				t.Errorf("at the end: %d pieces, %d bytes, %v, want nothing", len(pieces), n, err)
			}
		})
	}
}
