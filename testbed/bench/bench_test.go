package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

func shrunk(t *testing.T) Options {
	t.Helper()
	o := Defaults()
	o.Rounds, o.FileBytes, o.RandomOps, o.SmallFiles, o.MailOps = 2, 2<<20, 20, 24, 60
	o.AndrewClients = []int{2}
	return o
}

func TestRunner_MeasuresEverySuiteAndCleansUp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("dropping the kernel's caches needs root")
	}
	o := shrunk(t)
	o.Only = "stream:random:small:mail"
	dirs := []string{t.TempDir(), t.TempDir()}
	figures, err := Runner{Options: o, Progress: io.Discard}.Run(context.Background(), dirs)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"write + fsync", "read cold", "read warm", "random 4 KiB read cold", "random 4 KiB overwrite",
		"create 16 KiB", "stat cold", "read 16 KiB cold", "read 16 KiB warm", "unlink", "mail mix"}
	for _, name := range want {
		n := 0
		for _, f := range figures {
			if f.Work == name {
				n++
				if f.Value <= 0 {
					t.Errorf("%s: got %v, want more than nothing", name, f.Value)
				}
			}
		}
		if n != o.Rounds*len(dirs) {
			t.Errorf("%s: got %d figures, want %d", name, n, o.Rounds*len(dirs))
		}
	}
	for _, d := range dirs {
		if left, _ := os.ReadDir(d); len(left) != 0 {
			t.Errorf("%s: %d things were left behind", d, len(left))
		}
	}
}

func TestTable_GivesMediansAndRatios(t *testing.T) {
	var out bytes.Buffer
	Table(&out, []string{"a", "b"}, []Figure{
		{Work: "w", Unit: "/s", Dir: "a", Value: 1}, {Work: "w", Unit: "/s", Dir: "a", Value: 3}, {Work: "w", Unit: "/s", Dir: "b", Value: 8},
	})
	if got := out.String(); !strings.Contains(got, "2.0") || !strings.Contains(got, "4.00x") {
		t.Errorf("got %q, want median 2.0 and ratio 4.00x", got)
	}
}

func TestRunner_NamesAMissingFolder(t *testing.T) {
	_, err := Runner{Options: shrunk(t), Progress: io.Discard}.Run(context.Background(), []string{"/no/such/folder"})
	if err == nil || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("got %v, want the folder named", err)
	}
}

func TestAndrewTree_HasTheSizeOfBeeFSs(t *testing.T) {
	dirs, files := andrewTree()
	var bytes int
	for _, f := range files {
		bytes += len(f.data)
	}
	if len(dirs) != 21 || len(files) != 515 || bytes < 8_500_000 || bytes > 9_500_000 {
		t.Errorf("got %d folders, %d files, %d bytes; want 21, 515, 9 MB", len(dirs), len(files), bytes)
	}
}
