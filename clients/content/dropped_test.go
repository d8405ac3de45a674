package content_test

import (
	"bytes"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/geo-config/fault"
)

// TestHandle_ReadsOnWhereItsVersionIsDropped has another client replace what a
// handle reads, and the cluster drop what was there before.
func TestHandle_ReadsOnWhereItsVersionIsDropped(t *testing.T) {
	const size = 3 << 20
	second := random(2, size)
	for name, read := range map[string]func(*content.Handle) error{
		"ReadAt": func(h *content.Handle) error {
			buf := make([]byte, size)
			n, err := h.ReadAt(t.Context(), buf, 0)
			if err == nil && !bytes.Equal(buf[:n], second) {
				t.Errorf("ReadAt: %d bytes that are not those of the new version", n)
			}
			return err
		},
		"ReadPieces": func(h *content.Handle) error {
			buf := make([]byte, size)
			pieces, n, err := h.ReadPieces(t.Context(), buf, 0)
			if got := append(bytes.Join(pieces, nil), buf[:n*(1-min(1, len(pieces)))]...); err == nil && !bytes.Equal(got, second) {
				t.Errorf("ReadPieces: %d bytes that are not those of the new version", len(got))
			}
			return err
		},
		"SeekHole": func(h *content.Handle) error {
			at, err := h.SeekHole(t.Context(), 0)
			if err == nil && at != size {
				t.Errorf("SeekHole: %d, want the end", at)
			}
			return err
		},
	} {
		cluster := contenttest.New()
		writer := content.New(cluster, content.Options{})
		h := writer.Open(object, nil, content.Open{})
		stream(t.Context(), t, h, random(1, size))
		must(t, h.Flush(t.Context()))
		e := content.New(cluster, content.Options{})
		reader := e.Open(object, cluster.Attr(object), content.Open{})
		must(t, h.WriteAt(t.Context(), second, 0))
		must(t, h.Flush(t.Context()))
		cluster.Drop()
		if err := read(reader); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		reader.Close()
		h.Close()
		must(t, e.Close(t.Context()))
		must(t, writer.Close(t.Context()))
	}
}

// TestHandle_SaysWhatItsVersionLost has the cluster lose what the file still has.
func TestHandle_SaysWhatItsVersionLost(t *testing.T) {
	cluster := contenttest.New()
	e := content.New(cluster, content.Options{})
	lost := fault.E(fault.Missing, "test", "", "")
	cluster.Write(object, 0, random(1, 3<<20))
	cluster.SetFaults(func(c contenttest.Call) (o contenttest.Outcome) {
		if c == contenttest.Range || c == contenttest.GetChunks {
			o.Before = lost
		}
		return o
	})
	h := e.Open(object, cluster.Attr(object), content.Open{})
	if _, err := h.ReadAt(t.Context(), make([]byte, 100), 0); !fault.Is(err, fault.Missing) && !fault.Is(err, fault.IO) {
		t.Errorf("got %v, want what is missing", err)
	}
	h.Close()
	must(t, e.Close(t.Context()))
}
