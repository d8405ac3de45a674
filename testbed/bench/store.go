package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/trial"
	"github.com/alecthomas/kong"
)

// HydraFS's own figures (FAST 2010), to be shown beside ours: percent of the
// bare store (Fig 5), and cold reading in MB/s (Table 2).
const (
	hydraWrite, hydraRead = 88, 82
)

type storeFlags struct {
	Size   int64  `help:"Bytes of the large file." default:"1073741824"`
	Rounds int    `help:"Rounds." default:"3"`
	In     string `help:"Where to make the directory of the demo and the stores; on the disk to be measured." type:"existingdir"`
	Bin    string `help:"Directory of the cartwheel command (default: this command's)." type:"path"`
	JSON   string `help:"Write every figure to this file." type:"path"`
}

// Works of the comparison. Their folders are called by what is measured.
const (
	workWrite = "write durable"
	workRead  = "read cold"
	workPath  = "read cold, by read path"
	bareName  = "three local stores"
	rawName   = "chunk service, replicated"
	fsName    = "file system"
)

// readPaths are the mounts of the second table.
func readPaths() []readPath {
	return []readPath{
		{"neither", []string{"--no-read-ahead", "--no-range-map"}},
		{"range map", []string{"--no-read-ahead"}},
		{"range map and read-ahead", nil},
	}
}

type readPath struct {
	name  string
	flags []string
}

// storeRun is one comparison.
type storeRun struct {
	opt      storeFlags
	demo     *trial.Demo
	progress io.Writer
	figures  []Figure
}

// StoreMain is the command bench-store.
func StoreMain(ctx context.Context, args []string, out, progress io.Writer) error {
	const op fault.Op = "bench.StoreMain"
	var f storeFlags
	k, err := kong.New(&f, kong.Name("bench-store"), kong.Description("Measures one large file on the file system against the chunk service below it, and against bare local stores, and cold reading with read-ahead and range map off and on. Starts a demo of its own. Needs root."))
	if err != nil {
		return err
	}
	if _, err := k.Parse(args); err != nil {
		return fault.Wrap(fault.Usage, op, "", err)
	}
	if f.Size < streamBuffer || f.Rounds < 1 {
		return fault.E(fault.Usage, op, "--size", "must be 1 MiB at least, and --rounds 1")
	}
	return trial.Run(ctx, trial.Options{Bin: f.Bin, In: f.In, Progress: progress}, func(d *trial.Demo) error {
		r := &storeRun{opt: f, demo: d, progress: progress}
		if err := r.run(ctx); err != nil {
			return err
		}
		r.table(out)
		if f.JSON == "" {
			return nil
		}
		data, err := json.MarshalIndent(r.figures, "", "  ")
		if err == nil {
			err = os.WriteFile(f.JSON, data, 0o644)
		}
		return fault.FromOS(op, f.JSON, err)
	})
}

func (r *storeRun) run(ctx context.Context) error {
	for round := range r.opt.Rounds {
		sides := []func(context.Context, int) error{r.serviceRound, r.mountRound, r.bareRound}
		for i := range sides { // nobody is always first
			if err := sides[(i+round)%len(sides)](ctx, round); err != nil {
				return err
			}
		}
	}
	return r.pathRounds(ctx)
}

func (r *storeRun) note(work, name string, round int, value float64) {
	r.figures = append(r.figures, Figure{Work: work, Unit: "MB/s", Dir: name, Round: round, Value: value})
	fmt.Fprintf(r.progress, "%-26s %-26s round %d  %10.0f MB/s\n", work, name, round+1, value)
}

// speed times fn and notes the megabytes of the large file a second.
func (r *storeRun) speed(work, name string, round int, fn func() error) error {
	took, err := timed(fn)
	if err != nil {
		return fault.Wrap(fault.Other, "bench.speed", work+", "+name, err)
	}
	r.note(work, name, round, float64(r.opt.Size)/1e6/took)
	return nil
}

// place is where the caches are dropped; the seed makes every round's bytes
// new, so that no side finds the other's chunks, nor its own.
func (r *storeRun) place(dir string, seed int) place {
	return place{dir: dir, opt: Options{Seed: uint64(seed + 1)}}
}

// serviceSeed sets the chunk service's bytes apart from the mount's, which go to
// the same nodes.
const serviceSeed = 1 << 20

func (r *storeRun) serviceRound(ctx context.Context, round int) (err error) {
	s, err := openService(ctx, r.demo)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	p := r.place(r.demo.Sites[0].Mount, serviceSeed+round)
	if err := r.speed(workWrite, rawName, round, func() error { return s.write(ctx, p, r.opt.Size) }); err != nil {
		return err
	}
	if err := p.cold(); err != nil {
		return err
	}
	return r.speed(workRead, rawName, round, func() error { return s.read(ctx, nil) })
}

