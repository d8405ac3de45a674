package command

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"cartwheel.dev/clients/history"
)

func TestHistory_SaysHowToRestore(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 123_456_789, time.UTC)
	v := historyView{Path: "d/f", History: history.History{More: true, Versions: []history.Version{
		{Time: at.Add(time.Hour), What: history.Removed},
		{Time: at, What: history.Written, Size: 2048, Object: "1.2", Snapshot: ".Snapshot=x"},
		{Time: at.Add(-time.Hour), What: history.Created, Object: "1.2", Snapshot: ".Snapshot=y"},
	}}}
	var out bytes.Buffer
	historyText(&out, "d/", "f", &v)
	for _, want := range []string{
		`(?m)^TIME +SIZE +WHAT$`, `(?m)^2026-\S+ +- +removed$`, `(?m)^2026-\S+\.124\S+ +2\.0 KiB +written$`, `(?m)^2026-\S+ +0 B +created$`, `(?m)^there are older ones$`,
		`(?m)^To restore one: cp d/\.Snapshot=2026-\S+\.124\S+/f d/f$`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("got\n%s, want a line like %s", &out, want)
		}
	}
	out.Reset()
	historyText(&out, "d/", "f", &historyView{History: history.History{Versions: v.Versions[:1]}})
	if bytes.Contains(out.Bytes(), []byte("restore")) {
		t.Errorf("got\n%s, and nothing can be restored", &out)
	}
}

// TestHistoryTime_IsNoEarlier shows a version by a time at which it is there.
func TestHistoryTime_IsNoEarlier(t *testing.T) {
	for _, ns := range []int{0, 1, 999_999, 1_000_000} {
		at := time.Date(2026, 11, 22, 10, 0, 0, ns, time.UTC)
		got, err := time.Parse(time.RFC3339Nano, historyTime(at))
		if err != nil || got.Before(at) || got.Sub(at) >= time.Millisecond {
			t.Errorf("%v is shown as %v, %v", at, got, err)
		}
	}
}
