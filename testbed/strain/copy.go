package strain

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/trial"
	"golang.org/x/sync/errgroup"
)

// Copy is a large slice that a node gets anew over a slow line, while small
// files are written.
type Copy struct {
	Options
	Size  int64  // bytes of the slice's large file
	Files int    // small files in it besides
	Rate  string // of the line
	// Beside is how many small files are written a second meanwhile.
	Beside float64
}

const copyYAML = `
name: copy
sites:
  - {name: near, nodes: 2}
  - {name: far, nodes: 1, link: {rate: %s}}
wan: {rtt: 10 ms}
mounts: [near-1]
`

// The host whose node lacks the slice's state, and the one where files are
// written.
const (
	copyTo   = "far-1"
	copyFrom = "near-1"
)

// copyLimit bounds the copy beyond what the line takes.
const copyLimit = 15 * time.Minute

// Run brings a lab up, kills one node, writes, starts that node again, and
// watches the journals and small writes until it is whole.
func (o Copy) Run(ctx context.Context) (figures []Figure, err error) {
	const op fault.Op = "strain.Run"
	t, err := topology.Parse("copy.yaml", fmt.Appendf(nil, copyYAML[1:], o.Rate))
	if err != nil {
		return nil, err
	}
	rate, err := topology.ParseRate(o.Rate)
	if err != nil {
		return nil, err
	}
	if o.Bin == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fault.Wrap(fault.Other, op, "", err)
		}
		o.Bin = filepath.Dir(self)
	}
	dir, err := os.MkdirTemp(o.In, "cartwheel-strain-")
	if err != nil {
		return nil, fault.FromOS(op, o.In, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := lab.Up(ctx, lab.Options{Name: fmt.Sprintf("s%06d", os.Getpid()%1_000_000), Topology: t, Dir: dir, Programs: lab.Beside(o.Bin), Say: o.say})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := o.fill(ctx, l); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, copyLimit+time.Duration(float64(o.Size)*8/float64(rate)*float64(time.Second)))
	defer cancel()
	return o.measure(ctx, l)
}

