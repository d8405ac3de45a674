package command

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// startDetached starts a process that outlives this one, its words going to a
// log, and waits for its line that says ready. If it ends before, its words are
// the error and its exit code says the kind.
func startDetached(ctx context.Context, program string, args []string, logName string, limit time.Duration) error {
	const op fault.Op = "command.startDetached"
	output, err := os.OpenFile(logName, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fault.FromOS(op, logName, err)
	}
	defer output.Close()
	cmd := exec.Command(program, args...)
	cmd.Stderr = output
	cmd.SysProcAttr = ownSession()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fault.FromOS(op, program, err)
	}
	if err := cmd.Start(); err != nil {
		return fault.FromOS(op, program, err)
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n') // empty: it ended
		line <- text
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case text := <-line:
		if strings.Contains(text, `"ready":true`) {
			return cmd.Process.Release()
		}
		_ = cmd.Wait() // its words and exit code say more
		return fault.E(exitKind(cmd.ProcessState.ExitCode()), op, "", lastWords(logName))
	case <-timer.C:
		_ = cmd.Process.Kill() // it may have ended meanwhile
		_ = cmd.Wait()         // it was killed
		return fault.Errorf(fault.TimedOut, op, program, "did not answer within %v; its log: %s", limit, logName)
	case <-ctx.Done():
		_ = cmd.Process.Kill() // it may have ended meanwhile
		_ = cmd.Wait()         // it was killed
		return fault.Wrap(fault.Canceled, op, program, context.Cause(ctx))
	}
}

// lastWords is the last line of a log, without our own name.
func lastWords(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "cartwheel: ")
}

// exitKind finds a kind with the exit code of the process that ended.
func exitKind(code int) fault.Kind {
	for _, k := range fault.Kinds() {
		if k > fault.Other && k.ExitCode() == code {
			return k
		}
	}
	return fault.Other
}
