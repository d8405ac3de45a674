package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/store/disk"
)

// file is the form in which the rows lie beside the data: JSON, version 1.
type file struct {
	Version int `json:"version"`
	kept
	Sites  []geoconfig.Site     `json:"sites"`
	Nodes  []geoconfig.Node     `json:"nodes"`
	Slices []geoconfig.SliceRow `json:"slices"`
	Users  []geoconfig.User     `json:"users"`
}

const fileVersion = 1

func (d *Directory) load() error {
	const op fault.Op = "cluster.load"
	if d.o.File == "" {
		return nil
	}
	data, err := os.ReadFile(d.o.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.IO, op, d.o.File, err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return fault.Wrap(fault.Corrupt, op, d.o.File, err)
	}
	if f.Version > fileVersion {
		return fault.Errorf(fault.NewerVersion, op, d.o.File, "it is of version %d, this program reads %d: run a newer one", f.Version, fileVersion)
	}
	d.rows = f.kept
	for _, s := range f.Sites {
		d.sites[s.Name] = s
	}
	for _, n := range f.Nodes {
		d.nodes[n.ID] = n
	}
	for _, s := range f.Slices {
		d.slices[s.ID] = s
	}
	for _, u := range f.Users {
		d.users[u.Key] = u
	}
	return nil
}

// save writes the file where something changed. What was not written is tried again
// with the next change.
func (d *Directory) save() error {
	if d.o.File == "" {
		return nil
	}
	d.saving.Lock()
	defer d.saving.Unlock()
	d.mu.Lock()
	if !d.dirty {
		d.mu.Unlock()
		return nil
	}
	d.dirty = false
	f := file{Version: fileVersion, kept: d.rows}
	for _, s := range d.sites {
		f.Sites = append(f.Sites, s)
	}
	for _, n := range d.nodes {
		f.Nodes = append(f.Nodes, n)
	}
	for _, s := range d.slices {
		f.Slices = append(f.Slices, s.Clone())
	}
	for _, u := range d.users {
		f.Users = append(f.Users, u)
	}
	d.mu.Unlock()
	err := Replace(d.o.File, f)
	if err != nil {
		d.mu.Lock()
		d.dirty = true
		d.mu.Unlock()
	}
	return fault.Wrap(fault.IO, "cluster.save", d.o.File, err)
}

// logSave tells that the file could not be written. That ends nothing: the file is a
// help, the store the authority.
func (d *Directory) logSave(err error) {
	if err != nil {
		d.o.Logger.Warn("the configuration could not be kept beside the data", logattr.Path(d.o.File), logattr.Err(err))
	}
}

// keepEvery is the least pause between two writes of the file for what peers tell.
const keepEvery = time.Second

// keep writes the file soon after peers told something, until ctx ends. While
// geo-config is away nothing else would, and a rebuild needs the newest rows.
func (d *Directory) keep(ctx context.Context) {
	for {
		changed := d.Changed()
		d.logSave(d.save())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(keepEvery):
		case <-ctx.Done():
			return
		}
	}
}

// Replace writes a file anew with content as JSON, so that a crash leaves the old or the
// new one, and the new one once it returns. Errors are the operating system's.
func Replace(name string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	temporary := name + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	return disk.SyncDirectory(filepath.Dir(name))
}
