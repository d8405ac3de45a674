package command

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
)

type snapshotDiffCmd struct {
	From string `arg:"" help:"A snapshot's name, or a time or an age as .Snapshot has it."`
	To   string `arg:"" help:"The same, or \"now\"."`
	Path string `arg:"" optional:"" type:"path" help:"A directory below a mount (default: the part that a snapshot is of, or here)."`
}

// Help shows how it is called.
func (snapshotDiffCmd) Help() string {
	return help("cartwheel snapshot diff before-upgrade now /mnt/cartwheel/reports")
}

// snapshotDiff is what the command prints.
type snapshotDiff struct {
	Path    string           `json:"path"`
	From    string           `json:"from"`
	To      string           `json:"to"`
	Changes []earlier.Change `json:"changes"`
}

// Run compares the directory at both times.
func (c snapshotDiffCmd) Run(e *env) error {
	c.Path = e.orPart(c.Path, c.From, c.To)
	defer e.progress("comparing %s", c.Path)()
	out := snapshotDiff{Path: c.Path, From: c.From, To: c.To}
	var err error
	if out.Changes, err = earlier.Diff(e.ctx, c.Path, c.From, c.To); err != nil {
		return noSnapshot(err)
	}
	return e.print(out, func(w io.Writer) { diffText(w, out.Changes) })
}

// noSnapshot says what an error of a path below .Snapshot may mean: programs are told an
// error number alone.
func noSnapshot(err error) error {
	below := strings.Contains(fault.SubjectOf(err), cue.Snapshot.String()+"=")
	if !below || !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid) {
		return err
	}
	return fault.Errorf(fault.KindOf(err), "command.Run", fault.SubjectOf(err),
		"is not to be had: the path was not there then, or is below no mount, or there is no such snapshot or it is of another part of the tree, which `cartwheel snapshot list` tells, or the time is not retained")
}

// diffText prints changes for people.
func diffText(w io.Writer, changes []earlier.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(w, "no changes")
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, c := range changes {
		what, path := c.What, c.Path
		if c.Also != "" {
			what += ", " + c.Also
		}
		if c.From != "" {
			path = c.From + " -> " + c.Path
		}
		if c.Kind == "directory" {
			path += string(filepath.Separator)
		}
		fmt.Fprintf(t, "%s\t%s\n", what, path)
	}
	_ = t.Flush() // whoever reads it has gone
}

type snapshotRestoreCmd struct {
	Name    string `arg:"" help:"The snapshot's name, or a time or an age as .Snapshot has it."`
	Path    string `arg:"" optional:"" type:"path" help:"A file or directory below a mount (default: the part that the snapshot is of). It may have been removed."`
	To      string `type:"path" placeholder:"PATH" help:"Where the copy goes (default: the same path)."`
	Replace bool   `help:"Move aside what is at the place now: its name gets .replaced at the end."`
	DryRun  bool   `help:"Only say what would be written."`
}

// Help shows how it is called.
func (snapshotRestoreCmd) Help() string {
	return help(`cartwheel snapshot restore before-upgrade /mnt/cartwheel/reports --to /mnt/cartwheel/reports-before

It writes over nothing. The copy appears under its name once it is whole.`)
}

// Run copies it.
func (c snapshotRestoreCmd) Run(e *env) error {
	if c.Name == earlier.Now {
		return fault.E(fault.Usage, "command.Run", c.Name, "is no snapshot")
	}
	if c.Path == "" {
		if c.Path = e.partOf(c.Name); c.Path == "" {
			return fault.E(fault.Usage, "command.Run", c.Name, "is of the whole tree, or of none that is known here: name the path that is to be restored")
		}
	}
	to := c.To
	if to == "" {
		to = c.Path
	}
	defer e.progress("restoring %s", c.Path)()
	r, err := earlier.Restore(e.ctx, c.Path, c.Name, to, earlier.How{Replace: c.Replace, DryRun: c.DryRun})
	if err != nil {
		return noSnapshot(err)
	}
	verb := "restored"
	if c.DryRun {
		verb = "would restore"
	}
	return e.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "%s %d names, %s, at %s\n", verb, r.Names, size(r.Bytes), r.To)
		if r.Aside != "" {
			fmt.Fprintf(w, "what was there is at %s\n", r.Aside)
		}
	})
}
