package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/wire"
)

type geoConfigRebuildCmd struct {
	storeFlags  `embed:""`
	acceptFlags `embed:""`

	DryRun bool `help:"Only show what would be written. The nodes promise nothing."`
}

// Help shows how it is called.
func (geoConfigRebuildCmd) Help() string {
	return help(`cartwheel geo-config rebuild --data /var/lib/cartwheel/geo-config --contact contact.json

For the day when geo-config's data is lost. All nodes that still have theirs should run, whole sites too. An administrator's contact file reaches them. From then on they obey no earlier geo-config. Restore a backup instead only where no node is left.`)
}

// rebuiltView is what rebuild and settle print.
type rebuiltView struct {
	Cluster    ids.Cluster     `json:"cluster"`
	Generation ids.Generation  `json:"generation"`
	DryRun     bool            `json:"dry_run,omitempty"`
	Answered   int             `json:"answered"`
	Silent     []silentView    `json:"silent"`
	Slices     []rebuild.Slice `json:"slices"`
	// Cut is the time up to which the slices that lost changes have all of them; zero:
	// none did, or it is not known.
	Cut time.Time `json:"cut,omitzero"`
	// Server is the identity of the server whose key is in the data directory, and
	// Strangers are the nodes that trust another one.
	Server    string     `json:"server,omitempty"`
	Strangers []ids.Node `json:"strangers,omitempty"`
	into      string
}

// silentView is a node that did not answer.
type silentView struct {
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	Why  string   `json:"why"`
}

// Run rebuilds the store.
func (c *geoConfigRebuildCmd) Run(e *env) error {
	accept, err := c.accept()
	if err != nil {
		return err
	}
	if _, err := c.isEmbedded(); err != nil {
		return err
	}
	reach, err := e.connect()
	if err != nil {
		return err
	}
	defer leave(reach)
	heard, err := recall(e, reach, 0)
	if err != nil {
		return err
	}
	o := rebuild.Options{Generation: rebuild.Generation(heard.copies), Accept: accept, At: time.Now()}
	plan, err := c.plan(e, heard, o)
	if err != nil {
		return err
	}
	if c.DryRun {
		v := viewOf(plan, heard)
		v.DryRun, v.Cut = true, cutOf(plan.Slices, askAll(e, reach, slices))
		return e.print(v, v.write)
	}
	if err := stillThere(heard.copies); err != nil {
		return err
	}
	if err := c.checkEmpty(e); err != nil {
		return err
	}
	return c.rebuild(e, reach, o)
}

// plan plans the store from what the nodes remember.
func (c *geoConfigRebuildCmd) plan(e *env, heard recalled, o rebuild.Options) (*rebuild.Plan, error) {
	who, err := e.contactUser()
	if err != nil {
		return nil, err
	}
	o.Who = who // its key, until a copy says its name
	if len(heard.copies) > 0 {
		o.Who = userOf(heard.copies[0].Rows.Users, who)
	}
	plan, err := rebuild.New(heard.copies, o)
	if err != nil {
		return nil, err
	}
	return plan, c.unknown(plan.Slices)
}

// stillThere refuses to replace a geo-config that a node reaches.
func stillThere(copies []rebuild.Copy) error {
	for i := range copies {
		if copies[i].Reaches {
			return fault.E(fault.NotEmpty, "command.rebuild", "node "+copies[i].Node.Short(),
				"reaches geo-config, so nothing is lost: stop cartwheeld geo-config first, if its data is to be replaced all the same")
		}
	}
	return nil
}

// checkEmpty refuses a store that holds a configuration, before any node promises
// something for it.
func (c *geoConfigRebuildCmd) checkEmpty(e *env) error {
	var store interface {
		geoconfig.Store
	}
	if c.Data != "" {
		s, err := embedded.Open(e.ctx, c.Data)
		if err != nil {
			return err
		}
		store = s
	} else {
		o, err := c.options(e)
		if err != nil {
			return err
		}
		s, err := cockroach.Open(e.ctx, cockroach.Options{Options: o})
		if err != nil {
			return err
		}
		store = s
	}
	rows, err := store.Read(e.ctx, geoconfig.Query{})
	if err == nil && rows.Cluster != nil {
		err = fault.Errorf(fault.NotEmpty, "command.rebuild", c.place(), "holds cluster %s at generation %d: rebuild into an empty directory or database, and move this one away",
			rows.Cluster.ID, rows.Cluster.Generation)
	}
	return errors.Join(err, store.Close())
}

// place names the store for people.
func (c *geoConfigRebuildCmd) place() string {
	if c.Data != "" {
		return filepath.Join(c.Data, embedded.FileName)
	}
	return "the database"
}

