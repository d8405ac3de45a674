//go:build linux || darwin

package sending

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/clients/content/dirlock"
	"cartwheel.dev/geo-config/fault"
)

// TestReceive_GoesOnAfterEveryCut receives ever longer parts of a stream at one place, and
// then all of it. Nothing is there before.
func TestReceive_GoesOnAfterEveryCut(t *testing.T) {
	w := plant(t)
	w.change()
	to := filepath.Join(t.TempDir(), "copy")
	for _, since := range []string{"", "one"} {
		name, was := "one", map[string]string(nil)
		if since != "" {
			name, was = "two", described(t, to)
		}
		stream := w.send(name, since)
		for i, end := range ends(t, stream) {
			cut := end - int64(i%3)
			if cut == int64(len(stream)) {
				cut--
			}
			got, err := w.try(stream[:cut], to, 0, false)
			refused(t, "a part", err, fault.Closed, "nothing at the place has changed")
			if i > 1 && (got.From == 0 || got.From > cut) {
				t.Errorf("cut at %d: it began at %d", cut, got.From)
			}
			if since == "" {
				absent(t, to)
				continue
			}
			same(t, "after a part", to, was)
		}
		w.receive(stream, to)
		same(t, "the copy", to, described(t, w.at(name)))
	}
}

// TestReceive_TakesTheRestAlone receives a stream in two parts, cut around each record's end.
func TestReceive_TakesTheRestAlone(t *testing.T) {
	w := plant(t)
	stream, want := w.send("one", ""), described(t, w.at("one"))
	all := ends(t, stream)
	for i, end := range all[:len(all)-1] {
		if i%3 > 0 {
			continue
		}
		to := filepath.Join(t.TempDir(), "copy")
		_, err := w.try(stream[:end+2], to, 0, false)
		refused(t, "a part", err, fault.Closed, "--from")
		_, err = w.try(stream[end+1:], to, end+1, false)
		refused(t, "from elsewhere", err, fault.Conflict, "--from")
		_, err = w.try(stream[end:], to, end, false)
		must(t, err)
		if i%6 == 0 {
			same(t, "the copy", to, want)
		}
	}
	_, err := w.try(stream[all[0]:], filepath.Join(t.TempDir(), "copy"), all[0], false)
	refused(t, "where nothing was begun", err, fault.NotFound, "send all of it")
}

// TestReceive_GoesOnFromAnOlderState has the state of an earlier moment, as after a crash.
func TestReceive_GoesOnFromAnOlderState(t *testing.T) {
	w := plant(t)
	w.change()
	for _, since := range []string{"", "one"} {
		name := map[string]string{"": "one", "one": "two"}[since]
		stream := w.send(name, since)
		all := ends(t, stream)
		for i := 0; i+9 < len(all); i += 3 {
			to := filepath.Join(t.TempDir(), "copy")
			if since != "" {
				w.receive(w.send("one", ""), to)
			}
			_, err := w.try(stream[:all[i]], to, 0, false)
			refused(t, "a part", err, fault.Closed, "")
			state := filepath.Join(to+receivingSuffix, stateName)
			old, err := os.ReadFile(state)
			must(t, err)
			_, err = w.try(stream[:all[i+8]], to, 0, false)
			refused(t, "more", err, fault.Closed, "")
			must(t, os.WriteFile(state, old, 0o600))
			w.receive(stream, to)
			same(t, "the copy", to, described(t, w.at(name)))
		}
	}
}

// TestReceive_MixesNoStreams goes on with a stream that has the same header and other bytes.
func TestReceive_MixesNoStreams(t *testing.T) {
	w := plant(t)
	stream, to := w.send("one", ""), filepath.Join(t.TempDir(), "copy")
	_, err := w.try(stream[:len(stream)-100], to, 0, false)
	refused(t, "a part", err, fault.Closed, "")
	must(t, os.WriteFile(filepath.Join(w.at("one"), "a/small"), []byte("SMALL"), 0o640))
	_, err = w.try(w.send("one", ""), to, 0, false)
	refused(t, "another stream", err, fault.Conflict, "not received from this stream")
	absent(t, to)
	w.receive(stream, to)
}

func TestReceive_ShowsNothingOfADamagedStream(t *testing.T) {
	w := plant(t)
	stream := w.send("one", "")
	to := filepath.Join(t.TempDir(), "copy")
	for at := 0; at < len(stream); at += 1 + len(stream)/60 {
		bad := bytes.Clone(stream)
		bad[at] ^= 0x10
		_, err := w.try(bad, to, 0, false)
		if !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Closed) && !fault.Is(err, fault.NewerVersion) {
			t.Errorf("damaged at %d: got %v", at, err)
		}
		absent(t, to)
	}
	_, err := w.try(append(bytes.Clone(stream), 'x'), to, 0, false)
	refused(t, "with more behind its end", err, fault.Corrupt, "follows the end")
	_, err = Receive(t.Context(), &failing{bytes.NewReader(stream), 70_000}, Place{Path: to, unsynced: true})
	refused(t, "from a bad disk", err, fault.IO, "the line is gone")
	absent(t, to)
	w.receive(stream, to)
	same(t, "the copy", to, described(t, w.at("one")))
}

