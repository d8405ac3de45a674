package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// checkedTopology is where the checker's programs run: three sites, a node and
// a mount at each. Geo-config runs at the first.
const checkedTopology = `
sites: [{name: tokyo}, {name: boston}, {name: paris}]
wan: {rtt: 4 ms}
`

var checkedSites = []string{"tokyo", "boston", "paris"}

// programsEach is how many programs run on every mount.
const programsEach = 2

// settleLimit is how long the programs may take to end once all faults are
// over.
const settleLimit = 4 * time.Minute

// running is a program of the checker.
type running struct {
	cmd  *exec.Cmd
	in   io.Closer
	errs strings.Builder
	done chan struct{}
	list history
	err  error
}

// startChecked starts a program on a mount.
func startChecked(t *testing.T, o order) *running {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), programVariable+"="+string(text))
	r.cmd.Stderr = &r.errs
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.in = in
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // it may have ended
	go func() {
		defer close(r.done)
		said := json.NewDecoder(bufio.NewReader(out))
		for {
			e := &event{}
			if err := said.Decode(e); err != nil {
				if !errors.Is(err, io.EOF) {
					r.err = err
				}
				break
			}
			r.list = append(r.list, e)
		}
		r.err = errors.Join(r.err, r.cmd.Wait())
	}()
	return r
}

// checked is the workload on the mounts of a lab.
type checked struct {
	*lab
	roots    []string // the checker's directory on every mount
	programs []*running
	chance   *rand.Rand
	offs     history // when sites were cut off
}

// prepare makes what the programs share. Directories are made at several sites,
// so that there are several slices, and renames between them.
func (c *checked) prepare() {
	c.t.Helper()
	for _, s := range checkedSites {
		c.roots = append(c.roots, filepath.Join(c.mount(s+"-1"), "checked"))
	}
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	must(os.Mkdir(c.roots[0], 0o755))
	for i, dir := range []string{"names0", "names1", "dirs0", "dirs1", "logs", "own"} {
		must(os.Mkdir(filepath.Join(c.roots[i%3], dir), 0o755))
	}
	for i := range programsEach * len(checkedSites) {
		must(os.Mkdir(filepath.Join(c.roots[i%3], "own", fmt.Sprint(i)), 0o755))
	}
	file := func(name, content string) {
		c.t.Helper()
		must(os.WriteFile(filepath.Join(c.roots[1], name), []byte(content), 0o644))
	}
	for _, log := range logs {
		file("logs/"+log+".here", "")
	}
	file("registers", strings.Repeat("\n", registers*registerBytes))
	zero := fmt.Sprintf("%*d", counterBytes, 0)
	file("count0", zero)
	file("count1", zero)
	file("ranges", strings.Repeat(zero, ranges))
}

// final reads what logs and counters hold, at one mount.
func (c *checked) final(root string) map[string]string {
	c.t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			c.t.Error(err)
		}
		return string(b)
	}
	out := map[string]string{"count0": read("count0"), "count1": read("count1")}
	all := read("ranges")
	for i := range min(ranges, len(all)/counterBytes) {
		out[fmt.Sprint("range", i)] = all[i*counterBytes : (i+1)*counterBytes]
	}
	for _, log := range logs {
		name := "logs/" + log + ".here"
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			name = "logs/" + log + ".there"
		}
		out[log] = read(name)
	}
	return out
}

// end ends the programs and returns what they did.
func (c *checked) end() history {
	c.t.Helper()
	for _, r := range c.programs {
		_ = r.in.Close() // a program that has ended has said why
	}
	limit := time.After(settleLimit)
	h := c.offs
	for i, r := range c.programs {
		select {
		case <-r.done:
		case <-limit:
			stack, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stack", r.cmd.Process.Pid))
			c.t.Fatalf("program %d hangs, %v after the last fault was over:\n%s", i, settleLimit, stack)
		}
		if r.err != nil {
			c.t.Errorf("program %d: %v\n%s", i, r.err, r.errs.String())
		}
		h = append(h, r.list...)
	}
	return h
}

