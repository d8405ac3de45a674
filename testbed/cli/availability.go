package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"

	clients "cartwheel.dev/clients/command"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
)

type availabilityCmd struct {
	File     string            `arg:"" optional:"" help:"YAML file of figures and policies: docs/experiments.md." type:"path"`
	Out      string            `help:"Directory that takes the run's directory." default:"cartwheel-testbed" type:"path"`
	Set      map[string]string `help:"A figure of the file, such as nodes=20." placeholder:"KEY=VALUE"`
	Policy   []string          `help:"A policy, as LEVEL or LEVEL/SITES. Given several times: several policies." placeholder:"LEVEL/SITES"`
	Measured string            `help:"JSON file of measured recovery times." type:"path" placeholder:"FILE"`
}

// Help shows how it is called, and names the figures.
func (availabilityCmd) Help() string {
	figures := ""
	if x, err := experiment.Find(known(), "availability"); err == nil {
		for _, s := range x.Settings {
			if s.Default == "" && !isWord(s.Name) {
				figures += "\n\n" + s.Name + ": " + s.Help
			}
		}
	}
	return help("cartwheel-testbed availability --set nodes=20 --set sites=4 --policy 3/3 --policy 2/2\n\n"+
		"The command computes, and runs nothing. `cartwheel-testbed run availability` also plays BeanFS's and CFS's models.") + "\n\nFigures:" + figures
}

// isWord reports whether a setting has an option of its own.
func isWord(name string) bool { return name == "file" || name == "measured" || name == "policies" }

// predictedView is what the command says to scripts.
type predictedView struct {
	Folder  string          `json:"folder"`
	Figures json.RawMessage `json:"figures"`
}

// Run computes.
func (c availabilityCmd) Run(e *env) error {
	set := map[string]string{"file": c.File, "measured": c.Measured, "policies": strings.Join(c.Policy, ","), "papers": "no"}
	maps.Copy(set, c.Set)
	if !e.json {
		return e.experiment("availability", set, runWords{Out: c.Out})
	}
	quiet := *e
	var said bytes.Buffer
	quiet.stdio.Out = &said
	if err := quiet.experiment("availability", set, runWords{Out: c.Out}); err != nil {
		return err
	}
	var ran ranView
	if err := json.Unmarshal(said.Bytes(), &ran); err != nil {
		return fault.Wrap(fault.Corrupt, "cli.availability", "run", err)
	}
	v := predictedView{Folder: ran.Folder}
	text, err := os.ReadFile(filepath.Join(ran.Folder, report.FiguresFile))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return fault.FromOS("cli.availability", ran.Folder, err)
	}
	return clients.WriteJSON(e.stdio.Out, v)
}
