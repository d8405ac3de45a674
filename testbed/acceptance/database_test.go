package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/storetest/postgrestest"
)

// loadVariable names the files of a program of a load.
const loadVariable = "CARTWHEEL_LOAD"

// runLoad writes files and reads them back until its standard input ends. It says
// on its standard output how many nanoseconds each took.
func runLoad(name string) int {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that is said there
		close(over)
	}()
	const kept = 20
	for n := 0; ; n++ {
		select {
		case <-over:
			return 0
		default:
		}
		begin := time.Now()
		if err := writeAndRead(fmt.Sprint(name, "-", n%kept), bytes.Repeat(fmt.Append(nil, name, n, "\n"), 100)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if _, err := fmt.Println(time.Since(begin).Nanoseconds()); err != nil {
			return 1 // nobody hears it any more
		}
	}
}

func writeAndRead(path string, text []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	got, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(got, text) {
		err = fmt.Errorf("%s: read %d bytes, which are not the %d written", path, len(got), len(text))
	}
	return err
}

// load is programs that write and read files of their own on mounts. They are
// processes of their own: one that has files open on a mount cannot start others
// while the mount waits for nodes.
type load struct {
	t        *testing.T
	stop     []func()
	done     sync.WaitGroup
	finished atomic.Int64 // files written, synced and read back
	slowest  atomic.Int64 // nanoseconds that the slowest of them took
}

// startLoad starts two programs on each mount. They end with end.
func startLoad(t *testing.T, points ...string) *load {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t}
	for i := range 2 * len(points) {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), loadVariable+"="+filepath.Join(points[i/2], fmt.Sprint("load", i)))
		var said bytes.Buffer
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l.stop = append(l.stop, func() { in.Close() })
		l.done.Go(func() {
			l.hear(out)
			if err := cmd.Wait(); err != nil {
				t.Errorf("a program of the load: %v: %s", err, &said)
			}
		})
	}
	return l
}

// hear counts what a program has finished.
func (l *load) hear(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		took, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			l.t.Error(err)
			return
		}
		l.finished.Add(1)
		for most := l.slowest.Load(); took > most && !l.slowest.CompareAndSwap(most, took); {
			most = l.slowest.Load()
		}
	}
}

// during lets some time pass, and returns how many files were finished in it, and
// how long the slowest took.
func (l *load) during(d time.Duration) (finished int64, slowest time.Duration) {
	before := l.finished.Load()
	l.slowest.Store(0)
	time.Sleep(d)
	return l.finished.Load() - before, time.Duration(l.slowest.Load())
}

func (l *load) end() {
	for _, stop := range l.stop {
		stop()
	}
	l.done.Wait()
}

// TestDatabase_MayStopUnderLoad stops geo-config's database while mounts write. No
// write or read fails or waits for it. Then the node that leads the root is killed,
// too, which the others can only settle with the database: they do once it is back.
func TestDatabase_MayStopUnderLoad(t *testing.T) {
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	db := postgrestest.New(t)
	m, made := foundClusterOn(t, db.SocketURL(), "tokyo", "boston", "paris")
	var points []string
	for _, site := range []string{"boston", "paris"} {
		point := m.path(site, "mnt")
		if err := os.Mkdir(point, 0o755); err != nil {
			t.Fatal(err)
		}
		m.cartwheel(site, "mount", made.Contact, point, "--site", site, "--daemon", "--log-file", m.path(site, "mount.log"))
		t.Cleanup(func() { m.cartwheel(site, "umount", point) })
		points = append(points, point)
	}
	absence := 10 * time.Second
	if os.Getenv("CARTWHEEL_WHOLE") != "" {
		absence = 5 * time.Minute
	}
	l := startLoad(t, points...)
	defer l.end()
	tell := func(when string, d time.Duration) int64 {
		finished, slowest := l.during(d)
		t.Logf("%s: %d files in %v, the slowest in %v", when, finished, d, slowest.Round(time.Millisecond))
		return finished
	}
	tell("before", 5*time.Second)
	lead := m.leaderOfRoot(made)
	db.Stop()
	tell("the database stops", absence/2)
	if tell("it is away", absence/2) == 0 {
		t.Error("no file was finished without the database")
	}
	m.kill(lead)
	tell("the leader was killed, too", 3*time.Second)
	db.Start()
	back := time.Now()
	t.Logf("the database is back at %s", back.UTC().Format(time.TimeOnly))
	(&demo{t: t}).await("another leader", time.Minute, func() error {
		if now := m.leaderOfRoot(made); now == lead || now == "" {
			return fmt.Errorf("%q still leads the root", now)
		}
		return nil
	})
	t.Logf("another node leads %v after the database's return", time.Since(back).Round(10*time.Millisecond))
	before := l.finished.Load()
	(&demo{t: t}).await("files", time.Minute, func() error {
		if l.finished.Load() == before {
			return fmt.Errorf("none was finished")
		}
		return nil
	})
	t.Logf("a file was finished %v after the database's return", time.Since(back).Round(10*time.Millisecond))
	tell("after", 5*time.Second)
	m.cartwheel("boston", "site", "set", "paris", "--location", "Paris, France", "--admin", made.AdminFile)
}

// leaderOfRoot returns the site of the node that leads the root's slice, as
// geo-config has it; empty: geo-config does not answer.
func (m *founders) leaderOfRoot(made founded) string {
	m.t.Helper()
	text, err := m.try("boston", binary(m.t, "cartwheel"), "policy", "ls", "--admin", made.AdminFile, "--json")
	if err != nil {
		m.t.Logf("geo-config: %v", err)
		return ""
	}
	var rows []struct {
		Slice  uint32 `json:"slice"`
		Active string `json:"active"`
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		m.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Slice == 1 {
			return r.Active
		}
	}
	m.t.Fatalf("no slice 1 in %+v", rows)
	return ""
}
