package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// daySites leave one node over when slices have three copies, so that a node can
// be drained.
var daySites = []string{"tokyo", "boston", "paris", "sydney"}

// dayLimits are the nodes' settings: so small that in a day of minutes slices fill
// up, journals are trimmed, members get whole states instead of what they missed,
// and space is given back.
var dayLimits = map[string]string{
	"RETENTION": "15s", "RETENTION_LEAST": "15s", "UPLOAD_GRACE": "15s", "REGISTRATION_LIFE": "10m",
	"FAILED_AFTER": "1m", "SCRUB_PERIOD": "1m",
	"MAX_SLICE_OBJECTS": "120", "MAX_NEW_SLICES": "12",
	"MISSED_BYTES": "524288", "TRANSFER_PAGE_BYTES": "16384", "CHECKPOINT_BYTES": "1048576",
}

// dayWorkers is how many work at once; each has a directory and a mount.
const dayWorkers = 6

// day is a cluster with its workers.
type day struct {
	*demo
	t       *testing.T
	chance  *rand.Rand
	workers []*dayWorker
	resting sync.RWMutex // taken, no worker is in an operation
	written atomic.Int64
	kept    map[string][]dayTree // what each snapshot should show, by worker
	acts    map[string]int
}

// TestDay_InMinutes has a cluster of four nodes live through much in little time:
// workers change files on all mounts while nodes are killed, drained and scrubbed,
// slices are handed over and get more and fewer copies, geo-config is away, and
// snapshots are made, read, restored and deleted. Contents must be right the whole
// time, and in the end at every mount; every slice gets whole, nothing is lost or
// differs, no process logs an error, and space comes back.
//
// CARTWHEEL_DAY says how long it lasts; CARTWHEEL_SEED repeats what is drawn, and
// CARTWHEEL_KEEP=FOLDER keeps the logs of a day that failed.
func TestDay_InMinutes(t *testing.T) {
	length := 20 * time.Second
	if text := os.Getenv("CARTWHEEL_DAY"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range dayLimits {
		t.Setenv("CARTWHEELD_"+key, value)
	}
	seed := seedOf(t)
	t.Logf("CARTWHEEL_SEED=%d", seed)
	d := &day{t: t, chance: rand.New(rand.NewPCG(seed, 0)), kept: map[string][]dayTree{}, acts: map[string]int{}}
	d.demo = startDemo(t, "--sites", strings.Join(daySites, ","), "--no-console", "--lease", "1s")
	d.cartwheel("snapshot", "schedule", "often", "--every", "1m", "--keep", "2m")
	defer d.keepLogs()
	stop := d.start(seed)
	d.live(length)
	if t.Failed() {
		return
	}
	d.whole()
	stop()
	began := time.Now()
	d.everywhere()
	d.scheduled()
	for name := range d.kept {
		d.forget(name)
	}
	d.cartwheel("snapshot", "delete", "often")
	d.scrub()
	d.spaceComesBack()
	d.quietLogs()
	d.t.Logf("the end took %v", time.Since(began).Round(time.Millisecond))
	d.report()
}

// start starts the workers, and returns what ends them.
func (d *day) start(seed uint64) (stop func()) {
	over := make(chan struct{})
	var working sync.WaitGroup
	for i := range dayWorkers {
		mount := d.mount(daySites[i%len(daySites)])
		w := &dayWorker{
			name: fmt.Sprintf("worker%d", i), tree: dayTree{}, kinds: map[string]int{},
			chance: rand.New(rand.NewPCG(seed, uint64(i+1))), bytes: rand.NewChaCha8([32]byte{byte(i + 1), byte(seed)}),
			resting: &d.resting, written: &d.written,
		}
		w.root = filepath.Join(mount, w.name)
		if err := os.Mkdir(w.root, 0o755); err != nil {
			d.t.Fatal(err)
		}
		d.workers = append(d.workers, w)
	}
	for _, w := range d.workers {
		working.Go(func() { w.work(d.t, over) })
	}
	stop = sync.OnceFunc(func() { close(over); working.Wait() })
	d.t.Cleanup(stop)
	return stop
}

// rest lets do run while no worker is in an operation.
func (d *day) rest(do func()) {
	d.resting.Lock()
	defer d.resting.Unlock()
	do()
}

// everywhere compares what every mount shows with what the workers know.
func (d *day) everywhere() {
	d.t.Helper()
	for _, site := range daySites {
		d.compare(d.mount(site), d.trees())
	}
}

// trees are those of the workers, as they are now.
func (d *day) trees() []dayTree {
	var out []dayTree
	for _, w := range d.workers {
		out = append(out, maps.Clone(w.tree))
	}
	return out
}

// compare compares the workers' directories below a root with what they should hold.
func (d *day) compare(root string, trees []dayTree) {
	d.t.Helper()
	for i, w := range d.workers {
		if err := trees[i].differs(filepath.Join(root, w.name)); err != nil {
			d.t.Error(err)
		}
	}
}

// dayStatus is what the test reads of `cartwheel status`.
type dayStatus struct {
	Healthy  bool   `json:"healthy"`
	Sentence string `json:"sentence"`
	Nodes    []struct {
		Site    string `json:"site"`
		Packs   int64  `json:"pack_bytes"`
		Waiting int64  `json:"waiting_bytes"`
		Disk    *struct {
			Live     int64 `json:"live_most_bytes"`
			Retained int64 `json:"retained_least_bytes"`
			Empty    int64 `json:"pack_empty_bytes"`
			Journal  int64 `json:"journal_bytes"`
			Metadata int64 `json:"metadata_bytes"`
		} `json:"disk"`
	} `json:"nodes"`
}

func (d *day) status() dayStatus {
	d.t.Helper()
	var s dayStatus
	if err := json.Unmarshal([]byte(d.cartwheel("status", "--json")), &s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// whole waits until the cluster says that all is well.
func (d *day) whole() {
	d.t.Helper()
	d.await("all to be well", 4*time.Minute, func() error {
		if s := d.status(); !s.Healthy {
			return fmt.Errorf("%s", s.Sentence)
		}
		return nil
	})
}

// dayPack bounds what a node's packs may hold beside live chunks once nothing waits:
// the newest pack's empty rest, and chunks below the share from which a pack is
// written anew.
const dayPack = 64 << 20

// spaceComesBack waits until no node holds much more than what is live.
func (d *day) spaceComesBack() {
	d.t.Helper()
	var live int64
	for _, w := range d.workers {
		live += w.tree.bytes()
	}
	defer func() {
		if d.t.Failed() {
			d.t.Log(try(binary(d.t, "cartwheel"), "space", d.mount("tokyo"), "--contact", d.Contact))
			d.t.Log(try(binary(d.t, "cartwheel"), "snapshot", "list", "--contact", d.Contact))
		}
	}()
	d.await("the space of what is gone", 3*time.Minute, func() error {
		for _, n := range d.status().Nodes {
			if n.Disk == nil {
				return fmt.Errorf("%s does not say what its disk holds", n.Site)
			}
			if n.Packs-n.Disk.Empty > live+live/2+dayPack || n.Disk.Journal+n.Disk.Metadata > dayPack {
				return fmt.Errorf("%s has packs of %d bytes, %d of them waiting, and %+v, for %d live bytes of the tree",
					n.Site, n.Packs, n.Waiting, *n.Disk, live)
			}
		}
		return nil
	})
}

// processLogs lists the logs of all processes.
func (d *day) processLogs() []string {
	logs := []string{filepath.Join(filepath.Dir(filepath.Dir(d.Sites[0].NodeLog)), "geo-config.log")}
	for _, s := range d.Sites {
		logs = append(logs, s.NodeLog, s.MountLog)
	}
	return logs
}

// keepLogs copies the logs of a failed day to the folder that CARTWHEEL_KEEP names, if
// there is one.
func (d *day) keepLogs() {
	to := os.Getenv("CARTWHEEL_KEEP")
	if !d.t.Failed() || to == "" {
		return
	}
	for _, name := range d.processLogs() {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(filepath.Dir(name))+"-"+filepath.Base(name)), text, 0o644)
		}
		if err != nil {
			d.t.Log(err)
		}
	}
}