// rebuild has the nodes promise the new generation, and writes what they remember
// then. Where it ends early, it may be repeated.
func (c *geoConfigRebuildCmd) rebuild(e *env, reach *contact.Cluster, o rebuild.Options) error {
	heard, err := recall(e, reach, o.Generation)
	if err != nil {
		return err
	}
	plan, err := c.plan(e, heard, o)
	if err != nil {
		return err
	}
	cut := cutOf(plan.Slices, askAll(e, reach, slices)) // before the slices go on
	if err := c.load(e, plan); err != nil {
		return err
	}
	v := viewOf(plan, heard)
	v.into, v.Cut = c.place(), cut
	if c.Data != "" {
		key, err := wire.MakeKey(filepath.Join(c.Data, "node.key"))
		if err != nil {
			return err
		}
		v.Server = key.KeyID()
		v.Strangers = trustOthers(heard.copies, v.Server)
	}
	return e.print(v, v.write)
}

// load writes the plan into the store, by way of an archive: a store takes all of it
// or can go on with it, and refuses it where it is not empty.
func (c *geoConfigRebuildCmd) load(e *env, plan *rebuild.Plan) error {
	const op fault.Op = "command.load"
	dir, err := os.MkdirTemp("", "cartwheel-rebuild-*") // of mode 0700: the archive has the cluster's secret
	if err != nil {
		return fault.FromOS(op, os.TempDir(), err)
	}
	defer os.RemoveAll(dir)
	_, path, err := save(e.ctx, plan, dir, func(archive.Summary) string { return "rebuilt.jsonl" })
	if err != nil {
		return err
	}
	f, err := archive.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.Data != "" {
		return importEmbedded(e.ctx, c.Data, f)
	}
	o, err := c.options(e)
	if err != nil {
		return err
	}
	return cockroach.Load(e.ctx, cockroach.Options{Options: o}, f)
}

// contactUser returns the identity of the key that the contact file names.
func (e *env) contactUser() (string, error) {
	path, err := e.contactFile()
	if err != nil {
		return "", err
	}
	f, err := contact.Load(path)
	if err != nil {
		return "", err
	}
	key, err := wire.LoadKey(f.UserKey)
	if err != nil {
		return "", err
	}
	return key.KeyID(), nil
}

func viewOf(p *rebuild.Plan, heard recalled) *rebuiltView {
	v := &rebuiltView{Cluster: p.Cluster.ID, Generation: p.Cluster.Generation, Answered: len(heard.copies), Slices: p.Slices}
	v.Silent = silentViews(p.Silent, p.Nodes, heard)
	return v
}

// silentViews says which nodes did not answer, and why.
func silentViews(silent []ids.Node, roster []geoconfig.Node, heard recalled) []silentView {
	out := []silentView{}
	for _, id := range silent {
		s := silentView{Node: id, Why: "it has told no address yet"}
		for i := range roster {
			if roster[i].ID == id {
				s.Site = roster[i].Site
			}
		}
		if err := heard.silent[id]; err != nil {
			s.Why = fault.Explain(err)
		}
		out = append(out, s)
	}
	return out
}

// write prints the view for people.
func (v *rebuiltView) write(w io.Writer) {
	fmt.Fprintf(w, "Cluster %s, generation %d, from what %d nodes remember.\n", v.Cluster, v.Generation, v.Answered)
	for _, s := range v.Silent {
		fmt.Fprintf(w, "Silent: node %s at %s: %s\n", s.Node.Short(), s.Site, s.Why)
	}
	waits := writeSlices(w, v.Slices)
	writeCut(w, v.Cut)
	switch {
	case v.DryRun:
		fmt.Fprintln(w, "Nothing was written.")
	case v.into != "":
		fmt.Fprintf(w, "Written to %s. Start cartwheeld geo-config with it.\n", v.into)
	}
	if len(v.Strangers) > 0 {
		fmt.Fprintf(w, "The server is now %s. In node.yaml of these nodes, and in admin.json, let geo_config end in /p2p/%s, and restart them: %s\n",
			v.Server, v.Server, rebuild.Names(v.Strangers))
	}
	if waits > 0 {
		fmt.Fprintln(w, "Slices that wait go on as their old members allow. Once silent nodes are back, run `cartwheel geo-config settle`; where they are gone for good, with --accept-loss.")
	}
}

// writeSlices prints the slices that do not simply go on, and returns how many wait.
func writeSlices(w io.Writer, list []rebuild.Slice) (waits int) {
	kept := 0
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range list {
		s := &list[i]
		switch s.Verdict {
		case rebuild.Kept:
			kept++
		case rebuild.Reduced:
			fmt.Fprintf(t, "slice %d\tgoes on without %s, which catches up later\n", s.Was.ID, rebuild.Names(s.Silent))
		case rebuild.Lossy:
			fmt.Fprintf(t, "slice %d\tgoes on without %s; what only that has is lost\n", s.Was.ID, rebuild.Names(s.Silent))
		case rebuild.Waiting:
			waits++
			why := ""
			if s.Hopeless {
				why = ", its only up-to-date members"
			}
			fmt.Fprintf(t, "slice %d\twaits for %s%s\n", s.Was.ID, rebuild.Names(s.Silent), why)
		}
	}
	_ = t.Flush() // whoever reads it has gone
	fmt.Fprintf(w, "%d of %d slices go on with all their members.\n", kept, len(list))
	return waits
}
