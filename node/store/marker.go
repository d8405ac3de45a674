package store

import (
	"encoding/json"
	"errors"
	"io"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/store/disk"
)

const (
	markerName = "cartwheel.json"
	// Format is the version of the data directory that this program writes.
	Format = 1
	// markerMost bounds what is read of a marker.
	markerMost = 64 << 10
)

// marker says whose a data directory is.
type marker struct {
	Format      int             `json:"format"`
	Cluster     ids.Cluster     `json:"cluster"`
	Node        ids.Node        `json:"node"`
	Incarnation ids.Incarnation `json:"incarnation"`
	Created     string          `json:"created"`
}

// checkMarker reads the marker and compares; fresh tells that there is none
// and the directory may be made. The marker is written last, so that a
// directory with one is whole.
func (s *Store) checkMarker() (fresh bool, err error) {
	const op fault.Op = "store.checkMarker"
	f, err := s.d.Open(disk.MarkerOpen, markerName, disk.ReadOnly)
	if fault.Is(err, fault.NotFound) {
		wall := s.opts.Wall()
		s.marker = marker{Format: Format, Cluster: s.opts.ClusterID, Node: s.opts.NodeID,
			Incarnation: ids.Incarnation(wall.UnixNano()), Created: wall.UTC().Format("2006-01-02T15:04:05Z")}
		return true, s.d.MakeDir(disk.MarkerDir, MetaDir)
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, markerMost)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fault.Wrap(fault.IO, op, s.opts.Dir, err)
	}
	if err := json.Unmarshal(b[:n], &s.marker); err != nil {
		return false, &fault.Error{Kind: fault.Corrupt, Op: op, Subject: s.opts.Dir, Public: markerName + " cannot be read", Cause: err}
	}
	m := s.marker
	switch {
	case m.Format > Format:
		return false, fault.Errorf(fault.NewerVersion, op, s.opts.Dir,
			"written by a newer version (format %d, this program knows %d); run that version, or a newer one", m.Format, Format)
	case m.Cluster != s.opts.ClusterID:
		return false, fault.Errorf(fault.WrongCluster, op, s.opts.Dir,
			"holds data of cluster %q, not of %q; give this node another data directory", m.Cluster, s.opts.ClusterID)
	case m.Node != s.opts.NodeID:
		return false, fault.Errorf(fault.Unauthorized, op, s.opts.Dir,
			"holds data of node %s, not of %s; give each node its own data directory and key", m.Node, s.opts.NodeID)
	}
	return false, nil
}

// writeMarker makes a new directory valid.
func (s *Store) writeMarker() error {
	b, err := json.MarshalIndent(s.marker, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Invalid, "store.Open", s.opts.Dir, err)
	}
	const temp = markerName + ".tmp"
	if err := s.d.Remove(disk.MarkerOpen, temp); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	f, err := s.d.Open(disk.MarkerOpen, temp, disk.Create)
	if err != nil {
		return err
	}
	if err = f.WriteAt(disk.MarkerWrite, append(b, '\n'), 0); err == nil {
		err = f.Sync(disk.MarkerSync)
	}
	f.Close()
	if err == nil {
		err = s.d.Rename(disk.MarkerRename, temp, markerName)
	}
	if err == nil {
		err = s.d.SyncDir(disk.MarkerPublic, ".")
	}
	return err
}
