// Package contact knows how to reach a cluster: the contact file, the nodes with
// their addresses and sites, and the introduction that each connection begins
// with. It sends calls to a node that the caller chose, and knows nothing of
// slices or files. A Cluster is safe for use by many goroutines.
package contact

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// File is the contact file: what a client needs to know before it knows
// anything.
type File struct {
	Cluster ids.Cluster `json:"cluster"`
	// Nodes are multiaddresses that end in /p2p/ID, of any nodes of the cluster.
	Nodes []string `json:"nodes"`
	// UserKey is the file of the user's private key; Load makes it absolute.
	UserKey string `json:"user_key"`
	// Demo says that all sites are one machine, as whoever made them knows.
	Demo bool `json:"demo,omitempty"`
}

// Load reads a contact file.
func Load(path string) (File, error) {
	const op fault.Op = "contact.Load"
	var f File
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, fault.E(fault.NotFound, op, path, "there is no such contact file; name another with --contact")
	}
	if err != nil {
		return f, fault.FromOS(op, path, err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, &fault.Error{Kind: fault.Invalid, Op: op, Subject: path, Public: "is no contact file (JSON with cluster, nodes and user_key)", Cause: err}
	}
	if len(f.Nodes) == 0 {
		return f, fault.E(fault.Invalid, op, path, "names no nodes")
	}
	for _, n := range f.Nodes {
		if _, _, err := SplitAddress(n); err != nil {
			return f, fault.Wrap(fault.Invalid, op, path, err)
		}
	}
	if f.UserKey != "" && !filepath.IsAbs(f.UserKey) {
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return f, fault.FromOS(op, path, err)
		}
		f.UserKey = filepath.Join(dir, f.UserKey)
	}
	return f, nil
}

// Save writes a contact file, in one step.
func (f File) Save(path string) error {
	const op fault.Op = "contact.Save"
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Invalid, op, path, err)
	}
	return fault.FromOS(op, path, WriteFile(path, append(data, '\n')))
}

// WriteFile replaces a file that everybody may read, in one step. What another
// user put beside it, such as a link, is neither followed nor written to.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // of this process alone
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SplitAddress splits a multiaddress into where to dial and whom to expect.
func SplitAddress(address string) (where string, id ids.Node, err error) {
	const marker = "/p2p/"
	at := strings.LastIndex(address, marker)
	if at <= 0 || !strings.HasPrefix(address, "/") || at+len(marker) == len(address) {
		return "", "", fault.E(fault.Invalid, "contact.SplitAddress", address, "is no node's address: write it as /ip4/ADDRESS/tcp/PORT/p2p/ID")
	}
	return address[:at], ids.Node(address[at+len(marker):]), nil
}
