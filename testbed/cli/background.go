package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// upLimit bounds the wait for a lab that comes up in the background.
const upLimit = 5 * time.Minute

// detach runs the same words in a process of its own, and returns when that one
// says that it is ready.
func (e *env) detach(log string) error {
	const op fault.Op = "cli.detach"
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return fault.FromOS(op, log, err)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fault.FromOS(op, log, err)
	}
	defer out.Close()
	cmd := exec.Command(self, append(e.words, "--in-background")...)
	cmd.Stderr = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	if err := cmd.Start(); err != nil {
		return fault.Wrap(fault.IO, op, self, err)
	}
	ready, ended := make(chan upView, 1), make(chan error, 1)
	go func() {
		s := bufio.NewScanner(lines)
		for s.Scan() {
			var v upView
			if json.Unmarshal(s.Bytes(), &v) == nil && v.Ready {
				ready <- v
				return // the process lives on, and says no more
			}
		}
		ended <- cmd.Wait()
	}()
	timer := time.NewTimer(upLimit)
	defer timer.Stop()
	select {
	case v := <-ready:
		return e.print(v, func(w io.Writer) { v.text(w) })
	case err := <-ended:
		return childError(err, log)
	case <-timer.C:
		err = fault.Errorf(fault.TimedOut, op, "", "not up within %v; log: %s", upLimit, log)
	case <-e.ctx.Done():
		err = fault.Wrap(fault.Canceled, op, "", e.ctx.Err())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it cleans up after itself
	<-ended
	return err
}

// childError is the error that the process in the background ended with, which
// it wrote to its log; its exit status is passed on.
func childError(err error, log string) error {
	text, rerr := os.ReadFile(log)
	if rerr != nil {
		return fault.FromOS("cli.up", log, rerr)
	}
	code := fault.ExitFailure
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // what Wait returned
		code = failed.ExitCode()
	}
	return &exitError{code: code, text: string(text)}
}

// exitError ends this command with another one's exit status; the text has been
// written already where it is empty.
type exitError struct {
	code int
	text string
}

func (x *exitError) Error() string { return x.text }
