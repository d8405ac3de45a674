//go:build linux || darwin

package sending

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

func TestReceive_MakesTheSameTree(t *testing.T) {
	w := plant(t)
	stream, to := w.send("one", ""), filepath.Join(t.TempDir(), "copy")
	if n := len(stream); n > 4*pieceBytes+20_000 {
		t.Errorf("the stream has %d bytes, so that holes are in it", n)
	}
	dry, err := w.try(stream, to, 0, true)
	must(t, err)
	absent(t, to)
	absent(t, to+receivingSuffix)
	got := w.receive(stream, to)
	if got != dry || got.Changes != got.Names || got.Names != 25 || got.At != to {
		t.Errorf("got %+v, and a dry run said %+v", got, dry)
	}
	same(t, "the copy", to, described(t, w.at("one")))
	if !bytes.Equal(stream, w.send("one", "")) {
		t.Error("the stream is another one the second time")
	}
}

func TestReceive_MakesACopyCurrent(t *testing.T) {
	w := plant(t)
	w.change()
	to := filepath.Join(t.TempDir(), "copy")
	w.receive(w.send("one", ""), to)
	difference := w.send("two", "one")
	if n := len(difference); n > 2*pieceBytes {
		t.Errorf("the difference has %d bytes, and one piece of a file changed", n)
	}
	if bytes.Contains(difference, []byte("locked")) {
		t.Error("the difference names what did not change")
	}
	before := described(t, to)
	dry, err := w.try(difference, to, 0, true)
	must(t, err)
	same(t, "after a dry run", to, before)
	if got := w.receive(difference, to); got != dry {
		t.Errorf("got %+v, and a dry run said %+v", got, dry)
	}
	same(t, "the copy", to, described(t, w.at("two")))
	// And back again, as if that were later.
	must(t, os.Rename(w.at("one"), w.at("three")))
	w.receive(w.send("three", "two"), to)
	same(t, "the copy of the third", to, described(t, w.at("three")))
}

// TestSend_GoesOnWhereItWasCut continues streams from around the end of every record.
func TestSend_GoesOnWhereItWasCut(t *testing.T) {
	w := plant(t)
	w.change()
	for _, since := range []string{"", "one"} {
		whole := w.send("two", since)
		file := filepath.Join(t.TempDir(), "stream")
		for i, end := range ends(t, whole) {
			for _, cut := range []int64{end, end - 3} {
				if cut == int64(len(whole)) {
					continue
				}
				must(t, os.WriteFile(file, whole[:cut], 0o600))
				f, err := os.OpenFile(file, os.O_RDWR, 0)
				must(t, err)
				sent, err := Resume(t.Context(), f, w.source("two", since))
				must(t, err, f.Close())
				got, err := os.ReadFile(file)
				must(t, err)
				if !bytes.Equal(got, whole) || sent.From > cut || sent.Size != int64(len(whole)) {
					t.Fatalf("since %q, cut at %d in record %d: it became another stream, %+v", since, cut, i, sent)
				}
				if i%5 > 0 {
					continue
				}
				var rest bytes.Buffer
				_, err = Send(t.Context(), &rest, cut, w.source("two", since))
				must(t, err)
				if !bytes.Equal(rest.Bytes(), whole[cut:]) {
					t.Fatalf("since %q, from %d: it is another stream", since, cut)
				}
			}
		}
	}
}

// TestSend_MendsWhatIsDamaged continues a file whose middle is damaged.
func TestSend_MendsWhatIsDamaged(t *testing.T) {
	w := plant(t)
	whole := w.send("one", "")
	bad := bytes.Clone(whole)
	bad[len(bad)/2] ^= 1
	file := filepath.Join(t.TempDir(), "stream")
	must(t, os.WriteFile(file, bad, 0o600))
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = Resume(t.Context(), f, w.source("one", ""))
	must(t, err)
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("it became another stream: %v", err)
	}
	_, err = Resume(t.Context(), f, w.source("one", ""))
	refused(t, "a whole one", err, fault.Exists, "whole already")
}

