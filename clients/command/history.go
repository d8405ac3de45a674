package command

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/history"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
)

type historyCmd struct {
	Path string `arg:"" help:"A file or directory below a mount. It may have been removed." type:"path"`
}

// Help shows how it is called.
func (historyCmd) Help() string { return help("cartwheel history cartwheel-demo/tokyo/hello") }

// historyView is what the command prints.
type historyView struct {
	Path string `json:"path"`
	history.History
}

// Run asks the mount about the name in its directory.
func (h historyCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	dir, name := filepath.Split(filepath.Clean(h.Path))
	if name == "" || name == "." || name == ".." {
		return fault.E(fault.Usage, op, h.Path, "is no name in a directory")
	}
	data, err := getxattr(filepath.Clean(dir), history.Attribute+name)
	switch {
	case errors.Is(err, fault.NoAttribute.Errno()) || errors.Is(err, errors.ErrUnsupported):
		return fault.E(fault.NotFound, op, h.Path, "is not below a Cartwheel mount")
	case err != nil:
		return fault.FromOS(op, h.Path, err)
	}
	v := historyView{Path: h.Path}
	if v.History, err = history.Parse(h.Path, data); err != nil {
		return err
	}
	if len(v.Versions) == 0 {
		return fault.E(fault.NotFound, op, h.Path, "nothing is retained under this name")
	}
	return e.print(v, func(w io.Writer) { historyText(w, dir, name, &v) })
}

// historyTime shows a time as a path may name it: a moment later rather than earlier.
func historyTime(t time.Time) string {
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond).Local().Format("2006-01-02T15:04:05.000Z07:00")
}

// historyText prints a history for people, and how a version is restored.
func historyText(w io.Writer, dir, name string, v *historyView) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tSIZE\tWHAT")
	example := ""
	for _, x := range v.Versions {
		bytes := size(int64(x.Size))
		if x.Snapshot == "" {
			bytes = "-"
		} else if example == "" || len(v.Versions) > 1 && x == v.Versions[1] {
			example = historyTime(x.Time)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", historyTime(x.Time), bytes, x.What)
	}
	_ = t.Flush() // whoever reads it has gone
	if v.More {
		fmt.Fprintln(w, "there are older ones")
	}
	if example != "" {
		fmt.Fprintf(w, "\nTo restore one: cp %s %s\n", filepath.Join(dir, cue.Snapshot.String()+"="+example, name), filepath.Join(dir, name))
	}
}
