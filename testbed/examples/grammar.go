package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cartwheel.dev/clients/command"
	"cartwheel.dev/node/daemon"
	"cartwheel.dev/testbed/bench"
	"cartwheel.dev/testbed/cli"
)

// missing is how a parser refuses a path that must exist: the words are right,
// and the path is the reader's.
const missing = "no such file or directory"

// Check reports what is wrong with one command line of a document: a command,
// an option or a value that the program's own parser refuses, a script that is
// not in the repository, or a test that no package has. It runs nothing, and
// knows nothing of programs that are not ours.
func Check(root string, words []string) error {
	program := filepath.Base(words[0])
	switch {
	case program == "cartwheel" || program == "cartwheeld" || program == "cartwheel-testbed" || program == "planted":
		return checkWords(program, words[1:])
	case program == "bench" || program == "bench-store":
		return checkBench(program, words[1:])
	case strings.HasPrefix(words[0], "scripts/"):
		_, err := os.Stat(filepath.Join(root, words[0]))
		return err
	case program == "npm":
		return checkNPM(root, words[1:])
	case program == "go" && len(words) > 1 && words[1] == "test":
		return checkTest(root, words[2:])
	}
	return nil
}

// checkWords asks the program's parser for help with the words: it reads all of
// them before it prints any.
func checkWords(program string, words []string) error {
	var said bytes.Buffer
	words = append([]string{"--help"}, words...)
	ctx := context.Background()
	code := 0
	switch program {
	case "cartwheel":
		code = command.Run(ctx, append([]string{program}, words...), command.Stdio{Out: io.Discard, Err: &said})
	case "cartwheeld":
		code = daemon.Run(ctx, words, daemon.Stdio{Out: io.Discard, Err: &said})
	default:
		code = cli.Run(ctx, append([]string{program}, words...), cli.Stdio{Out: io.Discard, Err: &said})
	}
	if code != 0 && !strings.Contains(said.String(), missing) {
		return errors.New(strings.TrimSpace(said.String()))
	}
	return nil
}

// checkBench puts an option behind the words that no program has. The parser
// must object to that one, and to none before it.
func checkBench(program string, words []string) error {
	const last = "--behind-the-last-word"
	words = append(append([]string{}, words...), last)
	var err error
	if program == "bench" {
		err = bench.Main(context.Background(), words, io.Discard, io.Discard)
	} else {
		err = bench.StoreMain(context.Background(), words, io.Discard, io.Discard)
	}
	if err == nil || strings.Contains(err.Error(), last) || strings.Contains(err.Error(), missing) {
		return nil
	}
	return err
}

// checkNPM looks for the script in package.json.
func checkNPM(root string, words []string) error {
	if len(words) > 0 && words[0] == "run" {
		words = words[1:]
	}
	if len(words) == 0 {
		return errors.New("npm without a script")
	}
	data, err := os.ReadFile(filepath.Join(root, "package.json"))
	if err != nil {
		return err
	}
	var file struct {
		Scripts map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	script, ok := file.Scripts[words[0]]
	if !ok {
		return fmt.Errorf("package.json has no script %q", words[0])
	}
	rest := words[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	switch script {
	case "scripts/start":
		return checkWords("cartwheel", append([]string{"demo"}, rest...))
	case "scripts/bench":
		return checkBench("bench", rest)
	case "scripts/bench --store":
		return checkBench("bench-store", rest)
	case "scripts/bench --console":
		return checkSeconds(rest)
	}
	return Check(root, strings.Fields(script))
}

// checkSeconds checks the words of the bench of the console: one number at most.
func checkSeconds(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if n, err := strconv.Atoi(words[0]); err != nil || n < 1 || n > 60 || len(words) > 1 {
		return fmt.Errorf("%q is no length of 1 to 60 seconds", words)
	}
	return nil
}

// checkTest looks for the packages and the tests that `go test` is to run. The
// packages' directories are below root or below one of its modules.
func checkTest(root string, words []string) error {
	run, rewrite := "", false
	var packages []string
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			packages = append(packages, w)
		case i > 0 && words[i-1] == "-run":
			run = w
		case w == "-rewrite":
			rewrite = true
		}
	}
	for _, p := range packages {
		folder, all := strings.CutSuffix(p, "/...")
		text, err := sources(root, folder)
		if err != nil {
			return err
		}
		if all || run == "" {
			continue
		}
		if !hasTest(text, run) {
			return fmt.Errorf("package %s has no test %s", p, run)
		}
		if rewrite && !strings.Contains(text, `flag.Bool("rewrite"`) {
			return fmt.Errorf("the tests of %s know no -rewrite", p)
		}
	}
	return nil
}

// sources are all Go files of a folder below root or below one of its modules.
func sources(root, folder string) (string, error) {
	var text strings.Builder
	there := false
	for _, pattern := range []string{filepath.Join(root, folder), filepath.Join(root, "*", folder)} {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, f := range folders {
			there = true
			files, err := filepath.Glob(filepath.Join(f, "*.go"))
			if err != nil {
				return "", err
			}
			for _, name := range files {
				data, err := os.ReadFile(name)
				if err != nil {
					return "", err
				}
				text.Write(data)
			}
		}
	}
	if !there {
		return "", fmt.Errorf("there is no package %s", folder)
	}
	return text.String(), nil
}

// hasTest reports whether `go test -run` finds a test in the text. Subtests are
// not looked for.
func hasTest(text, run string) bool {
	top, _, _ := strings.Cut(run, "/")
	pattern, err := regexp.Compile(top)
	if err != nil {
		return false
	}
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
		if pattern.MatchString(m[1]) {
			return true
		}
	}
	return false
}
