package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/pack"
)

func TestBare_HoldsWhatWasWrittenOnEveryDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bare")
	b, err := openBare(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	const n = 5<<20 + 12345
	p := place{dir: dir, opt: Options{Seed: 7}}
	if err := b.write(context.Background(), p, n); err != nil {
		t.Fatal(err)
	}
	if err := b.read(context.Background()); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := large(context.Background(), p.random(n), n, func(piece []byte) error { want.Write(piece); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, packs := range b.packs {
		var got bytes.Buffer
		for _, part := range b.batches {
			for j, a := range part.addresses {
				into := make([]byte, part.lengths[j])
				r := []pack.Range{{Address: a, Into: into}}
				if err := packs.Read(context.Background(), r); err != nil || r[0].Err != nil {
					t.Fatal(err, r[0].Err)
				}
				got.Write(into)
			}
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("store %d does not hold the bytes that a file would", i)
		}
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the stores were left behind")
	}
}

func TestTable_ComparesInPercent(t *testing.T) {
	r := &storeRun{opt: storeFlags{Size: 1e9, Rounds: 1}, progress: &bytes.Buffer{}}
	r.note(workWrite, rawName, 0, 200)
	r.note(workWrite, bareName, 0, 400)
	r.note(workWrite, fsName, 0, 190)
	r.note(workRead, rawName, 0, 1000)
	r.note(workRead, bareName, 0, 1500)
	r.note(workRead, fsName, 0, 820)
	for _, path := range readPaths() {
		r.note(workPath, path.name, 0, 321)
	}
	var out bytes.Buffer
	r.table(&out)
	for _, want := range []string{"95%", "82%", "88%", "48%", "55%", "321", "neither", "range map and read-ahead"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestMain_NamesBadArguments(t *testing.T) {
	ctx := context.Background()
	if err := Main(ctx, nil, &bytes.Buffer{}, &bytes.Buffer{}); !fault.Is(err, fault.Usage) {
		t.Errorf("no folder: got %v, want usage", err)
	}
	if err := StoreMain(ctx, []string{"--size", "1"}, &bytes.Buffer{}, &bytes.Buffer{}); !fault.Is(err, fault.Usage) {
		t.Errorf("no size: got %v, want usage", err)
	}
	empty := t.TempDir()
	for _, run := range []func() error{
		func() error { return Main(ctx, []string{"--demo", "--bin", empty}, &bytes.Buffer{}, &bytes.Buffer{}) },
		func() error { return StoreMain(ctx, []string{"--bin", empty}, &bytes.Buffer{}, &bytes.Buffer{}) },
	} {
		if err := run(); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), empty) {
			t.Errorf("no command: got %v, want not found with the folder", err)
		}
	}
}
