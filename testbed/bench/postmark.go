package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
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
	script := fmt.Sprintf("set location %s\nset size 512 16384\nset number %d\nset transactions %d\nset subdirectories 10\nset seed %d\nrun\nquit\n",
		p.dir, p.opt.PostmarkFiles, p.opt.PostmarkTransactions, p.opt.Seed)
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdin = strings.NewReader(script)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("postmark: %w", err)
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
