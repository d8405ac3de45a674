package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// postmarkFigures finds "creation alone: N files (X per second)" and its like.
var postmarkFigures = []struct {
	work string
	line *regexp.Regexp
}{
	{"postmark create alone", regexp.MustCompile(`Creation alone: \d+ files \((\d+) per second\)`)},
	{"postmark delete alone", regexp.MustCompile(`Deletion alone: \d+ files \((\d+) per second\)`)},
	{"postmark transactions", regexp.MustCompile(`of transactions \((\d+) per second\)`)},
}

// postmark runs Debian's Postmark with HydraFS's parameters (its Table 1):
// files of 512 B to 16 KB in 10 folders.
func postmark(ctx context.Context, p place) error {
	program, err := exec.LookPath("postmark")
	if err != nil {
		return fmt.Errorf("postmark is not installed: apt-get install postmark, or leave it out with --only: %w", err)
	}
	// It runs in the folder: it keeps paths in 80 bytes, and of longer ones it
	// loses the end.
	script := fmt.Sprintf("set location .\nset size 512 16384\nset number %d\nset transactions %d\nset subdirectories 10\nset seed %d\nrun\nquit\n",
		p.opt.PostmarkFiles, p.opt.PostmarkTransactions, p.opt.Seed)
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir, cmd.Stdin, cmd.Stderr = p.dir, strings.NewReader(script), &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("postmark: %w: %s", err, first(said.Bytes()))
	}
	// It ends well whatever failed.
	for _, text := range [][]byte{said.Bytes(), out} {
		if at := bytes.Index(text, []byte("Error:")); at >= 0 {
			return fmt.Errorf("postmark: %s", first(text[at:]))
		}
	}
	for _, f := range postmarkFigures {
		m := f.line.FindSubmatch(out)
		if m == nil {
			return fmt.Errorf("postmark printed no line like %q", f.line)
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return err
		}
		p.out(f.work, "/s", v)
	}
	return nil
}

// first is the first line of a text.
func first(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}
