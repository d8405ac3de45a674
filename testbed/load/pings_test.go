package load

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// pinged runs two hosts in one folder and returns the events of both.
func pinged(t *testing.T, dir string) []PingEvent {
	t.Helper()
	logs := make([]bytes.Buffer, 2)
	errs := make(chan error)
	for i, host := range []string{"a", "b"} {
		o := PingOptions{Dir: dir, Host: host, Peers: map[string]string{[]string{"b", "a"}[i]: "127.0.0.1:1"}, For: 300 * time.Millisecond, Every: 10 * time.Millisecond}
		go func() { errs <- Pings(t.Context(), o, &logs[i]) }()
	}
	for range logs {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadPingEvents(strings.NewReader(logs[0].String() + logs[1].String()))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPings_EachHostReadsTheOthers(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, host), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for _, e := range pinged(t, dir) {
		if e.Err != "" || e.Back || len(e.Is.RTT) != 1 || e.Age() < 0 {
			t.Errorf("got %+v: a port that refuses is an answer", e)
		}
		if seen[e.By+" "+e.Op+" "+e.Is.Host]++; e.Op == OpRead && e.By == e.Is.Host {
			t.Errorf("%s read its own file", e.By)
		}
	}
	if len(seen) != 4 {
		t.Errorf("got %v, want writes and reads of both", seen)
	}
}

func TestPings_NotesWhatFailed(t *testing.T) {
	dir := t.TempDir() // no host has a folder
	failed := 0
	for _, e := range pinged(t, dir) {
		if e.Op == OpReplace && e.Err != "" {
			failed++
		}
	}
	if failed == 0 {
		t.Error("writes into a folder that is not there were no errors")
	}
	if err := Pings(t.Context(), PingOptions{Dir: dir, Host: "a"}, &bytes.Buffer{}); !fault.Is(err, fault.Usage) {
		t.Errorf("no peers: got %v", err)
	}
}

func TestLook_SeesThatAVersionWentBack(t *testing.T) {
	o := PingOptions{Dir: t.TempDir(), Host: "a"}
	if err := os.Mkdir(filepath.Join(o.Dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := os.WriteFile(filepath.Join(o.Dir, pingFile("b")), []byte(`{"host":"b","version":3}`), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &eventLog{w: bufio.NewWriter(&log)}
	last := uint64(4)
	if err := o.look("b", &last, l); err != nil || l.flush() != nil {
		t.Fatal(err)
	}
	if got, err := ReadPingEvents(&log); err != nil || len(got) != 1 || !got[0].Back || last != 4 {
		t.Errorf("got %+v, %v; want that version 3 came behind 4", got, err)
	}
}