// fill waits for the cluster, kills the node, and writes what it misses.
func (o Copy) fill(ctx context.Context, l *lab.Lab) error {
	point, err := l.Mount(copyFrom)
	if err != nil {
		return err
	}
	if err := awaitMembers(ctx, l, lab.Beside(o.Bin).Cartwheel); err != nil {
		return err
	}
	if err := l.Do(ctx, lab.Fault{Do: lab.Kill, A: copyTo}); err != nil {
		return err
	}
	o.say("writing %.0f MiB and %d small files", mib(o.Size), o.Files)
	if _, err := load.WriteStream(ctx, filepath.Join(point, "large"), o.Size, 1); err != nil {
		return err
	}
	small := filepath.Join(point, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		return fault.FromOS("strain.fill", small, err)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i := range o.Files {
		all.Go(func() error {
			return errors.Join(ctx.Err(), os.WriteFile(filepath.Join(small, fmt.Sprint("f", i)), []byte("x"), 0o644))
		})
	}
	return all.Wait()
}

func (o Copy) measure(ctx context.Context, l *lab.Lab) ([]Figure, error) {
	point, err := l.Mount(copyFrom)
	if err != nil {
		return nil, err
	}
	if err := l.Do(ctx, lab.Fault{Do: lab.Start, A: copyTo}); err != nil {
		return nil, err
	}
	o.say("copying to %s", copyTo)
	began := time.Now()
	w := writeSmall(point, o.Beside)
	j := watchJournals(l)
	err = awaitMembers(ctx, l, lab.Beside(o.Bin).Cartwheel)
	took := time.Since(began)
	most, jerr := j.end()
	made, slowest, werr := w.end()
	if err = errors.Join(err, jerr, werr); err != nil {
		return nil, err
	}
	figures := []Figure{
		{"copied", mib(o.Size), "MiB"}, {"took", took.Seconds(), "s"},
		{"small files written meanwhile", float64(made), ""}, {"which are", mib(int64(made) * besideBytes), "MiB"}, {"slowest of them", milliseconds(slowest), "ms"},
	}
	for i, n := range l.Nodes() {
		figures = append(figures, Figure{"largest journal at " + n.Host, mib(most[i]), "MiB"})
	}
	return figures, nil
}

// awaitMembers waits until every slice has all nodes as normal members.
func awaitMembers(ctx context.Context, l *lab.Lab, program string) error {
	for {
		lacking, err := lacking(ctx, l, program)
		if err == nil && lacking == 0 {
			return nil
		}
		if waited := wait(ctx, time.Second); waited != nil {
			return fault.Errorf(fault.TimedOut, "strain.awaitMembers", copyTo, "%d members are not normal, %v", lacking, err)
		}
	}
}

// lacking counts the members that are missing or not normal, over all slices.
func lacking(ctx context.Context, l *lab.Lab, program string) (n int, err error) {
	out, err := l.Run(ctx, copyFrom, program, "slice", "ls", "--json", "--contact", l.Contact())
	if err != nil {
		return 0, err
	}
	var rows []struct {
		Members []struct {
			State string `json:"state"`
		} `json:"members"`
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return 0, fault.Wrap(fault.Other, "strain.lacking", "", err)
	}
	nodes := len(l.Nodes())
	for _, r := range rows {
		n += nodes
		for _, m := range r.Members {
			if m.State == "N" {
				n--
			}
		}
	}
	if len(rows) == 0 {
		n = nodes
	}
	return n, nil
}

// besideBytes is the size of the small files, and besideWriters how many
// programs write them.
const (
	besideBytes   = 16 << 10
	besideWriters = 8
)

// smallWriters write small files, each safe before its writer's next one.
type smallWriters struct {
	stop atomic.Bool
	all  errgroup.Group

	mu      sync.Mutex // guards below
	made    int
	slowest time.Duration
}

// writeSmall starts them; together they write so many files a second.
func writeSmall(point string, rate float64) *smallWriters {
	w := &smallWriters{}
	every := time.Duration(besideWriters / rate * float64(time.Second))
	for i := range besideWriters {
		w.all.Go(func() error {
			data := make([]byte, besideBytes)
			tick := time.NewTicker(every)
			defer tick.Stop()
			for n := 0; !w.stop.Load(); n++ {
				began := time.Now()
				binary.LittleEndian.PutUint64(data, uint64(n*besideWriters+i)) // no two are alike
				if err := safely(filepath.Join(point, fmt.Sprintf("beside%d-%d", i, n%100)), data); err != nil {
					return err
				}
				took := time.Since(began)
				w.mu.Lock()
				w.made++
				w.slowest = max(w.slowest, took)
				w.mu.Unlock()
				<-tick.C
			}
			return nil
		})
	}
	return w
}

// safely writes a file and has it on the disks.
func safely(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return fault.FromOS("strain.safely", path, err)
	}
	_, err = f.Write(data)
	return fault.FromOS("strain.safely", path, errors.Join(err, f.Sync(), f.Close()))
}

func (w *smallWriters) end() (made int, slowest time.Duration, err error) {
	w.stop.Store(true)
	err = w.all.Wait()
	return w.made, w.slowest, err
}

// journals looks at how large the nodes' journals are.
type journals struct {
	stop chan struct{}
	done sync.WaitGroup
	most []int64
	err  error
}

func watchJournals(l *lab.Lab) *journals {
	nodes := l.Nodes()
	j := &journals{stop: make(chan struct{}), most: make([]int64, len(nodes))}
	j.done.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			for i, n := range nodes {
				size, err := trial.FolderBytes(filepath.Join(l.Dir(), "data", n.Host, "journal"))
				j.most[i], j.err = max(j.most[i], size), errors.Join(j.err, err)
			}
			select {
			case <-j.stop:
				return
			case <-tick.C:
			}
		}
	})
	return j
}

func (j *journals) end() ([]int64, error) {
	close(j.stop)
	j.done.Wait()
	return j.most, j.err
}
