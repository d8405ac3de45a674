package experiments

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

func dedupEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := dedup().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestDedup_RefusesNonsense(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string][]string{"fixed": {"", "0", "big", "4,"}, "trees": {"/is/not/there", file, ","}, "module": {""}} {
		for _, v := range values {
			if p, err := planDedup(dedupEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
	p := dedupPlan{trees: []string{t.TempDir()}, cuts: []dedupCut{{Name: "product"}}}
	if _, err := p.measure(t.Context(), dedupFiles, io.Discard); !fault.Is(err, fault.Usage) {
		t.Errorf("a tree without content: got %v, want an error of usage", err)
	}
}

func TestDedup_RefusesTooLargeATree(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err == nil {
		err = errors.Join(f.Truncate(dedupMost+1), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	p := dedupPlan{trees: []string{dir}, cuts: []dedupCut{{Name: "product"}}}
	if _, err := p.measure(t.Context(), dedupArchives, io.Discard); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an error of usage that names the tree", err)
	}
}

// dedupDir makes a directory with files.
func dedupDir(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDedup_StoresEqualChunksOnce(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), 4096), bytes.Repeat([]byte("b"), 4096)
	one := dedupDir(t, map[string][]byte{"1": a, "2": b, "3": append([]byte("x"), a...)})
	two := dedupDir(t, map[string][]byte{"1": a, "2": b})
	p := dedupPlan{trees: []string{one, two}, cuts: []dedupCut{{Name: "product"}, {Name: "fixed", Fixed: 4096}}}
	found, err := p.measure(t.Context(), dedupFiles, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	product, fixed := found.Rows[0], found.Rows[1]
	if product.Bytes != 5*4096+1 || product.Stored != 3*4096+1 || product.Chunks != 5 || product.Unique != 3 { // files below 16 KiB are one chunk each
		t.Errorf("the product's chunks: %+v", product)
	}
	if fixed.Chunks != 6 || fixed.Unique != 4 || fixed.Stored != 3*4096+1 { // x moves what follows it, and leaves the last byte over
		t.Errorf("fixed chunks: %+v", fixed)
	}
	if found.Trees[0].Added != 3*4096+1 || found.Trees[1].Added != 0 || found.Trees[1].Files != 2 {
		t.Errorf("the trees add %+v, want nothing by the second", found.Trees)
	}
	all, err := p.measure(t.Context(), dedupArchives, io.Discard)
	if err != nil || all.Trees[0].Files != 3 || all.Rows[1].Bytes != product.Bytes {
		t.Errorf("archives: %+v, %v", all, err)
	}
}

func TestDedup_FindsWhatMoved(t *testing.T) {
	trees, err := generatedTrees(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	p := dedupPlan{trees: trees, cuts: []dedupCut{{Name: "product"}, {Name: "fixed", Fixed: 64 << 10}}}
	found, err := p.measure(t.Context(), dedupArchives, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if product, fixed := found.Rows[0], found.Rows[1]; product.saved() < 30 || fixed.saved() > product.saved()/2 {
		t.Errorf("the product saves %.0f %%, fixed chunks %.0f %%: content moved, and only the first should find it", product.saved(), fixed.saved())
	}
}

func TestDedup_SaysWhatWasSaved(t *testing.T) {
	found := dedupFound{
		Rows: []dedupRow{
			{dedupCut: dedupCut{Name: "product"}, Way: dedupFiles, Bytes: 100e6, Stored: 25e6, Chunks: 1000, Cutting: 100 * time.Millisecond, Naming: 100 * time.Millisecond},
			{dedupCut: dedupCut{Name: "fixed, 4 KiB", Fixed: 4096}, Way: dedupFiles, Bytes: 100e6, Stored: 50e6, Chunks: 25000, Naming: 200 * time.Millisecond},
			{dedupCut: dedupCut{Name: "product"}, Way: dedupArchives, Bytes: 1, Stored: 1, Chunks: 1},
		},
		Trees: []dedupTree{{Tree: "go/src", Way: dedupFiles, Files: 7, Bytes: 80e6, Added: 20e6}, {Tree: "empty", Way: dedupFiles}},
	}
	r := dedupReport(dedupPlan{trees: []string{"x"}}, found)
	page := published(t, r)
	want(t, page, "| files | product | 97.7 | 1000 | 100 | 25.0 | 75.0 | 4.00 | 1000 | 500 | writes speed up", "| files | fixed, 4 KiB | 3.91 | 25000 | 100 | 50.0 | 50.0 | 2.00 | - | 500 | - |",
		"| files | go/src | 7 | 80.0 | 20.0 | 25.0 |", "| files | empty | 0 | 0 | 0 | - |", "not measured here: HydraFS")
	if strings.Contains(page, "| archives | product | 0.000977 | 1 | 1e-06 | 1e-06 | 0 | 1.00 | 0") {
		t.Error("a speed is told of what took no time")
	}
	if len(r.Plots) != 2 || len(r.Plots[0].Lines) != 4 || !r.Plots[0].Lines[1].Points {
		t.Errorf("the plots are %+v", r.Plots)
	}
}
