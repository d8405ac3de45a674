package daemon

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/node/server"
)

func TestProfiler_IsOpenToItsUserOnly(t *testing.T) {
	for _, where := range []string{"127.0.0.1:6060", "[::1]:6060", "localhost:6060", "0.0.0.0:1", "relative"} {
		c := server.DefaultConfig()
		c.Data, c.Site, c.Pprof = "/d", "a", where
		if err := c.Validate(); err == nil {
			t.Errorf("%s: it is open to every user of the machine, and nothing is said", where)
		}
	}
	dir, err := os.MkdirTemp("", "p") // t.TempDir's may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // nothing is left in it that matters
	path := filepath.Join(dir, "pprof")
	stop, err := profile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /debug/pprof/cmdline HTTP/1.0\r\n\r\n"); err != nil {
		t.Error(err)
	}
	if answer, err := io.ReadAll(c); err != nil || len(answer) == 0 {
		t.Errorf("the profiler answers %q, %v", answer, err)
	}
	_ = c.Close() // it was answered
	stop()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
