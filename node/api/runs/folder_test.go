package runs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/runs"
)

const runJSON = `{"experiment": "garage", "arguments": ["cartwheel-testbed", "run", "garage"], "seed": 18446744073709551615,
"started": "2026-01-02T03:04:%02dZ", "seconds": 1.5, "versions": {"cartwheel": "abc1234"}, "load_before": -1}`

const reportJSON = `{"run": {}, "title": "garage: small objects", "tables": [{"name": "t", "columns": [{"name": "case"}, {"name": "n"}, {"name": "p50", "unit": "ms"}],
"rows": [["put", 3, 1.5], ["get", 4, null], ["list", 5]]}], "plots": [{"name": "cdf", "title": "Latency"}], "figures": {"all": [1, 2]}}`

// write makes files below a folder, by their names.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestList_TellsOfEveryFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a/run.json": fmt.Sprintf(runJSON, 1), "a/report.json": reportJSON, "a/topology.yaml": "name: two\nsites:\n  - {name: oslo}\n  - {name: lima}\n",
		"b/run.json": fmt.Sprintf(runJSON, 2),
		"c/run.json": fmt.Sprintf(runJSON, 3), "c/report.json": `{"title": "x", "tables": [{"na`,
		"d/run.json": "{", "e/photo.jpg": "x", "file": "no run",
		"f/run.json": strings.Replace(fmt.Sprintf(runJSON, 4), `"seed"`, `"void": "too late", "seed"`, 1), "f/report.json": reportJSON,
	})
	if err := os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "g")); err != nil {
		t.Fatal(err)
	}
	list, err := runs.New(dir).List(t.Context())
	if err != nil || list.Total != 7 {
		t.Fatalf("got %d runs, %v", list.Total, err)
	}
	want := map[string]string{"a": "finished", "b": "unfinished", "c": "damaged report.json: is cut off", "d": "damaged run.json: unexpected end",
		"e": "damaged it has no run.json", "f": "void too late", "g": "damaged it is a symbolic link"}
	for _, s := range list.Items {
		if got := strings.TrimSpace(s.State + " " + s.Reason); !strings.HasPrefix(got, want[s.Name]) {
			t.Errorf("%s: got %q, want %q", s.Name, got, want[s.Name])
		}
	}
	if list.Items[0].Name != "f" {
		t.Errorf("got %s first, want the newest", list.Items[0].Name)
	}
	a := list.Items[3]
	if a.Name != "a" || len(a.Sites) != 2 || a.Seed != "18446744073709551615" || *a.TookMS != 1500 || len(a.KeyResults) != 1 || a.KeyResults[0].Value != 1.5 {
		t.Errorf("got %+v", a)
	}
}

func TestList_HasNoneWithoutAFolder(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if list, err := runs.New(dir).List(t.Context()); err != nil || len(list.Items) != 0 {
			t.Errorf("%q: got %+v, %v", dir, list, err)
		}
	}
}

func TestRun_HasTablesAndFigures(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/run.json": fmt.Sprintf(runJSON, 1), "a/report.json": reportJSON, "a/cdf.svg": "<svg/>", "a/cdf.png": "x"})
	r, err := runs.New(dir).Run("a")
	if err != nil || len(r.Tables) != 1 || len(r.Figures) != 1 || r.Figures[0] != (runs.Figure{File: "cdf.svg", Title: "Latency"}) {
		t.Fatalf("got %+v, %v", r, err)
	}
	if row := r.Tables[0].Rows[2]; len(row) != 3 || row[0] != "list" || row[2] != nil {
		t.Errorf("got %v, want a short row filled", row)
	}
}

func TestFigure_StaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"runs/a/cdf.svg": "<svg/>", "secret.svg": "secret", "runs/other.svg": "x", "runs/a/big.svg": strings.Repeat("x", 4<<20+1)})
	f := runs.New(filepath.Join(dir, "runs"))
	if data, err := f.Figure("a", "cdf.svg"); err != nil || string(data) != "<svg/>" {
		t.Fatalf("got %q, %v", data, err)
	}
	if err := os.Symlink(filepath.Join(dir, "secret.svg"), filepath.Join(dir, "runs", "a", "out.svg")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("cdf.svg", filepath.Join(dir, "runs", "a", "in.svg")); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{{"a", "out.svg"}, {"a", "in.svg"}, {"a", "../other.svg"}, {"..", "secret.svg"}, {".", "other.svg"}, {"a/..", "other.svg"},
		{"", "secret.svg"}, {"a", "run.json"}, {"a", "big.svg"}, {"b", "cdf.svg"}} {
		if data, err := f.Figure(x[0], x[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: got %q, %v; want NotFound", x, data[:min(len(data), 9)], err)
		}
	}
}
