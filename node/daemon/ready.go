package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
)

// Stdio is what the process writes to, and its environment.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
}

// readiness is the one line on standard output, once the process serves.
type readiness struct {
	Ready     bool     `json:"ready"`
	ID        string   `json:"id"`
	Cluster   string   `json:"cluster,omitempty"`
	Addresses []string `json:"addresses"` // with /p2p/ID
}

func (s Stdio) ready(host *wire.Host, cluster string) error {
	r := readiness{Ready: true, ID: host.KeyID(), Cluster: cluster}
	for _, a := range host.Addresses() {
		r.Addresses = append(r.Addresses, a+"/p2p/"+host.KeyID())
	}
	return json.NewEncoder(s.Out).Encode(r)
}

// keyCmd makes and names a data directory's key.
type keyCmd struct {
	Data string `help:"The node's directory." required:"" type:"existingdir"`
}

func (c *keyCmd) run(stdio Stdio) error {
	key, err := wire.MakeKey(filepath.Join(c.Data, keyFile))
	if err != nil {
		return fault.Wrap(fault.IO, "daemon.key", c.Data, err)
	}
	_, err = fmt.Fprintln(stdio.Out, key.KeyID())
	return err
}
