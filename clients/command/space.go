package command

import (
	"fmt"
	"io"
	gslices "slices"
	"text/tabwriter"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/tree"
)

type spaceCmd struct {
	Path string `arg:"" help:"A file or directory below a mount." type:"path"`
}

// Help shows how it is called.
func (spaceCmd) Help() string { return help("cartwheel space cartwheel-demo/tokyo --json") }

// spaceView is what the command prints. Only Tree, and Tree of each slice, is of the path.
type spaceView struct {
	Path string   `json:"path"`
	Tree treePart `json:"tree"`
	// Unread counts the directories that the caller may not read, or that failed; the first
	// one is named. OtherMounts counts those of other file systems. None is counted in Tree.
	Unread      int    `json:"unread,omitempty"`
	UnreadFirst string `json:"unread_first,omitempty"`
	OtherMounts int    `json:"other_mounts,omitempty"`
	// Slices are those that have objects of the tree.
	Slices []sliceSpace `json:"slices"`
	// All is the sum of the replicas that answered.
	All spaceSum `json:"all_replicas"`
	// Withheld says that the caller may not see what whole slices hold.
	Withheld bool `json:"withheld,omitempty"`
}

// treePart is what a tree has, or its part in one slice. Stored bytes are without holes,
// and before deduplication.
type treePart struct {
	Files       uint64 `json:"files"`
	Directories uint64 `json:"directories"`
	Others      uint64 `json:"others"`
	Bytes       uint64 `json:"size_bytes"`
	Stored      uint64 `json:"stored_bytes"`
}

func (t *treePart) add(o *treePart) {
	t.Files += o.Files
	t.Directories += o.Directories
	t.Others += o.Others
	t.Bytes += o.Bytes
	t.Stored += o.Stored
}

// sliceSpace is a slice that the tree touches. Replicas are of the whole slice.
type sliceSpace struct {
	Slice    ids.Slice      `json:"slice"`
	Tree     treePart       `json:"tree"`
	Replicas []replicaSpace `json:"replicas"`
}

// replicaSpace is what one node's copy of a whole slice holds.
type replicaSpace struct {
	member
	Objects uint64 `json:"objects"`
	Stored  uint64 `json:"stored_bytes"`
	tree.Usage
	// Error says why there are no figures.
	Error string `json:"error,omitempty"`
}

// spaceSum is the sum of replicas.
type spaceSum struct {
	Replicas int    `json:"replicas"`
	Stored   uint64 `json:"stored_bytes"`
	tree.Usage
}

// Run walks the tree as its caller, and asks the nodes about the slices that it touches.
func (s spaceCmd) Run(e *env) error {
	if _, err := whereOf(s.Path); err != nil {
		return err
	}
	w, err := e.walk(s.Path)
	if err != nil {
		return err
	}
	v := w.view(s.Path)
	if err := e.askSlices(&v); err != nil {
		return err
	}
	return e.print(v, v.text)
}

// askSlices asks the nodes what the slices of a view hold.
func (e *env) askSlices(v *spaceView) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(c)
	rows := newestRows(askAll(e, c, slices))
	for i := range v.Slices {
		at := gslices.IndexFunc(rows, func(r newestRow) bool { return r.ID == v.Slices[i].Slice })
		if at < 0 {
			return fault.Errorf(fault.Unreachable, "command.askSlices", v.Path, "no node that answers knows slice %d: see cartwheel status", v.Slices[i].Slice)
		}
		for _, m := range rows[at].SliceRow.Members {
			v.Slices[i].Replicas = append(v.Slices[i].Replicas, replicaSpace{member: member{Node: m.Node, Site: siteOf(c, m.Node), State: m.State.String()}})
		}
	}
	if err := e.fillSpace(c, v); err != nil {
		return err
	}
	v.sum()
	return nil
}

// sum adds up the replicas that answered.
func (v *spaceView) sum() {
	v.All = spaceSum{}
	for i := range v.Slices {
		for j := range v.Slices[i].Replicas {
			r := &v.Slices[i].Replicas[j]
			if r.Error == "" && !v.Withheld {
				v.All.Replicas++
				v.All.Stored += r.Stored
				v.All.Add(&r.Usage)
			}
		}
	}
}

