package database_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
)

func TestSource_TakesOptionThenFileThenEnvironment(t *testing.T) {
	const url = "postgresql://ann@db:26257/cartwheel"
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "url")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := []string{"CARTWHEEL_DATABASE=old", "HOME=/", "CARTWHEEL_DATABASE=postgresql://env"}
	for _, c := range []struct {
		what, option, file string
		environ            []string
		want               string
		kind               fault.Kind
	}{
		{"nothing", "", "", nil, "", fault.None},
		{"an option", url, "", environ, url, fault.None},
		{"a file", "", file(url+"\n", 0o600), environ, url, fault.None},
		{"the environment", "", "", environ, "postgresql://env", fault.None},
		{"both", url, file(url, 0o600), nil, "", fault.Usage},
		{"a password on the command line", "postgresql://ann:secret@db/x", "", nil, "", fault.Usage},
		{"a password among the settings", "postgresql://ann@db/x?password=secret", "", nil, "", fault.Usage},
		{"no URL", "postgresql://ann:secret@db:port/", "", nil, "", fault.Invalid},
		{"a file for all", "", file(url, 0o644), nil, "", fault.Permission},
		{"an empty file", "", file("\n", 0o600), nil, "", fault.Invalid},
		{"no file", "", filepath.Join(t.TempDir(), "none"), nil, "", fault.NotFound},
	} {
		got, err := database.Source(c.option, c.file, c.environ)
		if fault.KindOf(err) != c.kind || err == nil && got != c.want {
			t.Errorf("%s: got %q, %v, want %q, %v", c.what, got, err, c.want, c.kind)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", c.what, err)
		}
	}
}
