package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// childDir is the variable that makes this test binary a process that writes
// to the store in the directory which it names until it is killed.
const childDir = "CARTWHEEL_TEST_GEO_CONFIG_DIR"

// child prints the revision of every batch that was acknowledged.
func child(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := embedded.Open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	b := first()
	for i := 0; ctx.Err() == nil; i++ {
		rev, err := s.Apply(ctx, b)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(rev)
		b = geoconfig.Batch{Key: fmt.Sprint("k", i), Sites: []geoconfig.Site{{Name: ids.Site(fmt.Sprint("s", i))}},
			Audit: []geoconfig.AuditRecord{{Who: "child", Action: "site.add", Subject: fmt.Sprint("sites/s", i)}}}
	}
	return 0
}

func TestStore_KilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		acknowledged := writeAndKill(ctx, t, dir+strconv.Itoa(round), 10+10*round)
		cancel()
		s := open(t, dir+strconv.Itoa(round))
		rows, err := s.Read(t.Context(), geoconfig.Query{Sites: true, Audit: geoconfig.MaxBatchRows})
		if err != nil {
			t.Fatal(err)
		}
		if rows.Revision < acknowledged {
			t.Fatalf("revision %d was acknowledged, after the kill there is %d", acknowledged, rows.Revision)
		}
		// One site and one record for each batch, so that none is there by half.
		if got, want := len(rows.Audit), int(rows.Revision); got != want || len(rows.Sites) != want+1 {
			t.Fatalf("at revision %d there are %d records and %d sites", rows.Revision, got, len(rows.Sites))
		}
		s.Close()
	}
}

// writeAndKill lets a child acknowledge n batches and returns the last revision
// that it told of before it was killed.
func writeAndKill(ctx context.Context, t *testing.T, dir string, n int) ids.Revision {
	t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.SysProcAttr = dieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // killed: the error says so
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	var last ids.Revision
	for range n {
		if !lines.Scan() {
			t.Fatalf("the child ended early: %v", lines.Err())
		}
		rev, err := strconv.ParseUint(strings.TrimSpace(lines.Text()), 10, 64)
		if err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		last = ids.Revision(rev)
	}
	if _, err := embedded.Open(ctx, dir); !fault.Is(err, fault.Busy) {
		t.Errorf("beside a living process: got %v, want busy", err)
	}
	return last
}