// quietLogs checks that no process logged an error.
func (d *day) quietLogs() {
	d.t.Helper()
	loud := regexp.MustCompile(`(?m)^.*level=ERROR.*$`)
	for _, name := range d.processLogs() {
		text, err := os.ReadFile(name)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, line := range loud.FindAllString(string(text), 5) {
			d.t.Errorf("%s: %s", filepath.Base(name), line)
		}
	}
}

// scheduled checks that the schedule's snapshots are there, and not those of long ago.
func (d *day) scheduled() {
	d.t.Helper()
	var list struct {
		Snapshots []struct {
			Name string    `json:"name"`
			Time time.Time `json:"time"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal([]byte(d.cartwheelSays("snapshot", "list", "--json")), &list); err != nil {
		d.t.Fatal(err)
	}
	found := 0
	for _, s := range list.Snapshots {
		if strings.HasPrefix(s.Name, "often-") {
			found++
			if age := time.Since(s.Time); age > 3*time.Minute {
				d.t.Errorf("%s is of %v ago", s.Name, age)
			}
		}
	}
	if found == 0 || found > 4 {
		d.t.Errorf("the schedule has %d snapshots: %+v", found, list)
	}
}

// report logs what was done, and refuses a day on which nothing happened.
func (d *day) report() {
	d.t.Helper()
	total, kinds := 0, map[string]int{}
	var live int64
	var longest time.Duration
	for _, w := range d.workers {
		total += w.done
		longest = max(longest, w.longest)
		live += w.tree.bytes()
		for kind, n := range w.kinds {
			kinds[kind] += n
		}
		if w.done == 0 {
			d.t.Errorf("%s did nothing", w.name)
		}
	}
	d.t.Logf("%d operations %v, the longest took %v; %d bytes written, %d live; acts %v; %d slices",
		total, kinds, longest.Round(time.Millisecond), d.written.Load(), live, d.acts, len(d.slices()))
}
