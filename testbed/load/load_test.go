package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// planted makes a small tree and returns its folder.
func planted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 3 {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i), "deep")
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range 5 {
			text := fmt.Sprintf("file %d %d\n", i, j)
			if j == 2 {
				text += "func main() {}\n"
			}
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", j)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestDoTree_ToolsAndWorkersDoTheSame(t *testing.T) {
	for _, workers := range []int{0, 1, 8} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			source, target := planted(t), filepath.Join(t.TempDir(), "copy")
			for _, w := range TreeWorks() {
				r, err := DoTree(t.Context(), w, TreeOptions{Source: source, Target: target, Workers: workers})
				if err != nil {
					t.Fatal(err)
				}
				counts := w != GrepTree && w != DeleteTree || workers > 0
				if counts && (r.Files != 15 || r.Folders != 7) || r.Seconds <= 0 {
					t.Errorf("%s: got %+v, want 15 files and 7 folders", w, r)
				}
				if w == GrepTree && r.Matches != 3 {
					t.Errorf("grep found %d files, want 3", r.Matches)
				}
				if w == CopyTree {
					if err := SameTree(t.Context(), source, target, 2); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the tree is still there: %v", err)
			}
		})
	}
}

func TestSameTree_FindsADifference(t *testing.T) {
	source, target := planted(t), filepath.Join(t.TempDir(), "copy")
	if _, err := Stage(t.Context(), source, target, 0); err != nil {
		t.Fatal(err)
	}
	if err := SameTree(t.Context(), source, target, 2); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(target, "d1", "deep", "f3")
	if err := os.WriteFile(file, []byte("file 9 9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := SameTree(t.Context(), source, target, 2); err == nil {
		t.Error("other bytes were not found")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := SameTree(t.Context(), source, target, 2); err == nil {
		t.Error("a missing file was not found")
	}
}

func TestStage_HoldsAsManyFilesAsAsked(t *testing.T) {
	target := filepath.Join(t.TempDir(), "stage")
	if _, err := Stage(t.Context(), planted(t), target, 7); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTree(target, 0)
	if err != nil || len(got.Files) != 7 {
		t.Errorf("got %d files, want 7: %v", len(got.Files), err)
	}
}

// warm is a folder whose caches stay.
type warm struct{ Folder }

func (warm) Forget(context.Context) error { return nil }

// forgetful loses an object.
type forgetful struct{ warm }

func (f forgetful) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := f.warm.Get(ctx, name)
	if strings.HasSuffix(name, "3") {
		data = bytes.ToUpper(data)
	}
	return data, err
}

func TestDoObjects_CountsAndCompares(t *testing.T) {
	o := ObjectOptions{Count: 5, Bytes: 100, Lists: 2, Seed: 3}
	r, err := DoObjects(t.Context(), warm{Folder(t.TempDir())}, o)
	if err != nil || len(r.Put) != 5 || len(r.Get) != 5 || len(r.List) != 2 || len(r.Delete) != 5 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := DoObjects(t.Context(), forgetful{warm{Folder(t.TempDir())}}, o); err == nil {
		t.Error("a wrong answer was taken")
	}
}

func TestStream_IsReadAsItWasWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large")
	const size = 3<<20 + 17
	w, err := WriteStream(t.Context(), file, size, 5)
	if err != nil || w.Bytes != size || w.Mbit() <= 0 {
		t.Fatalf("got %+v, %v", w, err)
	}
	if r, err := ReadStream(t.Context(), file, size, 5); err != nil || r.Bytes != size || r.Done[len(r.Done)-1] != size {
		t.Errorf("got %+v, %v", r, err)
	}
	for name, damage := range map[string]func() error{
		"a changed byte": func() error {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("????"), 2<<20)
			}
			return errors.Join(err, f.Close())
		},
		"a missing end": func() error { return os.Truncate(file, size-1) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadStream(t.Context(), file, size, 5); err == nil {
			t.Errorf("%s was not found", name)
		}
	}
}

// written runs writers for a moment and returns their folder and events.
func written(t *testing.T) (string, []Event, WriterOptions) {
	t.Helper()
	var log bytes.Buffer
	o := WriterOptions{Dir: t.TempDir(), Workers: 3, For: 300 * time.Millisecond, Bytes: 500, Seed: 9, Pause: time.Millisecond}
	if err := Writers(t.Context(), o, &log); err != nil {
		t.Fatal(err)
	}
	events, err := ReadEvents(&log)
	if err != nil {
		t.Fatal(err)
	}
	return o.Dir, events, o
}

// lastOf is the name that the last acknowledged op of that kind left.
func lastOf(t *testing.T, events []Event, op string) string {
	t.Helper()
	at := map[string]string{}
	for _, e := range events {
		at[e.Name] = e.Op
		if e.Op == OpRead {
			delete(at, e.Name)
		}
	}
	for name, last := range at {
		if last == op {
			return name
		}
	}
	t.Skipf("no file's last operation was %s", op)
	return ""
}