// finals appends what is found in the end to the history, from every mount.
func (c *checked) finals(h history) history {
	c.t.Helper()
	for i, root := range c.roots {
		p := &checkedProgram{order: order{Number: len(c.programs) + i, Root: root}, chance: c.chance, out: json.NewEncoder(io.Discard)}
		for _, dir := range []string{"names0", "names1", "dirs0", "dirs1"} {
			e := &event{Program: p.Number, What: didList, At: dir, Begin: now()}
			entries, err := os.ReadDir(filepath.Join(root, dir))
			if err != nil {
				c.t.Error(err)
			}
			for _, entry := range entries {
				e.Names = append(e.Names, dir+"/"+entry.Name())
			}
			e.End = now()
			h = append(h, e)
		}
	}
	return h
}

// seedOf is the checker's seed: drawn, or the one that CARTWHEEL_SEED says.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("CARTWHEEL_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// TestChecked_ProgramsOnThreeMountsSeeOneTree runs programs on three mounts while
// nodes are killed and paused, slices are handed over, sites are cut off and
// geo-config is away. They append to the same files, which are renamed while open,
// write and read blocks, and count under flock and fcntl locks. The only errors
// that it takes are ENOENT and EIO of what is written under a lock that was lost.
//
// What is known to fail is done and judged only with CARTWHEEL_STRICT=1: names of
// files and directories that all programs replace, link, move, take, find and
// list, and files that stay open meanwhile. Names that are gone are found, a
// directory that was moved is another one, directories answer ESTALE and
// EOPNOTSUPP, and open files are gone. And a file that is read while another
// mount appends to it may end with zeros, which else nobody judges.
//
// It runs where CARTWHEEL_CHECKED is set: in one run of two the judge sees a range
// lock held by a program whose mount was cut off, for as long as its unlock took,
// beside the next holder. Whether the lock's loss was told in time is not known.
func TestChecked_ProgramsOnThreeMountsSeeOneTree(t *testing.T) {
	if os.Getenv("CARTWHEEL_CHECKED") == "" {
		t.Skip("set CARTWHEEL_CHECKED=1 to check programs on three mounts under faults; not all that it finds is explained")
	}
	length := 40 * time.Second
	if os.Getenv("CARTWHEEL_WHOLE") != "" {
		length = 5 * time.Minute
	}
	strict := os.Getenv("CARTWHEEL_STRICT") != ""
	l := startLabOf(t, checkedTopology)
	seed := seedOf(t)
	t.Logf("CARTWHEEL_SEED=%d", seed)
	c := &checked{lab: l, chance: rand.New(rand.NewPCG(seed, 0))}
	c.prepare()
	for i := range programsEach * len(checkedSites) {
		c.programs = append(c.programs, startChecked(t, order{Number: i, Seed: seed, Root: c.roots[i%3], Contend: strict}))
	}
	c.harm(length)
	h := c.finals(c.end())
	for i, root := range c.roots { // each mount must show it so
		final := c.final(root)
		for _, wrong := range judge(h, final, strict) {
			t.Errorf("as %s shows it in the end: %s", checkedSites[i], wrong)
		}
		if t.Failed() {
			break
		}
	}
	c.report(h, strict)
}

// report logs what was done, and refuses a history that shows nothing.
func (c *checked) report(h history, strict bool) {
	c.t.Helper()
	counts := map[string]int{}
	var longest time.Duration
	for _, e := range h {
		counts[strings.TrimSpace(e.What+" "+e.Result)]++
		longest = max(longest, time.Duration(e.End-e.Begin))
	}
	c.t.Logf("%d operations, the longest took %v: %v", len(h), longest.Round(time.Millisecond), counts)
	kinds := []string{didAppend, didRead, didSet, didGet, didCount, didLook}
	if strict {
		kinds = append(kinds, didPut, didLink, didMove, didTake, didFind, didList)
	}
	for _, what := range kinds {
		if counts[what] == 0 {
			c.t.Errorf("%q was never done", what)
		}
	}
	if c.t.Failed() {
		c.keep(h)
	}
}

// keep copies the history and the logs to the folder that CARTWHEEL_KEEP names,
// if there is one.
func (c *checked) keep(h history) {
	to := os.Getenv("CARTWHEEL_KEEP")
	if to == "" {
		c.t.Log("CARTWHEEL_KEEP=FOLDER keeps the history and the logs")
		return
	}
	text, err := json.MarshalIndent(h, "", " ")
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "history.json"), text, 0o644)
	}
	if err == nil {
		_, err = try("cp", "-r", filepath.Join(c.dir, "logs"), filepath.Join(c.dir, "events.jsonl"), to)
	}
	if err != nil {
		c.t.Error(err)
	}
}