func TestSend_RefusesWhatCannotBe(t *testing.T) {
	w := plant(t)
	w.change()
	file := filepath.Join(t.TempDir(), "stream")
	must(t, os.WriteFile(file, w.send("one", "")[:500], 0o600))
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = Resume(t.Context(), f, w.source("two", ""))
	refused(t, "of another snapshot", err, fault.Conflict, "name another file")
	must(t, os.WriteFile(file+"2", []byte("something else entirely"), 0o600))
	other, err := os.OpenFile(file+"2", os.O_RDWR, 0)
	must(t, err)
	defer other.Close()
	_, err = Resume(t.Context(), other, w.source("two", ""))
	refused(t, "no stream", err, fault.Corrupt, "no stream")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx         context.Context
		name, since string
		from        int64
		kind        fault.Kind
		says        string
	}{
		{t.Context(), "one", "two", 0, fault.Invalid, "is not before"},
		{t.Context(), "one", "one", 0, fault.Invalid, "is not before"},
		{t.Context(), "now", "", 0, fault.Invalid, "no snapshot"},
		{t.Context(), "-1h", "", 0, fault.Invalid, "another moment each time"},
		{t.Context(), "none", "", 0, fault.NotFound, "none"},
		{t.Context(), "two", "none", 0, fault.NotFound, "none"},
		{t.Context(), "two", "", 1 << 40, fault.Invalid, "something else"},
		{gone, "two", "", 0, fault.Canceled, ""},
	} {
		var out bytes.Buffer
		_, err := Send(c.ctx, &out, c.from, w.source(c.name, c.since))
		refused(t, c.name+" since "+c.since, err, c.kind, c.says)
		if out.Len() > 0 && c.ctx == t.Context() {
			t.Errorf("%s since %s: %d bytes were written", c.name, c.since, out.Len())
		}
	}
}

// TestSend_TakesOneFile sends a path that is no directory.
func TestSend_TakesOneFile(t *testing.T) {
	w := plant(t)
	src := w.source("one", "")
	moment := src.Moment
	root := w.at("one")
	src.Path = filepath.Join(w.dir, "b/file")
	src.Moment = func(path string) (earlier.Moment, error) {
		if path != filepath.Join(root, "b/file") {
			t.Errorf("it asked for %s", path)
		}
		return moment(root)
	}
	var out bytes.Buffer
	_, err := Send(t.Context(), &out, 0, src)
	must(t, err)
	to := filepath.Join(t.TempDir(), "copy")
	w.receive(out.Bytes(), to)
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, noise(2*pieceBytes+7)) {
		t.Errorf("the copy differs: %d bytes, %v", len(got), err)
	}
}

// TestStream_IsAsDocumented compares numbers with docs/formats/sent.md, and a stream with its
// example.
func TestStream_IsAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats/sent.md")
	must(t, err)
	if magic != "cartwheel sent 1" || pieceBytes != 64<<10 || keptBytes != 64<<20 || maxBody != 1<<20 || sumBytes != 16 || fileVersion != 1 || chunk.AddressSize != 32 {
		t.Error("a number changed")
	}
	for _, want := range []string{"`cartwheel sent 1`", "64 KiB", "64 MiB", "1 MiB", "16 bytes"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	var out bytes.Buffer
	w := writer{out: &out}
	must(t, w.begin(&Header{Name: "n", Time: 1, Object: 2, Path: "/p", Names: 1}))
	if n := out.Len(); n != 16+5+5*8+3*4+3+16 {
		t.Errorf("the header takes %d bytes", n)
	}
}

// TestKept_EndsAtItsBound sends a range that is larger than a record takes.
func TestKept_EndsAtItsBound(t *testing.T) {
	var out bytes.Buffer
	w := writer{out: &out}
	must(t, w.begin(&Header{Time: 1}))
	k, piece := kept{out: &w}, noise(pieceBytes)
	const first, all = 3, keptBytes/pieceBytes + 5
	for i := uint64(first); i < all; i++ {
		must(t, k.add(i*pieceBytes, piece))
	}
	must(t, k.flush(), w.finish())
	r := reader{in: &out}
	_, err := r.begin()
	must(t, err)
	for _, want := range []data{{offset: first * pieceBytes, length: keptBytes - first*pieceBytes}, {offset: keptBytes, length: 5 * pieceBytes}} {
		rec, err := r.next()
		must(t, err)
		if got, err := decodeKept(rec.body); err != nil || got.offset != want.offset || got.length != want.length {
			t.Errorf("got %d bytes at %d, %v, want %d at %d", got.length, got.offset, err, want.length, want.offset)
		}
	}
}
