//go:build linux

package cartwheel_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cartwheel.dev/clients/cartwheel/traced"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// attribute reads an extended attribute as JSON.
func attribute(t *testing.T, path, name string, into any) {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, err := unix.Getxattr(path, name, buf)
	if err == nil {
		err = json.Unmarshal(buf[:n], into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestTrace_FollowsAProcess traces one shell through a real mount, while another
// process works there too. The shell's operations are there with their paths,
// round trips and calls, the other's are not.
func TestTrace_FollowsAProcess(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	at := c.Active(ids.RootSlice).Index
	sites := []string{"a", "b", "c"}
	point := mounted(t, clientOf(t, c, sites[(at+1)%3]))
	shell := exec.Command("sh", "-c", "read go; mkdir .KeepTogether/mine && cat mine/none; true")
	shell.Dir = point
	in, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	const token = "user.cartwheel.trace.t"
	if err := unix.Setxattr(point, token, []byte(strconv.Itoa(shell.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(point, "others"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := shell.Wait(); err != nil {
		t.Fatal(err)
	}
	var sum traced.Watched
	attribute(t, point, token, &sum)
	var list []trace.Record
	attribute(t, point, token+".0", &list)
	made := 0
	for _, x := range list {
		if strings.Contains(x.About, "others") {
			t.Errorf("an operation of another process: %+v", x)
		}
		if x.Kind == "mkdir" && strings.HasSuffix(x.About, "/mine") {
			made++
			if x.WAN < 2 || len(x.Calls) == 0 || x.Calls[0].Site != sites[at] || x.Out == 0 || x.Between == 0 {
				t.Errorf("mkdir from another site: %+v, want at least a round trip to %s and one to its standbys", x, sites[at])
			}
		}
	}
	if made != 1 {
		t.Errorf("%d mkdirs were traced, want 1, in %+v", made, list)
	}
	n := uint64(0)
	for _, x := range sum.Counts {
		n += x.Count
	}
	if int(n) != len(list) {
		t.Errorf("%d operations are counted and %d kept", n, len(list))
	}
	var all []trace.Count
	attribute(t, point, "user.cartwheel.counts", &all)
	for _, x := range all {
		if x.Kind == "mkdir" && x.Count != 2 {
			t.Errorf("%d mkdirs in all, want 2", x.Count)
		}
	}
	if err := unix.Setxattr(point, token, []byte("end"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Getxattr(point, token, nil); err == nil {
		t.Error("a trace that was ended answers")
	}
}
