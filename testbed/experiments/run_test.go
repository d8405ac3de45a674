package experiments

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/testbed/report"
)

// TestExperiments_Run runs the real thing, in the short form or the whole one,
// as a person would. It asks whether the folder of the run is complete and
// nothing acknowledged was lost, never how fast it was.
func TestExperiments_Run(t *testing.T) {
	form := os.Getenv("CARTWHEEL_EXPERIMENTS")
	if form == "" {
		t.Skip("set CARTWHEEL_EXPERIMENTS=short or =whole to run real processes on an emulated wide area")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs TUN:", err)
	}
	for _, x := range All() {
		t.Run(x.Name, func(t *testing.T) {
			if form == "short" { // mostly they wait, and no figure of theirs counts
				t.Parallel()
			}
			runs(t, x.Name, form)
		})
	}
}

func runs(t *testing.T, name, form string) {
	program, err := filepath.Abs("../../bin/cartwheel-testbed")
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	args, limit := []string{"run", name, "--out", parent}, 90*time.Minute // distribution takes 40, and once more where it is void
	if form == "short" {
		args, limit = append(args, "--short"), 3*time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	said := filepath.Join(parent, "said")
	log, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	if text, rerr := os.ReadFile(said); err != nil || rerr != nil {
		t.Fatalf("%v, %v, %v:\n%s", err, ctx.Err(), rerr, text)
	}
	folders, err := filepath.Glob(filepath.Join(parent, name+"-*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("it left the folders %v: %v", folders, err)
	}
	complete(t, folders[0], !withoutLab[name])
}

// withoutLab are the experiments in virtual time, or on files alone: they have no topology,
// and no program writes a log.
var withoutLab = map[string]bool{"availability": true, "dedup": true, "placement": true}

// complete looks whether everything is in a run's folder.
func complete(t *testing.T, folder string, lab bool) {
	t.Helper()
	var got struct {
		Run    report.Run     `json:"run"`
		Tables []report.Table `json:"tables"`
		Plots  []report.Plot  `json:"plots"`
	}
	data, err := os.ReadFile(filepath.Join(folder, report.FiguresFile))
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.Run.Void != "" {
		t.Logf("void, which a loaded machine can make of any run: %s", got.Run.Void)
	}
	if len(got.Tables) == 0 || len(got.Plots) == 0 || got.Run.Versions.Kernel == "" || got.Run.Seconds == 0 {
		t.Errorf("something is missing: %+v", got.Run)
	}
	for _, table := range got.Tables {
		for i, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("%s: row %d has %d cells of %d", table.Name, i+1, len(row), len(table.Columns))
			}
		}
		if len(table.Rows) == 0 {
			t.Errorf("%s is empty", table.Name)
		}
		t.Logf("%s: %d rows", table.Name, len(table.Rows))
	}
	files := []string{report.RunFile, report.TextFile, report.MarkdownFile}
	if lab {
		files = append(files, report.TopologyFile)
	}
	for _, p := range got.Plots {
		files = append(files, p.Name+".svg", p.Name+".png")
		if len(p.Lines) == 0 && len(p.Bars) == 0 {
			t.Errorf("%s shows nothing", p.Name)
		}
	}
	for _, name := range files {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, or empty", name, err)
		}
	}
	if !lab {
		return
	}
	logs, err := os.ReadDir(filepath.Join(folder, report.LogFolder))
	if err != nil || !strings.Contains(names(logs), "-node.log") || !strings.Contains(names(logs), "events.jsonl") {
		t.Errorf("logs are missing: %s, %v", names(logs), err)
	}
}

func names(entries []os.DirEntry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}
