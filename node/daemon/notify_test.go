package daemon

import (
	"net"
	"path/filepath"
	"runtime"
	"testing"
)

func TestNotify_TellsTheServiceManager(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sd_notify is for Linux")
	}
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := Stdio{Environ: []string{"HOME=/", "NOTIFY_SOCKET=" + path}}
	for _, state := range []string{isReady, isEnding} {
		if err := s.notify(state); err != nil {
			t.Fatal(err)
		}
		var b [64]byte
		if n, err := conn.Read(b[:]); err != nil || string(b[:n]) != state {
			t.Errorf("got %q (%v), want %q", b[:n], err, state)
		}
	}
	if err := (Stdio{}).notify(isReady); err != nil {
		t.Errorf("got %v without a service manager", err)
	}
	if err := (Stdio{Environ: []string{"NOTIFY_SOCKET=" + path + "-none"}}).notify(isReady); err == nil {
		t.Error("a socket that is not there was told")
	}
}