func TestReceive_RefusesWhatDoesNotFit(t *testing.T) {
	w := plant(t)
	w.change()
	must(t, os.Rename(w.receive(w.send("two", ""), filepath.Join(t.TempDir(), "x")).At, w.at("three")))
	one, two := w.send("one", ""), w.send("two", "one")
	to := filepath.Join(t.TempDir(), "copy")
	_, err := w.try(two, to, 0, false)
	refused(t, "a difference without a copy", err, fault.NotFound, "receive the whole stream of one first")
	must(t, os.Mkdir(to, 0o755), os.WriteFile(filepath.Join(to, "mine"), nil, 0o644))
	_, err = w.try(one, to, 0, false)
	refused(t, "at a place that is not empty", err, fault.NotEmpty, "name another place")
	_, err = w.try(two, to, 0, false)
	refused(t, "a difference to something else", err, fault.NotFound, "no copy")
	must(t, os.Remove(filepath.Join(to, "mine")))
	w.receive(one, to) // into the empty directory
	_, err = w.try(one, to, 0, false)
	refused(t, "the same again", err, fault.Duplicate, "already")
	_, err = w.try(w.send("three", "two"), to, 0, false)
	refused(t, "a difference from elsewhere", err, fault.Conflict, "--since one")
	_, err = w.try(two[:len(two)-30], to, 0, false)
	refused(t, "a part", err, fault.Closed, "continue the file")
	_, err = w.try(w.send("three", "one"), to, 0, false)
	refused(t, "beside a part of another one", err, fault.Exists, "remove the directory")
	must(t, os.RemoveAll(to+receivingSuffix), os.Mkdir(to+receivingSuffix, 0o700), os.WriteFile(to+receivingSuffix+"/mine", nil, 0o600))
	_, err = w.try(two, to, 0, false)
	refused(t, "where its directory is taken", err, fault.Exists, "move it away")
	must(t, os.RemoveAll(to+receivingSuffix))
	w.receive(two, to)
	_, err = w.try(two, to, 0, false)
	refused(t, "the same difference again", err, fault.Duplicate, "already")
}

// TestReceive_ChangesNoOthersWork has copies that were changed by hand.
func TestReceive_ChangesNoOthersWork(t *testing.T) {
	w := plant(t)
	w.change()
	one, two := w.send("one", ""), w.send("two", "one")
	for what, do := range map[string]func(p func(string) string) error{
		"a file that changes":            func(p func(string) string) error { return os.WriteFile(p("b/file"), []byte("mine"), 0o644) },
		"a file that changes attributes": func(p func(string) string) error { return os.WriteFile(p("a.c"), []byte("mine"), 0o644) },
		"a file that goes":               func(p func(string) string) error { return os.WriteFile(p("gone/one"), []byte("mine"), 0o644) },
		"a file in a directory that goes": func(p func(string) string) error {
			return os.WriteFile(p("gone/mine"), []byte("mine"), 0o644)
		},
		"a file at a new name":   func(p func(string) string) error { return os.WriteFile(p("new"), []byte("mine"), 0o644) },
		"a file that is missing": func(p func(string) string) error { return os.Remove(p("gone/two")) },
		"another type": func(p func(string) string) error {
			return errors.Join(os.Remove(p("b/file")), os.Symlink(os.DevNull, p("b/file")))
		},
		"a changed hidden middle": func(p func(string) string) error { return spoil(p("b/file")) },
	} {
		to := filepath.Join(t.TempDir(), "copy")
		w.receive(one, to)
		p := func(name string) string { return filepath.Join(to, name) }
		must(t, do(p))
		before := described(t, to)
		_, err := w.try(two, to, 0, true)
		refused(t, what+", tried", err, fault.Conflict, "undo that")
		_, err = w.try(two, to, 0, false)
		refused(t, what, err, fault.Conflict, "undo that")
		same(t, what, to, before)
	}
}

// spoil changes a byte of a file, and nothing that stat shows but the ctime.
func spoil(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0xff, 0xfe}, 100); err != nil {
		return err
	}
	return setModified(path, info.ModTime())
}

