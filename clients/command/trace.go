package command

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/cartwheel/traced"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
)

// countsAttribute is there below mounts; traceAttribute, with a token behind
// it, begins, reads and ends a trace; see package cartwheel.
const (
	countsAttribute = "user.cartwheel.counts"
	traceAttribute  = "user.cartwheel.trace."
)

type traceCmd struct {
	Mount   string   `help:"A directory below the mount to look at." default:"." type:"path"`
	All     bool     `help:"Count the operations of all processes, not only the command's."`
	Each    bool     `help:"List every operation with its path, and each with its calls."`
	Output  string   `short:"o" help:"Write the counts here, and not behind what the command writes." type:"path"`
	Command []string `arg:"" passthrough:"" help:"The command and its words."`
}

// Help shows how it is called.
func (traceCmd) Help() string {
	return help(`cartwheel trace --mount /mnt cp -r src /mnt/src

Counts go to standard error, with --json to standard output; the command's own output then goes to standard error.
WAN: round trips to other sites that were waited for, one after the other. The command's exit status is passed on.`)
}

// traceView is what trace prints.
type traceView struct {
	Command []string `json:"command"`
	Status  int      `json:"status"`
	Nanos   int64    `json:"time_ns"`
	traced.Watched
	Each []trace.Record `json:"each,omitempty"`
}

// Run runs the command with its mount watched.
func (c *traceCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	if _, err := getxattr(c.Mount, countsAttribute); err != nil {
		return c.notMount(err) // other file systems would keep what is set
	}
	name := traceAttribute + rand.Text()
	process := os.Getpid()
	if c.All {
		process = 0
	} else {
		adoptOrphans()
	}
	if err := setxattr(c.Mount, name, strconv.Itoa(process)); err != nil {
		return c.notMount(err)
	}
	// The mount forgets it by itself when others have begun.
	defer func() { _ = setxattr(c.Mount, name, "end") }()
	v := traceView{Command: c.Command}
	began := time.Now()
	err := c.run(e)
	v.Nanos = int64(time.Since(began))
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		v.Status = exit.ExitCode()
	} else if err != nil {
		return fault.Wrap(fault.NotFound, op, c.Command[0], err)
	}
	if err := c.read(&v, name); err != nil {
		return err
	}
	if err := c.show(e, &v); err != nil {
		return err
	}
	if v.Status != 0 {
		return &ended{c.Command[0], v.Status}
	}
	return nil
}

// ended is how a command ended that was run for somebody.
type ended struct {
	command string
	status  int
}

func (e *ended) Error() string { return fmt.Sprintf("%s ended with status %d", e.command, e.status) }

func (c *traceCmd) notMount(err error) error {
	const op fault.Op = "command.notMount"
	if errors.Is(err, fault.NotSupported.Errno()) || errors.Is(err, fault.NoAttribute.Errno()) || errors.Is(err, errors.ErrUnsupported) {
		return fault.E(fault.NotFound, op, c.Mount, "is not below a Cartwheel mount; name one with --mount")
	}
	return fault.FromOS(op, c.Mount, err)
}

func (c *traceCmd) run(e *env) error {
	cmd := exec.CommandContext(e.ctx, c.Command[0], c.Command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, e.stdio.Out, e.stdio.Err
	if e.flags.JSON && c.Output == "" {
		cmd.Stdout = e.stdio.Err
	}
	return cmd.Run()
}

// read fetches what the mount has counted.
func (c *traceCmd) read(v *traceView, name string) error {
	const op fault.Op = "command.read"
	get := func(name string, into any) error {
		data, err := getxattr(c.Mount, name)
		if err != nil {
			return c.notMount(err)
		}
		return fault.Wrap(fault.Corrupt, op, c.Mount, json.Unmarshal(data, into))
	}
	if err := get(name, &v.Watched); err != nil {
		return err
	}
	for c.Each {
		var page []trace.Record
		if err := get(name+"."+strconv.Itoa(len(v.Each)), &page); err != nil || len(page) == 0 {
			return err
		}
		v.Each = append(v.Each, page...)
	}
	return nil
}

func (c *traceCmd) show(e *env, v *traceView) (err error) {
	const op fault.Op = "command.show"
	out := *e
	if !e.flags.JSON {
		out.stdio.Out = e.stdio.Err
	}
	if c.Output != "" {
		f, err := os.Create(c.Output)
		if err != nil {
			return fault.FromOS(op, c.Output, err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out.stdio.Out = f
	}
	return out.print(v, v.text)
}

func (v *traceView) text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i := range v.Each {
		x := &v.Each[i]
		if i == 0 {
			fmt.Fprintln(t, "operation\tWAN\tlocal\tout\tin\tms\tpath\t")
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%.1f\t%s\t\n", x.Kind, x.WAN, x.Local, x.Out, x.In, float64(x.Nanos)/1e6, x.About)
	}
	if len(v.Each) > 0 {
		fmt.Fprintln(t)
	}
	sort.SliceStable(v.Counts, func(i, j int) bool { return v.Counts[i].WAN > v.Counts[j].WAN })
	fmt.Fprintln(t, "operation\tcount\tWAN\teach\tmost\tlocal\tout\tin\tbetween\tms\t")
	total := trace.Count{Kind: "all"}
	for _, c := range v.Counts {
		line(t, c)
		total.Count, total.WAN, total.Local, total.MostWAN = total.Count+c.Count, total.WAN+c.WAN, total.Local+c.Local, max(total.MostWAN, c.MostWAN)
		total.Out, total.In, total.Between, total.Nanos = total.Out+c.Out, total.In+c.In, total.Between+c.Between, total.Nanos+c.Nanos
	}
	line(t, total)
	t.Flush() // w's errors are the terminal's
	if v.Dropped > 0 {
		fmt.Fprintf(w, "%d operations more were counted and not kept\n", v.Dropped)
	}
	fmt.Fprintf(w, "%.3f s\n", float64(v.Nanos)/1e9)
}

func line(w io.Writer, c trace.Count) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%d\t%d\t%s\t%s\t%s\t%.1f\t\n", c.Kind, c.Count, c.WAN, float64(c.WAN)/float64(max(c.Count, 1)), c.MostWAN, c.Local,
		size(c.Out), size(c.In), size(c.Between), float64(c.Nanos)/1e6)
}
