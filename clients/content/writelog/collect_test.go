package writelog

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"cartwheel.dev/clients/content"
)

// TestLog_KeepsNotesOfWhatAFileThatStaysHas moves a write that stays live from
// file to file, beside one that is done, and begins again from what is on disk
// after every one of many writes. The one that is done must not come back.
func TestLog_KeepsNotesOfWhatAFileThatStaysHas(t *testing.T) {
	dir := t.TempDir()
	looks := 0
	look := func() {
		t.Helper()
		looks++
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatalf("look %d: %v", looks, err)
		}
		l, left, err := Open(copied, Options{})
		if err != nil {
			t.Fatalf("look %d: %v", looks, err)
		}
		crash(l)
		if len(left) == 0 || left[0].Object != 1 || slices.ContainsFunc(left, func(o content.Leftover) bool { return o.Object == 2 }) {
			t.Fatalf("look %d: left over is %+v; want the write that stays, and not the one that is done", looks, left)
		}
	}
	l, _ := open(t, dir, Options{SegmentBytes: 1000})
	pass := func() {
		n := write(t, l, 3, 0, strings.Repeat("x", 200))
		l.Done(3, n, n, 8)
	}
	write(t, l, 1, 0, "live")
	done := write(t, l, 2, 0, "done")
	for len(l.segments) < 2 {
		pass()
	}
	l.Done(2, done, done, 8)
	first := l.segments[0].number
	for range 100 {
		pass()
		look()
	}
	if l.segments[0].number == first {
		t.Error("the first file never went")
	}
	crash(l)
}

// TestLog_LaterNotesSayWhatWasDoneBefore loses the note of a commit with the end
// of its file, as a power cut may, and keeps that of a later commit.
func TestLog_LaterNotesSayWhatWasDoneBefore(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{SegmentBytes: 500})
	one, two := write(t, l, 1, 0, strings.Repeat("1", 60)), write(t, l, 1, 0, strings.Repeat("2", 60))
	write(t, l, 2, 0, "of another object, which keeps the file")
	kept, first := l.segments[0].size, l.segments[0].file.Name()
	l.Done(1, one, one, 8)
	for len(l.segments) < 2 {
		write(t, l, 2, 0, strings.Repeat("x", 60))
	}
	l.Done(1, two, two, 9)
	crash(l)
	if err := os.Truncate(first, kept); err != nil {
		t.Fatal(err)
	}
	_, left := open(t, dir, Options{})
	for _, o := range left {
		if o.Object == 1 {
			t.Errorf("left over is %q with version %d known: it would go over what followed it", texts(o), o.Known)
		}
	}
}

// TestLog_TakesNoWriteWhoseMoveCouldNotBeSynced fails the sync of what was moved:
// the write that had it moved must hear of it.
func TestLog_TakesNoWriteWhoseMoveCouldNotBeSynced(t *testing.T) {
	broken := errors.New("broken")
	l, _ := open(t, t.TempDir(), Options{SegmentBytes: 1000, Sync: func(*os.File) error { return broken }})
	close(l.full) // the background ends: the move alone syncs
	l.syncing.Wait()
	l.full = make(chan struct{}, 1)
	write(t, l, 1, 0, "it stays")
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		var n uint64
		n, err = l.Write(content.Written{Object: 2, Version: 7, Kind: content.WriteData, Data: make([]byte, 200)})
		if err == nil && l.err != nil {
			t.Fatal("a write was taken after a sync had failed")
		}
		l.Done(2, n, n, 8)
	}
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the failed sync", err)
	}
	crash(l)
}

func texts(o content.Leftover) (out []string) {
	for _, w := range o.Writes {
		out = append(out, string(w.Data))
	}
	return out
}