func TestVerify_FindsNoLossWhereNoneIs(t *testing.T) {
	dir, events, o := written(t)
	v, err := Verify(t.Context(), dir, events, o)
	if err != nil || len(v.Lost) > 0 || v.Acknowledged == 0 || v.Unknown > 0 {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestVerify_FindsWhatWasLost(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, dir string, events []Event) error{
		"a file": func(t *testing.T, dir string, events []Event) error {
			return os.Remove(filepath.Join(dir, lastOf(t, events, OpCreate)))
		},
		"the end of a file": func(t *testing.T, dir string, events []Event) error {
			return os.Truncate(filepath.Join(dir, lastOf(t, events, OpCreate)), 10)
		},
		"a replacement": func(t *testing.T, dir string, events []Event) error {
			name := lastOf(t, events, OpReplace)
			for _, e := range events {
				if e.Name == name && e.Op == OpCreate {
					return os.WriteFile(filepath.Join(dir, name), content(9, e.Version, 500), 0o644)
				}
			}
			return errors.New("nobody created it")
		},
		"a removal": func(t *testing.T, dir string, events []Event) error {
			return os.WriteFile(filepath.Join(dir, lastOf(t, events, OpDelete)), []byte("back"), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, events, o := written(t)
			if err := lose(t, dir, events); err != nil {
				t.Fatal(err)
			}
			v, err := Verify(t.Context(), dir, events, o)
			if err != nil || len(v.Lost) != 1 {
				t.Errorf("got %+v, %v, want one loss", v, err)
			}
		})
	}
}

func TestVerify_UnacknowledgedMayBeEither(t *testing.T) {
	dir := t.TempDir()
	o := WriterOptions{Bytes: 64, Seed: 1}
	events := []Event{
		{Op: OpCreate, Name: "a", Version: 1, Err: "timed out"}, // is not there
		{Op: OpCreate, Name: "b", Version: 2, Err: "timed out"}, // half of it is
		{Op: OpCreate, Name: "c", Version: 3}, {Op: OpReplace, Name: "c", Version: 4, Err: "timed out"},
		{Op: OpCreate, Name: "d", Version: 5}, {Op: OpDelete, Name: "d", Err: "timed out"},
	}
	for name, data := range map[string][]byte{"b": content(1, 2, 64)[:32], "c": content(1, 4, 64)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v, err := Verify(t.Context(), dir, events, o)
	if err != nil || len(v.Lost) > 0 || v.Unknown != 4 || v.Acknowledged != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
	events = append(events, Event{Op: OpRead, Name: "c", Version: 3, Wrong: true, Err: "no such file"})
	if v, _ = Verify(t.Context(), dir, events, o); len(v.Lost) != 1 {
		t.Errorf("a wrong read was not counted: %+v", v)
	}
}

func TestReadEvents_EndsAtACutLastLine(t *testing.T) {
	got, err := ReadEvents(strings.NewReader(`{"op":"create","name":"a"}` + "\n" + `{"op":"crea`))
	if err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ReadEvents(strings.NewReader("{\n{}\n")); err == nil {
		t.Error("a broken line in the middle was taken")
	}
}

func TestMain_PrintsJSON(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events")
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"tree copy " + data + "/t --source " + planted(t) + " --workers 2", `"files":15`},
		{"stream write " + data + "/s --size 1000", `"bytes":1000`},
		{"stream read " + data + "/s --size 1000", `"bytes":1000`},
		{"writers " + data + " --for 50ms --events " + events, ""},
		{"verify " + data + " --events " + events, `"lost":[]`},
	} {
		var out bytes.Buffer
		if err := Main(t.Context(), strings.Fields(c.args), &out); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: got %s, %v, want %s", c.args, out.String(), err, c.want)
		}
	}
	if err := Main(t.Context(), []string{"tree", "burn", data}, &bytes.Buffer{}); err == nil {
		t.Error("a work that does not exist was done")
	}
}

func TestSpread_TakesFoldersInTurn(t *testing.T) {
	got := spread([]string{"a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "c"})
	want := []string{"a/1", "b/1", "c", "a/2", "a/3", "b/2", "a/4"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDoTree_EndsWhereTheCopyFails(t *testing.T) {
	source, target := planted(t), filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(target, nil, 0o644); err != nil { // no folder can be made there
		t.Fatal(err)
	}
	if _, err := DoTree(t.Context(), CopyTree, TreeOptions{Source: source, Target: target, Workers: 4}); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want that it exists", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := DoTree(ctx, CopyTree, TreeOptions{Source: source, Target: target + "2", Workers: 4}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
}

func TestLatency_TimesEachWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	r, err := Latency(t.Context(), LatencyOptions{Dir: dir, Rounds: 3, Bytes: 100, Seed: 1})
	if errors.Is(err, os.ErrPermission) {
		t.Skip("only root may drop the kernel's caches")
	}
	if err != nil || len(r.Create) != 3 || len(r.Write) != 3 || len(r.Read) != 3 {
		t.Fatalf("got %+v (%v), want three of each", r, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 3 {
		t.Errorf("got %v (%v), want three files", names, err)
	}
}