// text prints a view for people.
func (v spaceView) text(w io.Writer) {
	fmt.Fprintln(w, v.Path)
	fmt.Fprintf(w, "  has     %d files, %d directories, %d others\n", v.Tree.Files, v.Tree.Directories, v.Tree.Others)
	fmt.Fprintf(w, "  size    %s\n", size(int64(v.Tree.Bytes)))
	fmt.Fprintf(w, "  stored  %s, without holes and before deduplication\n", size(int64(v.Tree.Stored)))
	if v.Unread > 0 {
		fmt.Fprintf(w, "Not counted: %d directories that cannot be read, such as %s\n", v.Unread, v.UnreadFirst)
	}
	if v.OtherMounts > 0 {
		fmt.Fprintf(w, "Not counted: %d directories that are other file systems\n", v.OtherMounts)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SLICE\tFILES\tDIRECTORIES\tSIZE\tSTORED")
	for i := range v.Slices {
		s := &v.Slices[i]
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\n", s.Slice, s.Tree.Files, s.Tree.Directories, size(int64(s.Tree.Bytes)), size(int64(s.Tree.Stored)))
	}
	_ = t.Flush() // whoever reads it has gone
	fmt.Fprintln(w)
	if v.Withheld {
		fmt.Fprintln(w, "What whole slices hold besides is told to administrators: name the contact file of one with --contact.")
		return
	}
	v.wholeText(w)
}

// wholeText prints what whole slices hold.
func (v *spaceView) wholeText(w io.Writer) {
	fmt.Fprintln(w, "The figures above are of this tree. Those below are of whole slices, with what other trees have in them.")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SLICE\tREPLICA\tSTATE\tLIVE\tCHUNKS\tSHARING SAVES\tDELETED\tOLDER\tOLDER ALONE\tWAITING")
	row := func(slice, replica, state string, live uint64, u *tree.Usage) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", slice, replica, state, size(int64(live)), size(int64(u.Named.Bytes)), size(int64(u.Repeated)),
			several(u.Deleted), several(u.Replaced), size(int64(u.Older.Bytes)), size(int64(u.Waiting.Bytes)))
	}
	var notes []string
	for i := range v.Slices {
		s := &v.Slices[i]
		var uncollected, waiting uint64 // the same at all replicas, but for what is under way
		for j := range s.Replicas {
			r := &s.Replicas[j]
			switch {
			case r.Error != "":
				notes = append(notes, fmt.Sprintf("Not in the sum: slice %d at %s (%s): %s", s.Slice, r.Site, short(r.Node), r.Error))
				continue
			case r.Missing > 0:
				notes = append(notes, fmt.Sprintf("Slice %d at %s (%s) lacks %d chunks that follow or are sought", s.Slice, r.Site, short(r.Node), r.Missing))
			}
			uncollected, waiting = max(uncollected, r.Unwalked), max(waiting, r.WaitingWalks)
			row(fmt.Sprint(s.Slice), fmt.Sprintf("%s (%s)", r.Site, short(r.Node)), r.State, r.Stored, &r.Usage)
		}
		if uncollected > 0 {
			notes = append(notes, fmt.Sprintf("Slice %d: CHUNKS has those of %d contents that were deleted or replaced as a whole, %d of which wait for collection", s.Slice, uncollected, waiting))
		}
	}
	row("all", fmt.Sprintf("%d replicas", v.All.Replicas), "", v.All.Stored, &v.All.Usage)
	_ = t.Flush() // whoever reads it has gone
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
	fmt.Fprintln(w, spaceKey)
}

// spaceKey says what the columns of whole slices are.
const spaceKey = `
LIVE           content of current files, without holes and before deduplication
CHUNKS         chunks of current files, and of contents that are not collected yet; each counts once in its slice
SHARING SAVES  what more CHUNKS would take without deduplication; sharing between slices is not in it
DELETED        deleted files that retention keeps, and their content before deduplication
OLDER          older versions that retention keeps, and their content before deduplication
OLDER ALONE    chunks that only older versions use
WAITING        chunks that nothing needs any more, and that wait for collection`

// several writes how many there are, and their size.
func several(a tree.Amount) string { return fmt.Sprintf("%d: %s", a.Count, size(int64(a.Bytes))) }
