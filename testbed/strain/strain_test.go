package strain

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNotes_SumUpWhatWasDone(t *testing.T) {
	n := newNotes(30 * time.Second)
	end := func(at time.Duration, took time.Duration, err error) {
		n.began = time.Now().Add(-at) // so that it is at now
		n.note(time.Now().Add(-took), err)
	}
	for range 60 {
		end(time.Second, time.Millisecond, nil)
		end(12*time.Second, 2*time.Millisecond, nil)
	}
	for range 30 {
		end(25*time.Second, time.Second, nil)
		end(31*time.Second, time.Second, nil) // too late
		end(3*time.Second, time.Second, errors.New("refused"))
	}
	n.asked.Add(300)
	r := n.result()
	if r.done != 5 || r.worst != 3 || r.failed != 30 || r.asked != 10 {
		t.Errorf("done %g a second, in the worst ten seconds %g, failed %d, asked for %g; want 5, 3, 30, 10", r.done, r.worst, r.failed, r.asked)
	}
	if p := r.percentile(0.1); p < time.Millisecond || p >= 2*time.Millisecond {
		t.Errorf("a tenth took %v at most", p)
	}
	if p := r.percentile(1); p < time.Second || p >= 2*time.Second {
		t.Errorf("all took %v at most", p)
	}
}

func TestChanges_CountsThoseOfMembers(t *testing.T) {
	rows := func(text string) (out []row) {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := rows(`[{"id":1,"epoch":3,"members":[{"node":"a","state":"N"},{"node":"b","state":"N"}]},{"id":2,"epoch":5,"members":[]}]`)
	for text, want := range map[string]int{
		`[{"id":2,"epoch":5,"members":[]},{"id":1,"epoch":3,"members":[{"node":"a","state":"N"},{"node":"b","state":"N"}]}]`: 0,
		`[{"id":1,"epoch":4,"members":[{"node":"a","state":"N"},{"node":"b","state":"N"}]}]`:                                 1,
		`[{"id":1,"epoch":3,"members":[{"node":"a","state":"N"},{"node":"b","state":"F"}]},{"id":3,"epoch":1}]`:              2,
	} {
		if got := changes(before, rows(text)); got != want {
			t.Errorf("%d changes, want %d: %s", got, want, text)
		}
	}
}

func TestLookAt_CountsEveryFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1", "a/2", "b/1"} {
		if err := os.MkdirAll(filepath.Join(dir, name[:1]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := lookAt(t.Context(), dir); n != 3 || err != nil {
		t.Errorf("%d were looked at, %v; want 3", n, err)
	}
}

func TestTable_HasOneFigureALine(t *testing.T) {
	var out bytes.Buffer
	Table(&out, []Figure{{"files", 1e6, ""}, {"took", 1.25, "s"}})
	if got := strings.Fields(out.String()); strings.Join(got, " ") != "files 1000000 took 1.25 s" {
		t.Errorf("got %q", out.String())
	}
}