// TestReceive_FinishesWhatACrashLeft ends a receiving after each record that it puts to its
// place.
func TestReceive_FinishesWhatACrashLeft(t *testing.T) {
	w := plant(t)
	w.change()
	two, want := w.send("two", "one"), described(t, w.at("two"))
	base := filepath.Join(t.TempDir(), "copy")
	w.receive(w.send("one", ""), base)
	for after := 0; ; after += 2 {
		to := filepath.Join(t.TempDir(), "copy")
		if out, err := exec.Command("cp", "-a", base, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		must(t, save(to+receivedSuffix, &Record{Version: 1, Header: Header{Name: "one", Time: 100, Object: 7}}, true))
		x := &receiver{ctx: t.Context(), p: &Place{Path: to, unsynced: true, Progress: &Progress{}}, dir: to + receivingSuffix, r: reader{in: bytes.NewReader(two)}}
		h, err := x.begin(false)
		must(t, err, x.check(&h, false), x.open(&h, false), x.all())
		x.st.Whole = true
		must(t, x.save())
		b := builder{root: to, spare: filepath.Join(x.dir, newName)}
		n, files := 0, uint64(0)
		err = x.replay(func(rec record) error {
			if n++; n > after {
				return fault.E(fault.Canceled, "", "", "the power fails")
			}
			return b.record(rec, func() string { files++; return x.written(files - 1) })
		})
		x.close()
		if err == nil {
			break
		}
		if after%4 == 0 { // the stream is not needed any more, and another one finishes it, too
			_, err = w.try(w.send("one", ""), to, 0, false)
			refused(t, "another stream", err, fault.NotEmpty, "")
		} else {
			_, err = w.try(two, to, 0, false)
			must(t, err)
		}
		same(t, "after a crash", to, want)
		absent(t, to+receivingSuffix)
	}
}

// TestReceive_LeadsNowhereElse has streams that somebody made up.
func TestReceive_LeadsNowhereElse(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "x"), []byte("mine"), 0o644))
	dir := func(path string) *object { return &object{path: path, whole: true, mode: typeDir | 0o755} }
	file := func(path string) *object { return &object{path: path, whole: true, mode: typeRegular | 0o600} }
	out := &object{path: "a", whole: true, mode: typeLink | 0o777, target: outside}
	for what, records := range map[string][]interface{ encode() []byte }{
		"below a link":        {dir(""), out, file("a/x")},
		"a name above":        {dir(""), file("../x")},
		"a name within above": {dir(""), dir("b"), file("b/../../x")},
		"an absolute name":    {dir(""), file("/x")},
		"no directory":        {file("a/x")},
		"names out of order":  {dir(""), file("b"), file("a")},
		"a name twice":        {dir(""), file("b"), file("b")},
		"a link to above":     {dir(""), &link{path: "b", first: "../x"}},
		"a link by a link":    {dir(""), out, &link{path: "b", first: "a/x"}},
		"a removal":           {dir(""), &removed{path: "b", was: was{kind: typeRegular}}},
		"attributes alone":    {dir(""), &object{path: "b", mode: typeRegular | 0o600, was: &was{kind: typeRegular}}},
		"nothing":             {},
	} {
		var stream bytes.Buffer
		w := writer{out: &stream}
		must(t, w.begin(&Header{Name: "n", Time: 1, Object: 2, Names: 1}))
		for _, r := range records {
			kind := byte(recordObject)
			switch r.(type) {
			case *link:
				kind = recordLink
			case *removed:
				kind = recordRemoved
			}
			must(t, w.record(kind, r.encode()))
		}
		must(t, w.finish())
		to := filepath.Join(t.TempDir(), "copy")
		if _, err := Receive(t.Context(), &stream, Place{Path: to, unsynced: true}); err == nil {
			t.Errorf("%s: it was taken", what)
		}
		absent(t, to)
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 1 {
		t.Errorf("something was made outside: %v, %v", list, err)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || strings.TrimSpace(string(data)) != "mine" {
		t.Errorf("what is outside became %q, %v", data, err)
	}
}

// TestReceive_IsAloneAtItsPlace receives while another process does.
func TestReceive_IsAloneAtItsPlace(t *testing.T) {
	w := plant(t)
	stream, to := w.send("one", ""), filepath.Join(t.TempDir(), "copy")
	_, err := w.try(stream[:1000], to, 0, false)
	refused(t, "a part", err, fault.Closed, "")
	other, err := dirlock.Take(to + receivingSuffix)
	must(t, err)
	_, err = w.try(stream, to, 0, false)
	refused(t, "beside another process", err, fault.Busy, "wait for it")
	must(t, other.Close())
	w.receive(stream, to)
}

// TestReceive_ReplacesNothingThatCameMeanwhile has something come to the place once the stream
// was received and before it gets there.
func TestReceive_ReplacesNothingThatCameMeanwhile(t *testing.T) {
	w := plant(t)
	stream, to := w.send("one", ""), filepath.Join(t.TempDir(), "copy")
	x := &receiver{ctx: t.Context(), p: &Place{Path: to, unsynced: true, Progress: &Progress{}}, dir: to + receivingSuffix, r: reader{in: bytes.NewReader(stream)}}
	h, err := x.begin(false)
	must(t, err, x.check(&h, false), x.open(&h, false), x.all(), os.WriteFile(to, []byte("mine"), 0o600))
	refused(t, "at a file", x.publish(), fault.NotEmpty, "move it away")
	x.close()
	absent(t, to+receivedSuffix)
	if data, err := os.ReadFile(to); err != nil || string(data) != "mine" {
		t.Fatalf("the file became %q, %v", data, err)
	}
	must(t, os.Remove(to), os.Mkdir(to, 0o755), os.WriteFile(filepath.Join(to, "mine"), nil, 0o600))
	_, err = w.try(stream, to, 0, false)
	refused(t, "at a directory", err, fault.NotEmpty, "move it away")
	must(t, os.Remove(filepath.Join(to, "mine")))
	w.receive(stream, to)
	same(t, "the copy", to, described(t, w.at("one")))
}
