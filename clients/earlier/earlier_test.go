package earlier_test

import (
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
)

// plant makes a directory with a file, and what it was at a time called "then" where a mount
// shows it.
func plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"docs/plan": "second", ".Snapshot=then/docs/plan": "first", ".Snapshot=then/docs/sub/note": "note"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reads wants a file to have a content.
func reads(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
	}
}

func TestRestore_WritesOverNothingUnasked(t *testing.T) {
	dir := plant(t)
	docs := filepath.Join(dir, "docs")
	if _, err := earlier.Restore(t.Context(), docs, "then", docs, earlier.How{}); !fault.Is(err, fault.Exists) {
		t.Fatalf("got %v, want Exists", err)
	}
	reads(t, filepath.Join(docs, "plan"), "second")
	dry, err := earlier.Restore(t.Context(), docs, "then", docs, earlier.How{Replace: true, DryRun: true})
	if err != nil || dry.Names != 4 || dry.Bytes != 9 || dry.Aside != docs+".replaced" {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	reads(t, filepath.Join(docs, "plan"), "second")
	done, err := earlier.Restore(t.Context(), docs, "then", docs, earlier.How{Replace: true})
	if err != nil || done != dry {
		t.Errorf("got %+v, %v, want what the dry run said: %+v", done, err, dry)
	}
	reads(t, filepath.Join(docs, "plan"), "first")
	reads(t, filepath.Join(docs, "sub/note"), "note")
	reads(t, filepath.Join(docs+".replaced", "plan"), "second")
	if _, err := earlier.Restore(t.Context(), docs, "then", docs, earlier.How{Replace: true}); !fault.Is(err, fault.Exists) {
		t.Errorf("with the name for what is replaced taken: got %v, want Exists", err)
	}
}

func TestRestore_BringsBackWhatIsGoneWithItsParent(t *testing.T) {
	dir := plant(t)
	if err := os.RemoveAll(filepath.Join(dir, "docs")); err != nil {
		t.Fatal(err)
	}
	note, to := filepath.Join(dir, "docs/sub/note"), filepath.Join(dir, "note")
	if _, err := earlier.Restore(t.Context(), note, "then", to, earlier.How{}); err != nil {
		t.Fatal(err)
	}
	reads(t, to, "note")
	if _, err := earlier.Restore(t.Context(), filepath.Join(dir, "none"), "then", filepath.Join(dir, "x"), earlier.How{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("what was not there: got %v, want NotFound", err)
	}
}

// TestRestore_LeavesNothingWhereItFails ends a restore by a place that cannot be written.
func TestRestore_LeavesNothingWhereItFails(t *testing.T) {
	dir := plant(t)
	if err := os.Symlink("nowhere", filepath.Join(dir, "taken.restoring")); err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join(dir, "docs")
	if _, err := earlier.Restore(t.Context(), docs, "then", filepath.Join(dir, "taken"), earlier.How{}); !fault.Is(err, fault.Exists) {
		t.Errorf("with its name taken: got %v, want Exists", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "taken.restoring")); err != nil {
		t.Errorf("what was there before is gone: %v", err)
	}
	if _, err := earlier.Restore(t.Context(), docs, "then", filepath.Join(dir, "none/x"), earlier.How{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("into no directory: got %v, want NotFound", err)
	}
}
