package writelog

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func open(t *testing.T, dir string, o Options) (*Log, []content.Leftover) {
	t.Helper()
	l, left, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the test closed it, or the directory goes
	return l, left
}

func write(t *testing.T, l *Log, o ids.Object, off uint64, data string) uint64 {
	t.Helper()
	n, err := l.Write(content.Written{Object: o, Version: 7, Kind: content.WriteData, Offset: off, Data: []byte(data)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// crash ends a Log as the death of its process does: files and lock are let go.
func crash(l *Log) {
	l.mu.Lock()
	l.closed = true
	close(l.full)
	l.mu.Unlock()
	l.syncing.Wait()
	for _, s := range l.segments {
		_ = s.file.Close()
	}
	_ = l.lock.Close()
}

func TestLog_LeavesOverWhatIsNotDone(t *testing.T) {
	dir := t.TempDir()
	l, left := open(t, dir, Options{})
	if len(left) != 0 {
		t.Fatalf("a new journal has %d leftovers", len(left))
	}
	write(t, l, 1, 0, "one")
	two := write(t, l, 2, 10, "two")
	one := write(t, l, 1, 3, "more")
	write(t, l, 1, 9, "last")
	if _, err := l.Write(content.Written{Object: 2, Version: 9, Kind: content.WriteTruncate, Offset: 5, Who: []byte("ann")}); err != nil {
		t.Fatal(err)
	}
	if err := l.Begin(2, two, 0); err != nil {
		t.Fatal(err)
	}
	l.Done(1, 1, one, 8)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	crash(l)
	l, left = open(t, dir, Options{})
	if len(left) != 2 || left[0].Object != 1 || left[1].Object != 2 {
		t.Fatalf("got %+v", left)
	}
	a, b := left[0], left[1]
	if len(a.Writes) != 1 || string(a.Writes[0].Data) != "last" || a.Writes[0].Offset != 9 || a.Known != 8 || len(a.Sent) != 0 {
		t.Errorf("object 1: got %+v", a)
	}
	if len(b.Writes) != 2 || b.Writes[1].Kind != content.WriteTruncate || b.Writes[1].Offset != 5 || string(b.Writes[1].Who) != "ann" || b.Known != 9 || !slices.Equal(b.Sent, []content.Sent{{Upto: two}}) {
		t.Errorf("object 2: got %+v", b)
	}
	fresh := write(t, l, 1, 0, "fresh")
	l.Done(1, fresh, fresh, 20)
	crash(l)
	l, left = open(t, dir, Options{})
	if len(left) != 2 || len(left[0].Writes) != 1 || string(left[0].Writes[0].Data) != "last" {
		t.Fatalf("after a second crash: got %+v", left)
	}
	late := write(t, l, 2, 0, "written since")
	l.Forget(1, late-1)
	l.Forget(2, late-1)
	crash(l)
	l, left = open(t, dir, Options{})
	if len(left) != 1 || left[0].Object != 2 || len(left[0].Writes) != 1 || left[0].Writes[0].Number != late {
		t.Fatalf("what was written since is to be left; got %+v", left)
	}
	l.Forget(2, late)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, left = open(t, dir, Options{}); len(left) != 0 {
		t.Errorf("all is done, yet %+v is left", left)
	}
}

// TestLog_ALongWriteKeepsNoLaterOnes holds one write for long.
func TestLog_ALongWriteKeepsNoLaterOnes(t *testing.T) {
	const limit = 10000
	dir := t.TempDir()
	l, _ := open(t, dir, Options{SegmentBytes: limit})
	held := write(t, l, 99, 0, "held for long")
	if err := l.Begin(99, held, 5); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		n := write(t, l, 1, 0, string(make([]byte, 1000)))
		l.Done(1, n, n, 8)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := l.Bytes(); got > 5*limit {
		t.Errorf("one small write is not done, but %d bytes are kept", got)
	}
	crash(l)
	l, left := open(t, dir, Options{SegmentBytes: limit})
	if len(left) != 1 || len(left[0].Writes) != 1 || !slices.Equal(left[0].Sent, []content.Sent{{Upto: held, MtimeNs: 5}}) || left[0].Known != 7 {
		t.Fatalf("left over are %+v", left)
	}
	if w := left[0].Writes[0]; w.Number != held || string(w.Data) != "held for long" {
		t.Errorf("the write that was held is %+v", w)
	}
	l.Done(99, held, held, 9)
	write(t, l, 1, 0, "x")
	if got := l.Bytes(); got > 3*limit {
		t.Errorf("nearly all is done, but %d bytes are kept", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.wlog"))
	if len(files) > 3 {
		t.Errorf("%d files are left", len(files))
	}
}

// TestLog_DoneStaysDoneThoughItsNoteFailed fails the note of a commit, as a full
// disk does, and writes again.
func TestLog_DoneStaysDoneThoughItsNoteFailed(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	one := write(t, l, 1, 0, "committed")
	good := l.segments[0].file
	full, err := os.Open(good.Name()) // nothing can be written to it
	if err != nil {
		t.Fatal(err)
	}
	l.segments[0].file = full
	l.Done(1, one, one, 8)
	l.segments[0].file = good
	_ = full.Close() // it was only read
	write(t, l, 1, 0, "later")
	crash(l)
	_, left := open(t, dir, Options{})
	if len(left) != 1 || len(left[0].Writes) != 1 || string(left[0].Writes[0].Data) != "later" || left[0].Known != 8 {
		t.Errorf("left over are %+v", left)
	}
}

// TestLog_LaterWritesSayWhatWasDoneBefore loses the note of a commit with the
// end of its file, as a crash of the machine may.
func TestLog_LaterWritesSayWhatWasDoneBefore(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{SegmentBytes: 300})
	one := write(t, l, 1, 0, string(make([]byte, 100)))
	kept := l.segments[0].size
	write(t, l, 2, 0, "of another object")
	l.Done(1, one, one, 8)
	first := l.segments[0].file.Name()
	for len(l.segments) < 2 {
		write(t, l, 2, 0, string(make([]byte, 100)))
	}
	write(t, l, 1, 0, "later")
	crash(l)
	if err := os.Truncate(first, kept); err != nil {
		t.Fatal(err)
	}
	_, left := open(t, dir, Options{})
	if len(left) != 2 || len(left[1].Writes) != 1 && len(left[0].Writes) != 1 {
		t.Errorf("left over are %+v", left)
	}
}

func TestLog_CutsATornEndOff(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, Options{})
	write(t, l, 1, 0, "first")
	write(t, l, 1, 5, "second")
	crash(l)
	name := filepath.Join(dir, segmentName(1))
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len("second")+headSize; cut++ {
		if err := os.WriteFile(name, raw[:len(raw)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l, left, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 1 || len(left[0].Writes) != 1 || string(left[0].Writes[0].Data) != "first" {
			t.Fatalf("%d bytes cut off: got %+v", cut, left)
		}
		crash(l)
		_ = os.Remove(filepath.Join(dir, segmentName(2)))
	}
}

func TestOpen_RefusesForeignAndNewerFiles(t *testing.T) {
	for content, kind := range map[string]fault.Kind{
		"cartwheel wlog 3": fault.NewerVersion, "cartwheel wlog 1": fault.Corrupt, "something else, which is longer": fault.Corrupt,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(dir, Options{}); !fault.Is(err, kind) {
			t.Errorf("%q: got %v, want %v", content, err, kind)
		}
	}
	dir := t.TempDir()
	open(t, dir, Options{})
	if _, _, err := Open(dir, Options{}); !fault.Is(err, fault.Busy) {
		t.Errorf("a second process: got %v, want Busy", err)
	}
}

func TestLog_RefusesWritesOnceClosed(t *testing.T) {
	l, _ := open(t, t.TempDir(), Options{})
	_ = l.Close()
	if _, err := l.Write(content.Written{Object: 1, Kind: content.WriteData}); !fault.Is(err, fault.Closed) {
		t.Errorf("got %v, want Closed", err)
	}
}

func FuzzDecode(f *testing.F) {
	r := record{kind: 1, object: 5, number: 6, version: 7, offset: 8, length: 9, who: []byte("who"), data: []byte("data")}
	f.Add(append(r.head(nil), r.data...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, n := decode(b)
		if n == 0 {
			return
		}
		if again := append(r.head(nil), r.data...); !bytes.Equal(again, b[:n]) {
			t.Fatal("encoded again it is another")
		}
	})
}
