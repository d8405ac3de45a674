package house

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"github.com/alecthomas/kong"
)

// limitsFile is where a tree keeps its limits, from its root.
const limitsFile = "testbed/tidy/house/limits.txt"

type flags struct {
	Root   string `help:"The tree to measure." default:"." type:"existingdir"`
	Limits bool   `help:"Print only the figures that are over their limits, and fail if there are any."`
	Lower  bool   `help:"Lower the limits in limits.txt to the figures that are below them."`
	All    bool   `help:"List every figure above what is to be reached, and every short file."`
	JSON   bool   `name:"json" help:"Print every figure as JSON."`
	Knot   string `help:"Print a package's files, and what ties them together." placeholder:"FOLDER"`
	To     int    `help:"The most files of a knot that --knot aims at." default:"10"`
}

// Main is the command: it parses args, measures the tree, and prints to out.
func Main(args []string, out io.Writer) error {
	const op fault.Op = "house.Main"
	var f flags
	k, err := kong.New(&f, kong.Name("house"), kong.Description("Measures the structure of the code and the documents."))
	if err != nil {
		return err
	}
	if _, err := k.Parse(args); err != nil {
		return fault.Wrap(fault.Usage, op, "", err)
	}
	if f.Knot != "" {
		return knot(f.Root, filepath.ToSlash(filepath.Clean(f.Knot)), f.To, out)
	}
	limits, err := ReadLimits(filepath.Join(f.Root, limitsFile))
	if err != nil {
		return err
	}
	figures, err := Measure(f.Root)
	if err != nil {
		return err
	}
	switch {
	case f.JSON:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(figures)
	case f.Lower:
		return fault.FromOS(op, limitsFile, os.WriteFile(filepath.Join(f.Root, limitsFile), []byte(limits.Lower(figures)), 0o644))
	case f.Limits:
		return judge(figures, limits, out)
	}
	table(out, figures, limits, f.All)
	return nil
}

// judge prints what is over its limit and fails if anything is.
func judge(figures []Figure, limits *Limits, out io.Writer) error {
	const op fault.Op = "house.judge"
	over := limits.Over(figures)
	for _, f := range over {
		limit, _ := limits.of(f)
		complain(out, f, limit)
	}
	if n := len(limits.Loose(figures)); n > 0 {
		fmt.Fprintf(out, "house: %s above today's figures; scripts/house --lower brings them down\n", counted(n, "limit"))
	}
	if len(over) > 0 {
		return fault.E(fault.Other, op, limitsFile, counted(len(over), "figure")+" over the limit")
	}
	return nil
}

// knot prints what ties the files of one package together.
func knot(root, dir string, limit int, out io.Writer) error {
	const op fault.Op = "house.knot"
	t, err := read(root)
	if err == nil {
		err = t.resolve()
	}
	if err != nil {
		return err
	}
	for _, r := range t.rooms {
		if r.dir == dir {
			explain(out, t, r, limit)
			return nil
		}
	}
	return fault.E(fault.NotFound, op, dir, "no package is there")
}
