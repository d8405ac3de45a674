package simulation

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/writelog"
)

// meddled is a folder in which something happens when the first file is opened.
type meddled struct {
	fs.FS
	meddle func()
}

func (m *meddled) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".wlog") {
		m.meddle()
	}
	return m.FS.Open(name)
}

// TestDuplicate_IsOfOneMoment copies a write journal that moves a write from file
// to file once the names of its files were read. The copy must have that write.
func TestDuplicate_IsOfOneMoment(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	log, _, err := writelog.Open(from, writelog.Options{SegmentBytes: 512})
	if err != nil {
		t.Fatal(err)
	}
	write := func(data string) uint64 {
		n, err := log.Write(content.Written{Object: 1, Version: 7, Kind: content.WriteData, Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	live := write("it stays")
	goOn := func() {
		for range 100 {
			n := write(strings.Repeat("x", 100))
			log.Done(1, n, n, 7)
		}
		if err := log.Sync(); err != nil { // the file that it was moved from goes
			t.Fatal(err)
		}
	}
	goOn()
	if err := duplicate(&meddled{os.DirFS(from), sync.OnceFunc(goOn)}, to); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	copied, left, err := writelog.Open(to, writelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	if len(left) != 1 || len(left[0].Writes) != 1 || left[0].Writes[0].Number != live {
		t.Errorf("left over are %+v, want the write that stays", left)
	}
}