func (r *storeRun) bareRound(ctx context.Context, round int) (err error) {
	dir := filepath.Join(r.demo.Folder, "bare")
	b, err := openBare(dir)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := b.close(); err == nil {
			err = closeErr
		}
	}()
	p := r.place(dir, round)
	if err := r.speed(workWrite, bareName, round, func() error { return b.write(ctx, p, r.opt.Size) }); err != nil {
		return err
	}
	if err := p.cold(); err != nil {
		return err
	}
	return r.speed(workRead, bareName, round, func() error { return b.read(ctx) })
}

func (r *storeRun) mountRound(ctx context.Context, round int) error {
	dir := r.demo.Sites[0].Mount
	p := r.place(dir, round)
	path := filepath.Join(dir, fmt.Sprint("large", round))
	if err := r.speed(workWrite, fsName, round, func() error { return p.writeLarge(ctx, path, r.opt.Size) }); err != nil {
		return err
	}
	if err := p.cold(); err != nil {
		return err
	}
	err := r.speed(workRead, fsName, round, func() error { return r.whole(ctx, path) })
	if err == nil && round > 0 {
		err = os.Remove(path) // the first one is for the other mounts
	}
	return err
}

// whole reads a large file and checks its length.
func (r *storeRun) whole(ctx context.Context, path string) error {
	n, err := readLarge(ctx, path)
	if err == nil && n != r.opt.Size {
		err = fault.Errorf(fault.Corrupt, "bench.whole", path, "has %d bytes, want %d", n, r.opt.Size)
	}
	return err
}

// pathRounds reads the first round's file through mounts with parts of the read
// path turned off.
func (r *storeRun) pathRounds(ctx context.Context) error {
	for round := range r.opt.Rounds {
		for _, path := range readPaths() {
			if err := r.pathRound(ctx, path, round); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *storeRun) pathRound(ctx context.Context, path readPath, round int) (err error) {
	point := filepath.Join(r.demo.Folder, "point")
	if err := os.MkdirAll(point, 0o755); err != nil {
		return err
	}
	args := append([]string{"mount", r.demo.Contact, point, "--site", r.demo.Sites[0].Name, "--report-ready"}, path.flags...)
	p, err := trial.Start(r.demo.Program, args, r.progress, `{`)
	if err != nil {
		return err
	}
	defer func() {
		endErr := p.End()
		_ = syscall.Unmount(point, syscall.MNT_DETACH) // it is gone, mostly
		if err == nil {
			err = endErr
		}
	}()
	if err := p.Ready(ctx); err != nil {
		return err
	}
	if err := r.place(point, 0).cold(); err != nil {
		return err
	}
	return r.speed(workPath, path.name, round, func() error { return r.whole(ctx, filepath.Join(point, "large0")) })
}

// table prints the medians.
func (r *storeRun) table(w io.Writer) {
	get := func(work, name string) float64 {
		var values []float64
		for _, f := range r.figures {
			if f.Work == work && f.Dir == name {
				values = append(values, f.Value)
			}
		}
		return median(values)
	}
	fmt.Fprintf(w, "\nOne file of %d MB, medians of %d rounds, MB/s\n\n", r.opt.Size/1e6, r.opt.Rounds)
	fmt.Fprintf(w, "%-28s %14s %14s\n", "", workWrite, workRead)
	for _, name := range []string{fsName, rawName, bareName} {
		fmt.Fprintf(w, "%-28s %14.0f %14.0f\n", name, get(workWrite, name), get(workRead, name))
	}
	for _, base := range []struct{ line, name string }{{"file system / service", rawName}, {"file system / local stores", bareName}} {
		percent := func(work string) float64 { return 100 * get(work, fsName) / get(work, base.name) }
		fmt.Fprintf(w, "%-28s %13.0f%% %13.0f%%\n", base.line, percent(workWrite), percent(workRead))
		if base.name == rawName {
			fmt.Fprintf(w, "%-28s %13d%% %13d%%\n", "  HydraFS / its raw store", hydraWrite, hydraRead)
		}
	}
	fmt.Fprintf(w, "\nCold reading with parts of the read path, MB/s (HydraFS: 134, 166, 183)\n\n")
	for _, path := range readPaths() {
		fmt.Fprintf(w, "%-28s %14.0f\n", path.name, get(workPath, path.name))
	}
}
