package rehearse

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/report"
)

// sample is one run of a command.
type sample struct {
	Work    string  `json:"work"`
	Host    string  `json:"host"`
	At      float64 `json:"at_s"`
	Seconds float64 `json:"took_s"`
	Failed  string  `json:"failed,omitempty"`
}

// happened is a fault that was done, or a check.
type happened struct {
	At     float64 `json:"at_s"`
	What   string  `json:"what"`
	Failed string  `json:"failed,omitempty"`
	lifts  bool    // the faults before it
}

// rehearsal is one run of a plan.
type rehearsal struct {
	*Plan
	lab   *lab.Lab
	say   func(format string, args ...any)
	logs  string
	start time.Time

	mu      sync.Mutex // guards below
	samples []sample
	faults  []happened
	checks  []happened
}

func (r *rehearsal) since() float64 { return time.Since(r.start).Seconds() }

// run does the work and the faults, heals, checks, and says what happened.
func (r *rehearsal) run(ctx context.Context) (report.Result, error) {
	before, err := r.lab.Network().Stats(ctx)
	if err != nil {
		return report.Result{}, err
	}
	r.start = time.Now()
	if err := r.perform(ctx); err != nil {
		return report.Result{}, err
	}
	r.say("all work has ended; healing")
	if err := r.lab.Do(ctx, lab.Fault{Do: lab.Heal}); err != nil {
		return report.Result{}, err
	}
	for _, h := range r.lab.Topology().Hosts {
		if !h.Node && !h.Mount {
			continue
		}
		if err := r.lab.Do(ctx, lab.Fault{Do: lab.Start, A: h.Name}); err != nil {
			return report.Result{}, err
		}
	}
	for _, c := range r.Checks {
		h := happened{At: r.since(), What: c.Host + ": " + c.Script}
		if failed := r.once(ctx, c.Host, c.Script, "checks", c.Limit); failed != nil {
			h.Failed = failed.Error()
		}
		if ctx.Err() != nil {
			return report.Result{}, fault.Wrap(fault.Canceled, "rehearse.Run", r.Name, context.Cause(ctx))
		}
		r.checks = append(r.checks, h)
	}
	after, err := r.lab.Network().Stats(ctx)
	if err != nil {
		return report.Result{}, err
	}
	return r.result(after.Since(before)), nil
}

// perform runs all work and all faults at their times, until the work ends.
func (r *rehearsal) perform(ctx context.Context) error {
	whole := ctx
	if r.Length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Length)
		defer cancel()
	}
	schedule, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	for _, w := range r.Work {
		for _, host := range w.Hosts {
			g.Go(func() error { return r.work(ctx, w, host) })
		}
	}
	faults := make(chan error, 1)
	go func() { faults <- r.disturb(schedule) }()
	err := g.Wait()
	stop() // faults behind the end of all work are not done
	if ferr := <-faults; err == nil {
		err = ferr
	}
	if whole.Err() != nil {
		return fault.Wrap(fault.Canceled, "rehearse.Run", r.Name, context.Cause(whole))
	}
	return err
}

// disturb does the faults at their times. One that cannot be done is told, and
// the next ones are done all the same.
func (r *rehearsal) disturb(ctx context.Context) error {
	for _, s := range r.Faults {
		if !r.until(ctx, s.At) {
			return nil
		}
		h := happened{At: r.since(), What: s.Fault.String()}
		switch s.Fault.Do {
		case lab.Heal, lab.Start, lab.Plug:
			h.lifts = true
		}
		r.say("%6.1f s  %v", h.At, s.Fault)
		if err := r.lab.Do(ctx, s.Fault); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			h.Failed = err.Error()
		}
		r.mu.Lock()
		r.faults = append(r.faults, h)
		r.mu.Unlock()
	}
	return nil
}

// until waits for a time of the run; false: ctx ended before.
func (r *rehearsal) until(ctx context.Context, at time.Duration) bool {
	timer := time.NewTimer(time.Until(r.start.Add(at)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// work runs one command in one host as often as it is to run.
func (r *rehearsal) work(ctx context.Context, w Work, host string) error {
	if w.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.start.Add(w.At+w.For))
		defer cancel()
	}
	next := w.At
	for n := 0; w.Times == 0 || n < w.Times; n++ {
		if !r.until(ctx, next) {
			return nil
		}
		began := time.Now()
		err := r.once(ctx, host, w.Script, w.Name, w.Limit, fmt.Sprintf("N=%d", n))
		if ctx.Err() != nil {
			return nil // the run that the end cut off does not count
		}
		s := sample{Work: w.Name, Host: host, At: began.Sub(r.start).Seconds(), Seconds: time.Since(began).Seconds()}
		if err != nil {
			s.Failed = err.Error()
		}
		r.mu.Lock()
		r.samples = append(r.samples, s)
		r.mu.Unlock()
		next = max(time.Since(r.start), began.Sub(r.start)+w.Every)
	}
	return nil
}

// once runs a script in a host, at its mount; what it writes is added to a log.
func (r *rehearsal) once(ctx context.Context, host, script, name string, limit time.Duration, environ ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log, err := os.OpenFile(filepath.Join(r.logs, name+"-"+host+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return fault.FromOS("rehearse.once", host, err)
	}
	defer log.Close()
	at, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fault.FromOS("rehearse.once", host, err)
	}
	cmd := r.lab.Command(ctx, host, "/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(cmd.Env, environ...)
	if point, err := r.lab.Mount(host); err == nil {
		cmd.Dir = point
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("killed after %v", limit)
		}
		said := make([]byte, saidLimit)
		n, _ := log.ReadAt(said, at) // what there is
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said[:n])))
	}
	return nil
}

// saidLimit is how much of a failed command's words goes into the figures.
const saidLimit = 300

// verdict is the error of a run whose checks failed.
func (r *rehearsal) verdict() error {
	for _, c := range r.checks {
		if c.Failed != "" {
			return fault.Errorf(fault.Other, "rehearse.Run", c.What, "this check failed: %s", c.Failed)
		}
	}
	return nil
}
