package archive_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/fault"
)

// source is a store of two rows, a record and a key.
type source struct{}

func (source) Dump(_ context.Context, start func(archive.Header) error, line func(archive.Line) error) error {
	if err := start(archive.Header{Store: "made up", Cluster: "c1", Revision: 3, Audit: 1}); err != nil {
		return err
	}
	for _, l := range []archive.Line{
		{Row: &archive.Row{Table: "cluster", Key: "cluster", Revision: 1, Body: []byte(`{"id":"c1"}`)}},
		{Row: &archive.Row{Table: "sites", Key: "paris", Revision: 2}},
		{Audit: &geoconfig.AuditRecord{Number: 1, Who: "ann", Action: "site.remove", Revision: 2}},
		{Key: &archive.Key{Key: []byte("k"), Revision: 3}},
	} {
		if err := line(l); err != nil {
			return err
		}
	}
	return nil
}

func TestExport_IsReadAsItWasWritten(t *testing.T) {
	var text bytes.Buffer
	written, err := archive.Export(t.Context(), source{}, &text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(save(t, text.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Summary() != written || written.Rows != 2 || written.Records != 1 || written.Keys != 1 || f.Lines() != 4 {
		t.Errorf("written %+v, read %+v", written, f.Summary())
	}
	for skip := range 5 {
		n := 0
		if err := f.Each(skip, func(archive.Line) error { n++; return nil }); err != nil || n != 4-skip {
			t.Errorf("after %d lines there are %d, %v", skip, n, err)
		}
	}
}

func save(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen_FindsDamage(t *testing.T) {
	var text bytes.Buffer
	if _, err := archive.Export(t.Context(), source{}, &text); err != nil {
		t.Fatal(err)
	}
	good := text.String()
	lines := strings.SplitAfter(good, "\n")
	for what, c := range map[string]struct {
		text string
		want fault.Kind
	}{
		"nothing":              {"", fault.Corrupt},
		"something else":       {"{}\n", fault.Invalid},
		"no JSON":              {"hello\n", fault.Invalid},
		"a newer form":         {strings.Replace(good, `config":1`, `config":2`, 1), fault.NewerVersion},
		"an unknown table":     {strings.Replace(good, `"sites"`, `"moons"`, 1), fault.NewerVersion},
		"another letter":       {strings.Replace(good, "ann", "eve", 1), fault.Corrupt},
		"no end":               {strings.Join(lines[:5], ""), fault.Corrupt},
		"a line less":          {strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""), fault.Corrupt},
		"a line more":          {good + lines[1], fault.Corrupt},
		"no last newline":      {strings.TrimSuffix(good, "\n"), fault.Corrupt},
		"a line of two things": {strings.Replace(good, `{"key":{`, `{"row":{"table":"sites","key":"x","revision":1},"key":{`, 1), fault.Corrupt},
		"a high revision":      {strings.Replace(good, `"paris","revision":2`, `"paris","revision":4`, 1), fault.Corrupt},
	} {
		f, err := archive.Open(save(t, c.text))
		if !fault.Is(err, c.want) {
			t.Errorf("%s: got %v of kind %v, want %v", what, err, fault.KindOf(err), c.want)
		}
		if err == nil {
			f.Close()
		}
	}
}
