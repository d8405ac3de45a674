package cartwheel

import (
	"errors"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

func TestUnsaved_SaysWhatBecomesOfIt(t *testing.T) {
	file := Unsaved{Object: 7, Bytes: 3, Name: func() string { return "/a" }}
	refused := file
	refused.Err = errors.New("no")
	many := make([]Unsaved, mostListed+2)
	for _, x := range []struct {
		name   string
		list   []Unsaved
		keptIn string
		want   string
	}{
		{"kept", []Unsaved{file}, "/cache", "1 files with 3 unsent bytes are not saved, and kept in /cache and sent by the next mount that has it as --cache-dir: /a"},
		{"lost", []Unsaved{file}, "", "and lost: /a"},
		{"refused", []Unsaved{file, refused}, "/cache", "and lost: /a, /a (no)"},
		{"more than are named", many, "", "and 2 more"},
	} {
		if err := unsavedError(x.list, x.keptIn); err == nil || !strings.HasSuffix(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", x.name, err, x.want)
		}
	}
	if err := unsavedError(nil, "/cache"); err != nil {
		t.Errorf("of nothing: got %v", err)
	}
	if err := unsavedError([]Unsaved{refused}, ""); fault.KindOf(err) == fault.TimedOut {
		t.Errorf("a refusal is taken for a timeout: %v", err)
	}
}
